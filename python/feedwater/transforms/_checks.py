"""Checks of transforms' arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .._common import numbers
from ..errors import UnsupportedTransformError

__all__ = [
    "MOST",
    "check_colour",
    "check_fill",
    "check_number",
    "check_pair",
    "check_probability",
    "check_whole",
    "height_width",
    "is_colour",
    "is_list",
    "name_of",
    "to_numbers",
    "to_positive",
    "whole_sides",
]

MOST = 1e6
"""The largest factor, far beyond any real one."""


def check_probability(op: Any) -> None:
    """Raises UnsupportedTransformError if op.p is none."""
    check_number(op, "p", 0, 1)


def check_number(op: Any, argument: str, low: float, high: float) -> None:
    """Makes the argument Python's own number. Raises UnsupportedTransformError if it is none from low to high."""
    _set_within(op, argument, numbers.to_number, low, high, f"a number from {low:g} to {high:g}")


def check_whole(op: Any, argument: str, low: int, high: int) -> None:
    """The same of a whole number."""
    _set_within(op, argument, numbers.to_whole, low, high, f"a whole number from {low} to {high}")


def _set_within(op: Any, argument: str, one: Callable[[Any], Any], low: float, high: float, needs: str) -> None:
    value = getattr(op, argument)
    number = one(value)
    if number is None or not low <= number <= high:
        raise UnsupportedTransformError(f"{name_of(op)}({argument}={value!r}): needs {needs}")
    object.__setattr__(op, argument, number)


def name_of(op: Any) -> str:
    """How users call it: by the class of theirs that it stands for, if it has not the same name."""
    return str(getattr(op, "name", type(op).__name__))


def check_pair(op: Any, argument: str, low: float, high: float) -> tuple[float, float]:
    """The argument as two numbers from low to high, in ascending order."""
    value = getattr(op, argument)
    numbers = to_numbers(value) if is_list(value) else ()
    if len(numbers) != 2 or not low <= numbers[0] <= numbers[1] <= high:
        raise UnsupportedTransformError(
            f"{name_of(op)}({argument}={value!r}): needs two numbers, {low:g} <= min <= max <= {high:g}"
        )
    return float(numbers[0]), float(numbers[1])


def to_numbers(value: Any, one: Callable[[Any], Any] = numbers.to_number) -> tuple[Any, ...]:
    """A number, or a list of them, as a tuple of Python's own; empty where something else is among them."""
    numbers = tuple(map(one, value)) if is_list(value) else (one(value),)
    return () if None in numbers else numbers


def check_fill(op: Any) -> tuple[float, ...]:
    """fill as three numbers, black for None. Which ones there can be is decided where the kind of pictures is known."""
    numbers = to_numbers(0 if op.fill is None else op.fill)
    if len(numbers) not in (1, 3) or not all(map(math.isfinite, numbers)):
        raise UnsupportedTransformError(f"{name_of(op)}(fill={op.fill!r}): needs a number, or three (RGB)")
    return numbers * (3 // len(numbers))


def is_colour(op: Any) -> bool:
    """Whether fill is a colour of 8-bit pictures, or none."""
    return all(0 <= value <= 255 for value in getattr(op, "fill", None) or ())


def check_colour(op: Any) -> None:
    """Raises UnsupportedTransformError if fill is no colour of 8-bit pictures."""
    if not is_colour(op):
        given = op.fill[0] if len(set(op.fill)) == 1 else op.fill
        raise UnsupportedTransformError(
            f"{type(op).__name__}(fill={given!r}): needs a number from 0 to 255, or three (RGB)"
        )


def is_list(value: Any) -> bool:
    """Whether it is a sequence and no text."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def height_width(op: str, size: Any) -> tuple[int, int]:
    """(h, w) of a size argument that means a fixed size: one number is a square."""
    sides = whole_sides(op, "size", size, (1, 2))
    return (sides[0], sides[-1])


def whole_sides(op: str, argument: str, value: Any, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """One or more sides, each a whole number above 0, as many as one of lengths."""
    numbers = to_numbers(value, to_positive)
    if len(numbers) not in lengths:
        raise UnsupportedTransformError(
            f"{op}({argument}={value!r}): needs a positive whole number, or (height, width)"
        )
    return numbers


def to_positive(value: Any) -> int | None:
    """A whole number above 0, as Python's; None for what is none."""
    number = numbers.to_whole(value)
    return number if number is not None and number > 0 else None
