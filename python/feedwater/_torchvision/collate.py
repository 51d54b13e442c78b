"""Whether torch's functions that make a batch of samples are its own: what a program replaced would not be heard."""

from __future__ import annotations

import sys
from numbers import Number

from .genuine import is_own

__all__ = ["replaced_collate"]

HOME = "torch.utils.data._utils.collate"
FUNCTIONS = ("default_collate", "collate")


def replaced_collate() -> str | None:
    """What of torch's default_collate was replaced, by name; None if all that pictures and labels meet is its own."""
    home = sys.modules.get(HOME)
    if home is None:
        return None
    for name in FUNCTIONS:
        if not is_own(getattr(home, name)):
            return f"{HOME}.{name}"
    torch = sys.modules["torch"]
    for kind, function in list(home.default_collate_fn_map.items()):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if any(one in (torch.Tensor, int, float, object) or one is Number for one in kinds) and not is_own(function):
            return f"default_collate_fn_map[{getattr(kind, '__name__', kind)}]"
    return None
