"""Transforms of colour, as torchvision's on PIL images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .errors import UnsupportedTransformError
from .transforms import Op

__all__ = [
    "JPEG",
    "ColorJitter",
    "GaussianBlur",
    "GaussianNoise",
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

MOST = 1e6
"""The largest factor, far beyond any real one."""
MOST_TAPS = 127
LEAST_SIGMA = 1e-6
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
            object.__setattr__(self, argument, _around(self, argument, 1.0, 0.0, MOST))
        object.__setattr__(self, "hue", _around(self, "hue", 0.0, -0.5, 0.5))

    def plan(self) -> dict[str, Any]:
        ranges = {name: getattr(self, name) for name in ("brightness", "contrast", "saturation", "hue")}
        return {"op": "ColorJitter", **{name: value and list(value) for name, value in ranges.items()}}


def _around(op: Any, argument: str, center: float, low: float, high: float) -> tuple[float, float] | None:
    """The range of a factor; None if it can only be center."""
    value = getattr(op, argument)
    if value is None:
        return None
    if is_list(value):
        ends = pair(op, argument, low, high)
    else:
        check_number(op, argument, 0, high - center)
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


@dataclass(frozen=True)
class RandomEqualize(_Sometimes):
    """Every channel's histogram made even, with probability p."""


@dataclass(frozen=True)
class RandomAutocontrast(_Sometimes):
    """Every channel stretched to the whole range, with probability p."""


@dataclass(frozen=True)
class RandomPosterize(Op):
    """Only the upper bits of every value kept, 1 to 8, with probability p."""

    bits: int
    p: float = 0.5

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
            object.__setattr__(self, argument, pair(self, argument, 0.0, MOST))
        object.__setattr__(self, "hue", pair(self, "hue", -0.5, 0.5))
        check_probability(self)

    def plan(self) -> dict[str, Any]:
        ranges = {name: list(getattr(self, name)) for name in ("brightness", "contrast", "saturation", "hue")}
        return {"op": "RandomPhotometricDistort", **ranges, "p": float(self.p)}


@dataclass(frozen=True)
class RandomChannelPermutation(Op):
    """Red, green and blue in random order."""

    def plan(self) -> dict[str, Any]:
        return {"op": "RandomChannelPermutation"}


@dataclass(frozen=True)
class GaussianBlur(Op):
    """Blurred by a kernel of so many taps (one number, or width and height), of random sigma."""

    kernel_size: int | Sequence[int]
    sigma: float | Sequence[float] = (0.1, 2.0)

    def __post_init__(self) -> None:
        sizes = tuple(self.kernel_size) if is_list(self.kernel_size) else (self.kernel_size,)  # type: ignore[arg-type]
        if len(sizes) not in (1, 2) or not all(isinstance(n, int) and n % 2 and 0 < n <= MOST_TAPS for n in sizes):
            raise UnsupportedTransformError(
                f"GaussianBlur(kernel_size={self.kernel_size!r}): needs an odd number up to {MOST_TAPS}, or two, "
                "for width and height"
            )
        object.__setattr__(self, "kernel_size", (sizes[0], sizes[-1]))
        if is_list(self.sigma):
            object.__setattr__(self, "sigma", pair(self, "sigma", LEAST_SIGMA, 1000))
        else:
            check_number(self, "sigma", LEAST_SIGMA, 1000)
            object.__setattr__(self, "sigma", (float(self.sigma), float(self.sigma)))  # type: ignore[arg-type]

    def plan(self) -> dict[str, Any]:
        return {"op": "GaussianBlur", "kernel_size": list(self.kernel_size), "sigma": list(self.sigma)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class GaussianNoise(Op):
    """Normal noise added, of this mean and sigma where white is 1. Not torch's own numbers, but their distribution."""

    mean: float = 0.0
    sigma: float = 0.1
    clip: bool = True

    def __post_init__(self) -> None:
        check_number(self, "mean", -MOST, MOST)
        check_number(self, "sigma", 0, MOST)
        if self.clip is not True:
            raise UnsupportedTransformError(f"GaussianNoise(clip={self.clip!r}): 8-bit values are always clipped")

    def plan(self) -> dict[str, Any]:
        return {"op": "GaussianNoise", "mean": float(self.mean), "sigma": float(self.sigma)}


@dataclass(frozen=True)
class JPEG(Op):
    """What a JPEG file keeps of the picture, of random quality from 1 to 100."""

    quality: int | Sequence[int]

    def __post_init__(self) -> None:
        ends: tuple[Any, ...] = (self.quality, self.quality)
        if is_list(self.quality):
            ends = tuple(self.quality)  # type: ignore[arg-type]
        if len(ends) != 2 or not all(isinstance(n, int) for n in ends) or not 1 <= ends[0] <= ends[1] <= 100:
            raise UnsupportedTransformError(
                f"JPEG(quality={self.quality!r}): needs a whole number from 1 to 100, or two in ascending order"
            )
        object.__setattr__(self, "quality", ends)

    def plan(self) -> dict[str, Any]:
        return {"op": "JPEG", "quality": list(self.quality)}  # type: ignore[arg-type]


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
