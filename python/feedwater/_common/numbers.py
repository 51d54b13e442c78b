"""Numbers as users pass them, numpy's too, as Python's own, which plans and messages are made of."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

__all__ = ["to_number", "to_whole"]


def to_whole(value: Any) -> int | None:
    """A whole number, numpy's too, as Python's; None for what is none."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def to_number(value: Any) -> int | float | None:
    """A number, numpy's too, as Python's; None for what is none."""
    count = to_whole(value)
    if count is None and isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    return count
