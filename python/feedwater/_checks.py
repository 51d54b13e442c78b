"""Checks of transforms' arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import UnsupportedTransformError

__all__ = ["MOST", "check_number", "check_probability", "is_list", "pair"]

MOST = 1e6
"""The largest factor, far beyond any real one."""


def check_probability(op: Any) -> None:
    """Raises UnsupportedTransformError if op.p is none."""
    check_number(op, "p", 0, 1)


def check_number(op: Any, argument: str, low: float, high: float) -> None:
    """Raises UnsupportedTransformError if the argument is no number from low to high."""
    value = getattr(op, argument)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise UnsupportedTransformError(
            f"{type(op).__name__}({argument}={value!r}): needs a number from {low:g} to {high:g}"
        )


def pair(op: Any, argument: str, low: float, high: float) -> tuple[float, float]:
    """The argument as two numbers from low to high, in ascending order."""
    value = getattr(op, argument)
    numbers = [float(number) for number in value if isinstance(number, (int, float))] if is_list(value) else []
    if len(numbers) != 2 or len(value) != 2 or not low <= numbers[0] <= numbers[1] <= high:
        raise UnsupportedTransformError(
            f"{type(op).__name__}({argument}={value!r}): needs two numbers, {low:g} <= min <= max <= {high:g}"
        )
    return numbers[0], numbers[1]


def is_list(value: Any) -> bool:
    """Whether it is a sequence and no text."""
    return isinstance(value, Sequence) and not isinstance(value, str)
