"""RandomErasing: nodes draw the rectangles, the last hop fills them with what the steps behind make of the value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _value_table
from ..errors import UnsupportedTransformError
from ._checks import check_probability, is_list, to_numbers
from ._op import Pointwise

__all__ = ["RandomErasing", "make_erasure"]


@dataclass(frozen=True)
class RandomErasing(Pointwise):
    """A random rectangle set to value, with probability p."""

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: Any = 0
    inplace: bool = False

    def __post_init__(self) -> None:
        check_probability(self)
        for argument, upper in (("scale", 1.0), ("ratio", 1e6)):
            given = getattr(self, argument)
            numbers = to_numbers(given) if is_list(given) else ()
            if len(numbers) != 2 or not 0 <= numbers[0] <= numbers[1] <= upper:
                raise self._make_refusal(argument, f"two ascending numbers up to {upper:g}")
            object.__setattr__(self, argument, (float(numbers[0]), float(numbers[1])))
        if self.ratio[0] < 1e-6:
            raise self._make_refusal("ratio", "numbers above 0")
        self._set_value()

    def _set_value(self) -> None:
        value = self.value
        if value is None or value == "random":  # torchvision keeps None
            object.__setattr__(self, "value", "random")
            return
        numbers = to_numbers(value)
        if len(numbers) not in (1, 3):
            raise self._make_refusal("value", "a number, three (RGB), or 'random'")
        object.__setattr__(self, "value", tuple(map(float, numbers)))

    def _make_refusal(self, argument: str, needs: str) -> UnsupportedTransformError:
        return UnsupportedTransformError(f"RandomErasing({argument}={getattr(self, argument)!r}): needs {needs}")

    def plan(self) -> dict[str, Any]:
        """The step as the plan says it."""
        return {
            "op": "RandomErasing",
            "p": float(self.p),
            "scale": list(self.scale),
            "ratio": list(self.ratio),
            "value": self.value if self.value == "random" else list(self.value),
        }

    def apply(self, pixels: _value_table.Pixels) -> _value_table.Pixels:
        return pixels


def make_erasure(step: RandomErasing, dtype: str, behind: Sequence[Pointwise]) -> _value_table.Table:
    """What fills its rectangles: the value, as the type that pictures have there, and as the steps behind change it.

    It is written as a table in which every value becomes the same.
    """
    if step.value == "random":
        return _make_noise(dtype, behind)
    numbers = step.value
    if dtype == "uint8" and not all(0 <= number <= 255 and number.is_integer() for number in numbers):
        raise UnsupportedTransformError(
            f"RandomErasing(value={numbers}) on 8-bit pictures: needs whole numbers from 0 to 255, or ToDtype before it"
        )
    values = np.empty((_value_table.CHANNELS, _value_table.VALUES), np.float32)
    values[:] = np.array(numbers, np.float32)[:, None]
    pixels = _value_table.Pixels(_value_table._round_values(values, dtype), dtype)
    for other in behind:
        pixels = other.apply(pixels)
    return pixels.to_table()


def _make_noise(dtype: str, behind: Sequence[Pointwise]) -> _value_table.Table:
    """What goes for noise, which the agent makes: nothing. Steps behind would have to change it."""
    if dtype == "uint8":
        raise UnsupportedTransformError('RandomErasing(value="random") on 8-bit pictures: put ToDtype before it')
    probe = _value_table.Pixels(np.ones((_value_table.CHANNELS, _value_table.VALUES), np.float32), dtype)
    for other in behind:
        changed = other.apply(probe)
        if not np.array_equal(changed.values, probe.values) or changed.dtype != dtype:
            raise UnsupportedTransformError(
                f'{type(other).__name__} after RandomErasing(value="random"): put RandomErasing last'
            )
    return _value_table.Pixels(np.zeros_like(probe.values), dtype).to_table()
