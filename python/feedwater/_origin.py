"""Whether an object is torchvision's own; a module apart, for it is asked where no transform need be known."""

from __future__ import annotations

from types import FunctionType
from typing import Any

__all__ = ["is_torchvision"]


def is_torchvision(thing: Any) -> bool:
    """Whether its exact class, or it if it is a function, is torchvision's."""
    home = getattr(thing, "__module__", None) if isinstance(thing, FunctionType) else type(thing).__module__
    return str(home).startswith("torchvision.")
