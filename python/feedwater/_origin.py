"""Whether an object is torchvision's own, and which generation's; apart, for it is asked where no transform is."""

from __future__ import annotations

from types import FunctionType
from typing import Any

__all__ = ["FIRST", "is_first", "is_torchvision", "is_v2"]

FIRST = ("torchvision.transforms.transforms", "torchvision.transforms.autoaugment")
"""Where the transforms of the first generation are; those of v2 are below torchvision.transforms.v2."""


def is_torchvision(thing: Any) -> bool:
    """Whether its exact class, or it if it is a function, is torchvision's."""
    home = getattr(thing, "__module__", None) if isinstance(thing, FunctionType) else type(thing).__module__
    return str(home).startswith("torchvision.")


def is_first(thing: Any) -> bool:
    """Whether its exact class is one of torchvision.transforms, not of v2."""
    return type(thing).__module__ in FIRST


def is_v2(thing: Any) -> bool:
    """Whether it is a transform of torchvision.transforms.v2, or of a class derived from one."""
    return any(base.__module__.startswith("torchvision.transforms.v2.") for base in type(thing).__mro__)
