"""torch's data sets around others, Subset and ConcatDataset: whether they read as torch wrote them."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from .._torchvision.genuine import is_own
from ..errors import DataError

__all__ = ["check_sizes", "check_wrapper"]

READ_BY = ("__getitem__", "__getitems__", "__len__", "__getattribute__")
"""What a DataLoader asks of a data set's class. Of these __getitems__ is asked of the object too."""


def check_wrapper(source: Any) -> None:
    """Raises TypeError if what reads a Subset or a ConcatDataset was replaced by the program."""
    kind = type(source)
    for name in READ_BY:
        method = getattr(kind, name, None)
        if method is not None and not is_own(method):
            raise _replaced_error(f"{kind.__name__}.{name}")
    own, plain = getattr(source, "__getitems__", None), getattr(kind, "__getitems__", None)
    if own is not None and (plain is None or getattr(own, "__func__", None) is not plain):
        raise _replaced_error(f"__getitems__ of this {kind.__name__}")


def check_sizes(source: Any, sizes: list[int]) -> None:
    """Raises DataError if a ConcatDataset was made of parts of other sizes than it has now."""
    now, made = list(accumulate(sizes)), list(source.cumulative_sizes)
    if now != made:
        raise DataError(
            f"the ConcatDataset's parts end at samples {now}, and its cumulative_sizes are {made}, as they were when "
            "it was made: make a new one of the parts"
        )


def _replaced_error(what: str) -> TypeError:
    return TypeError(
        f"{what} was replaced, which is on the way from a file to a picture: nodes read by themselves. Put it back "
        "before the Loader is made, or pass what is behind it, and do the rest by python=fn(sample, rng) or "
        "batch_transform=fn(batch, rng)"
    )
