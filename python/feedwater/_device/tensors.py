"""Tensors inside the containers of a batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence
from typing import Any

__all__ = ["list_tensors", "map_tensors"]


def list_tensors(torch: Any, value: Any) -> list[Any]:
    """The tensors in it, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    inside = value.values() if isinstance(value, Mapping) else value if _is_sequence(value) else ()
    return [tensor for one in inside for tensor in list_tensors(torch, one)]


def map_tensors(torch: Any, value: Any, change: Callable[[Any], Any], *, pins: bool = False) -> Any:
    """The same containers, with change applied to each tensor in them, in order.

    Containers of the program's own classes are copied, as torch's DataLoader copies them to pin them. With pins, what
    has a method pin_memory is what that returns.
    """
    if isinstance(value, torch.Tensor):
        return change(value)
    if pins and hasattr(value, "pin_memory") and not isinstance(value, type):
        return value.pin_memory()
    if isinstance(value, Mapping):
        made = {name: map_tensors(torch, one, change, pins=pins) for name, one in value.items()}
        return made if type(value) is dict else _refill_mapping(value, made)
    if not _is_sequence(value):
        return value
    items = [map_tensors(torch, one, change, pins=pins) for one in value]
    if type(value) in (list, tuple):
        return type(value)(items)
    return type(value)(*items) if hasattr(value, "_fields") else _refill_sequence(value, items)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (tuple, MutableSequence)) and not isinstance(value, (bytearray, memoryview))


def _refill_mapping(value: Any, made: dict[Any, Any]) -> Any:
    try:
        if not isinstance(value, MutableMapping):
            return type(value)(made)
        filled = copy.copy(value)
        filled.update(made)
    except TypeError:  # a class that is made or filled in its own way
        return made
    return filled


def _refill_sequence(value: Any, items: list[Any]) -> Any:
    try:
        if isinstance(value, tuple):
            return type(value)(items)
        filled = copy.copy(value)
        for place, item in enumerate(items):
            filled[place] = item
    except TypeError:
        return items
    return filled
