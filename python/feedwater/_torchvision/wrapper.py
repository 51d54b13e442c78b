"""Objects around a transform that only hand their input on to it, as the presets of torchvision's references are."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from .origin import find_patch

__all__ = ["transform_inside"]

STAR = 0x04 | 0x08 | 0x20
"""Flags of code that takes *inputs or **inputs, or is a generator."""


def _hand_on(self: Any, image: Any) -> Any:
    return self.inside(image)


def _hand_on_both(self: Any, image: Any, target: Any) -> Any:
    return self.inside(image, target)


def _hand_on_all(self: Any, *inputs: Any) -> Any:
    return self.inside(*inputs)


_SHAPES = tuple(shape.__code__ for shape in (_hand_on, _hand_on_both, _hand_on_all))
"""What the whole of such a method is, but for names."""


def transform_inside(thing: Any) -> Any:
    """What an object hands its input on to and does nothing else, by the code of its class; None if there is none.

    A method that does more, or another one that may be called in its place, is code of the program's own.
    """
    kind = type(thing)
    if kind.__module__.split(".")[0] in ("torch", "torchvision", "feedwater", "builtins") or find_patch(thing):
        return None
    call = getattr(kind, "__call__", None)  # noqa: B004
    if getattr(call, "__module__", "").startswith("torch.nn.modules"):
        call = getattr(kind, "forward", None)
    if not isinstance(call, FunctionType) or call.__closure__ or call.__defaults__ or call.__kwdefaults__:
        return None
    name = next((call.__code__.co_names[0] for shape in _SHAPES if _is_alike(call.__code__, shape)), None)
    if name is None or any("__getattribute__" in vars(base) for base in kind.__mro__[:-1]):
        return None
    return None if isinstance(getattr(kind, name, None), property) else getattr(thing, name, None)


def _is_alike(code: CodeType, shape: CodeType) -> bool:
    """Whether a function does what another one does, on an attribute of another name."""
    return (
        (code.co_code, code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_freevars)
        == (shape.co_code, shape.co_argcount, shape.co_kwonlyargcount, shape.co_nlocals, shape.co_freevars)
        and len(code.co_names) == 1
        and code.co_flags & STAR == shape.co_flags & STAR
    )
