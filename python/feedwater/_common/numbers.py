"""Numbers as users pass them, numpy's too, as Python's own, which plans and messages are made of."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

__all__ = ["number", "whole"]


def whole(value: Any) -> int | None:
    """A whole number, numpy's too, as Python's; None for what is none."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def number(value: Any) -> int | float | None:
    """A number, numpy's too, as Python's; None for what is none."""
    count = whole(value)
    if count is None and isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    return count
