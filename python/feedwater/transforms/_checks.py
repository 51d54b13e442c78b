"""Checks of transforms' arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import UnsupportedTransformError

__all__ = ["MOST", "check_number", "check_probability", "height_width", "is_list", "pair", "positive", "whole"]

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


def height_width(op: str, size: Any) -> tuple[int, int]:
    """(h, w) of a size argument that means a fixed size: one number is a square."""
    sides = whole(op, "size", size, (1, 2))
    return (sides[0], sides[-1])


def whole(op: str, argument: str, value: Any, lengths: tuple[int, ...]) -> tuple[int, ...]:
    numbers = (value,) if isinstance(value, int) else tuple(value) if isinstance(value, Sequence) else ()
    if len(numbers) not in lengths or not all(positive(number) for number in numbers):
        raise UnsupportedTransformError(
            f"{op}({argument}={value!r}): needs a positive whole number, or (height, width)"
        )
    return tuple(int(number) for number in numbers)


def positive(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0
