"""Transforms that take detail away: blur, noise, compression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._common.numbers import to_whole
from ..errors import UnsupportedTransformError
from ._checks import MOST, check_number, check_pair, is_list, to_numbers
from ._op import Op

__all__ = ["JPEG", "GaussianBlur", "GaussianNoise"]

MOST_TAPS = 127
LEAST_SIGMA = 1e-6


@dataclass(frozen=True)
class GaussianBlur(Op):
    """Blurred by a kernel of so many taps (one number, or width and height), of random sigma."""

    kernel_size: int | Sequence[int]
    sigma: float | Sequence[float] = (0.1, 2.0)

    same = True

    def __post_init__(self) -> None:
        sizes = to_numbers(self.kernel_size, to_whole)
        if len(sizes) not in (1, 2) or not all(n % 2 and 0 < n <= MOST_TAPS for n in sizes):
            raise UnsupportedTransformError(
                f"GaussianBlur(kernel_size={self.kernel_size!r}): needs an odd number up to {MOST_TAPS}, or two, "
                "for width and height"
            )
        object.__setattr__(self, "kernel_size", (sizes[0], sizes[-1]))
        if is_list(self.sigma):
            object.__setattr__(self, "sigma", check_pair(self, "sigma", LEAST_SIGMA, 1000))
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

    same = True

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

    same = True

    def __post_init__(self) -> None:
        ends = to_numbers(self.quality, to_whole) * (1 if is_list(self.quality) else 2)
        if len(ends) != 2 or not 1 <= ends[0] <= ends[1] <= 100:
            raise UnsupportedTransformError(
                f"JPEG(quality={self.quality!r}): needs a whole number from 1 to 100, or two in ascending order"
            )
        object.__setattr__(self, "quality", ends)

    def plan(self) -> dict[str, Any]:
        return {"op": "JPEG", "quality": list(self.quality)}  # type: ignore[arg-type]
