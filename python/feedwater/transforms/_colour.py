"""Transforms of colour, as torchvision's on PIL images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UnsupportedTransformError
from ._checks import MOST, check_number, check_pair, check_probability, is_list
from ._op import Op

__all__ = [
    "ColorJitter",
    "Grayscale",
    "RandomAdjustSharpness",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomEqualize",
    "RandomGrayscale",
    "RandomInvert",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomSolarize",
]

Range = float | Sequence[float] | None


@dataclass(frozen=True)
class ColorJitter(Op):
    """Brightness, contrast, saturation and hue changed by random factors, in random order."""

    brightness: Range = None
    contrast: Range = None
    saturation: Range = None
    hue: Range = None

    def __post_init__(self) -> None:
        for argument in ("brightness", "contrast", "saturation"):
            object.__setattr__(self, argument, _range_around(self, argument, 1.0, 0.0, MOST))
        object.__setattr__(self, "hue", _range_around(self, "hue", 0.0, -0.5, 0.5))

    def plan(self) -> dict[str, Any]:
        ranges = {name: getattr(self, name) for name in ("brightness", "contrast", "saturation", "hue")}
        return {"op": "ColorJitter", **{name: value and list(value) for name, value in ranges.items()}}


def _range_around(op: Any, argument: str, center: float, low: float, high: float) -> tuple[float, float] | None:
    """The range of a factor; None if it can only be center."""
    value = getattr(op, argument)
    if value is None:
        return None
    if is_list(value):
        ends = check_pair(op, argument, low, high)
    else:
        check_number(op, argument, 0, high - center)
        value = getattr(op, argument)
        ends = (max(center - value, low), float(center + value))
    return None if ends == (center, center) else ends


@dataclass(frozen=True)
class Grayscale(Op):
    """Grey, in three channels: num_output_channels must be 3."""

    num_output_channels: int = 1

    def __post_init__(self) -> None:
        if self.num_output_channels != 3:
            raise UnsupportedTransformError(
                f"Grayscale(num_output_channels={self.num_output_channels!r}): pictures have 3 channels: "
                "pass num_output_channels=3 and take one channel of the batch"
            )

    def plan(self) -> dict[str, Any]:
        return {"op": "Grayscale", "num_output_channels": 3}


@dataclass(frozen=True)
class _Sometimes(Op):
    """What has p alone as its argument."""

    p: float = 0.5

    def __post_init__(self) -> None:
        check_probability(self)

    def plan(self) -> dict[str, Any]:
        return {"op": type(self).__name__, "p": float(self.p)}


@dataclass(frozen=True)
class RandomGrayscale(_Sometimes):
    """Grey, in three channels, with probability p."""

    p: float = 0.1


@dataclass(frozen=True)
class RandomInvert(_Sometimes):
    """A negative, with probability p."""

    same = True


@dataclass(frozen=True)
class RandomEqualize(_Sometimes):
    """Every channel's histogram made even, with probability p."""

    same = True


@dataclass(frozen=True)
class RandomAutocontrast(_Sometimes):
    """Every channel stretched to the whole range, with probability p."""


@dataclass(frozen=True)
class RandomPosterize(Op):
    """Only the upper bits of every value kept, 1 to 8, with probability p."""

    bits: int
    p: float = 0.5

    same = True

    def __post_init__(self) -> None:
        check_probability(self)
        check_number(self, "bits", 1, 8)
        if self.bits != int(self.bits):
            raise UnsupportedTransformError(f"RandomPosterize(bits={self.bits!r}): needs a whole number from 1 to 8")

    def plan(self) -> dict[str, Any]:
        return {"op": "RandomPosterize", "bits": int(self.bits), "p": float(self.p)}


@dataclass(frozen=True)
class RandomSolarize(Op):
    """Values from threshold on inverted, with probability p."""

    threshold: float
    p: float = 0.5

    def __post_init__(self) -> None:
        check_probability(self)
        check_number(self, "threshold", -MOST, MOST)

    def on_tensor(self) -> Op:
        if self.threshold > 255:
            raise UnsupportedTransformError(
                f"RandomSolarize(threshold={self.threshold!r}) behind ToImage: needs 255 at most"
            )
        return super().on_tensor()

    def plan(self) -> dict[str, Any]:
        return {"op": "RandomSolarize", "threshold": float(self.threshold), "p": float(self.p)}


@dataclass(frozen=True)
class RandomAdjustSharpness(Op):
    """Blurred (factor 0), as it is (1), or sharper (above 1), with probability p."""

    sharpness_factor: float
    p: float = 0.5

    def __post_init__(self) -> None:
        check_probability(self)
        check_number(self, "sharpness_factor", 0, MOST)

    def plan(self) -> dict[str, Any]:
        return {
            "op": "RandomAdjustSharpness",
            "sharpness_factor": float(self.sharpness_factor),
            "p": float(self.p),
        }


@dataclass(frozen=True)
class RandomPhotometricDistort(Op):
    """Brightness, contrast, saturation, hue and the order of channels changed at random, each with probability p."""

    brightness: Sequence[float] = (0.875, 1.125)
    contrast: Sequence[float] = (0.5, 1.5)
    saturation: Sequence[float] = (0.5, 1.5)
    hue: Sequence[float] = (-0.05, 0.05)
    p: float = 0.5

    def __post_init__(self) -> None:
        for argument in ("brightness", "contrast", "saturation"):
            object.__setattr__(self, argument, check_pair(self, argument, 0.0, MOST))
        object.__setattr__(self, "hue", check_pair(self, "hue", -0.5, 0.5))
        check_probability(self)

    def plan(self) -> dict[str, Any]:
        ranges = {name: list(getattr(self, name)) for name in ("brightness", "contrast", "saturation", "hue")}
        return {"op": "RandomPhotometricDistort", **ranges, "p": float(self.p)}


@dataclass(frozen=True)
class RandomChannelPermutation(Op):
    """Red, green and blue in random order."""

    same = True

    def plan(self) -> dict[str, Any]:
        return {"op": "RandomChannelPermutation"}
