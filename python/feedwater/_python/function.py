"""The function of python=: whether worker processes can have it."""

from __future__ import annotations

import inspect
import os
import pickle
import sys
from typing import Any

__all__ = ["check_function", "name_of"]

MODULE_LEVEL = (
    "write a function at the top level of a module, or an object of a class there with __call__; functools.partial "
    "gives it arguments"
)


def check_function(function: Any) -> None:
    """Raises TypeError unless function can be sent to another process and called there as a worker does."""
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"python={function!r}: must be a function (sample, rng) -> sample")
    try:
        inspect.signature(function).bind(None, None)
    except ValueError:  # written in C
        pass
    except TypeError as error:
        raise TypeError(
            "python= is called with (sample, rng), and returns the sample; its picture is sample['image']. "
            f"{name_of(function)} cannot be: {error}"
        ) from None
    name = name_of(function)
    try:
        pickled = pickle.dumps(function)
    except Exception as error:
        what = "a lambda" if "<lambda>" in name else f"{name}, made inside a function," if "<locals>" in name else name
        raise TypeError(f"python=: {what} cannot be sent to another process ({error}): {MODULE_LEVEL}") from error
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if b"__main__" in pickled and getattr(main, "__spec__", None) is None and not (file and os.path.exists(file)):
        raise TypeError(
            f"python=: {name} was typed into a prompt or notebook, where no other process finds it: put "
            "it into a file and import it from there"
        )


def name_of(function: Any) -> str:
    """As people know it."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))
