"""Tensors inside the containers of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["map_tensors"]


def map_tensors(torch: Any, value: Any, change: Callable[[Any], Any]) -> Any:
    """The same containers, with change applied to each tensor in them, in order."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: map_tensors(torch, one, change) for name, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(torch, one, change) for one in value))
    if type(value) in (list, tuple):
        return type(value)(map_tensors(torch, one, change) for one in value)
    return value
