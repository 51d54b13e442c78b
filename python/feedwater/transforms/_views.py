"""Crops, flips and sizes that nearly everybody uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UnsupportedTransformError
from ._checks import check_probability, height_width, is_list, to_numbers, to_positive, whole_sides
from ._op import Op
from ._sizes import Resizing, check_method, plan_method

__all__ = [
    "CenterCrop",
    "FiveCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "TenCrop",
]


@dataclass(frozen=True)
class RandomResizedCrop(Resizing):
    """A random part of the picture, of random area and shape, resized to size."""

    size: int | Sequence[int]
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: Any = "bilinear"
    antialias: bool | None = True

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "size", height_width(name, self.size))
        for argument, least, most in (("scale", 0, 1e3), ("ratio", 1e-6, 1e6)):
            value = getattr(self, argument)
            ends = to_numbers(value) if is_list(value) else ()
            if len(ends) != 2:
                raise UnsupportedTransformError(f"{name}({argument}={value!r}): needs two numbers, (min, max)")
            low, high = map(float, ends)
            if not least <= low <= high <= most:
                raise UnsupportedTransformError(
                    f"{name}({argument}={value!r}): needs two ascending numbers from {least:g} to {most:g}"
                )
            object.__setattr__(self, argument, (low, high))
        check_method(self)

    def plan(self) -> dict[str, Any]:
        return {
            "op": "RandomResizedCrop",
            "size": list(self.size),  # type: ignore[arg-type]
            "scale": list(self.scale),
            "ratio": list(self.ratio),
            **plan_method(self),
        }


@dataclass(frozen=True)
class Resize(Resizing):
    """The picture at another size: (h, w), or its short edge, with max_size as the limit of the long one."""

    size: int | Sequence[int] | None
    interpolation: Any = "bilinear"
    max_size: int | None = None
    antialias: bool | None = True

    def __post_init__(self) -> None:
        if self.size is None:
            if self.max_size is None:
                raise UnsupportedTransformError("Resize(size=None): needs max_size")
        else:
            object.__setattr__(self, "size", whole_sides("Resize", "size", self.size, (1, 2)))
        if self.max_size is not None:
            self._check_max_size()
        check_method(self)

    def _check_max_size(self) -> None:
        sides = tuple(self.size or (0,))  # type: ignore[arg-type]
        most = to_positive(self.max_size)
        if most is None:
            raise UnsupportedTransformError(f"Resize(max_size={self.max_size!r}): needs a positive whole number")
        if len(sides) == 2:
            raise UnsupportedTransformError("Resize(max_size=…) goes with one number for size")
        if most <= sides[0]:
            raise UnsupportedTransformError(f"Resize(max_size={self.max_size}) must be above size, {sides[0]}")
        object.__setattr__(self, "max_size", most)

    def plan(self) -> dict[str, Any]:
        return {
            "op": "Resize",
            "size": None if self.size is None else list(self.size),  # type: ignore[arg-type]
            "max_size": self.max_size,
            **plan_method(self),
        }


@dataclass(frozen=True)
class CenterCrop(Op):
    """The middle of the picture; zeros around it where the picture is smaller."""

    size: int | Sequence[int]

    alike = True
    paints = (0,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", height_width("CenterCrop", self.size))

    def plan(self) -> dict[str, Any]:
        return {"op": "CenterCrop", "size": list(self.size)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class FiveCrop(Op):
    """The four corners and the middle: batches are [B, 5, 3, h, w]. Behind all that nodes do."""

    size: int | Sequence[int]

    alike = True
    crops = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", height_width(type(self).__name__, self.size))

    def plan(self) -> dict[str, Any]:
        return {"op": type(self).__name__, "size": list(self.size)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class TenCrop(FiveCrop):
    """The same, and of the flipped picture too: [B, 10, 3, h, w]."""

    vertical_flip: bool = False

    crops = 10

    def plan(self) -> dict[str, Any]:
        return {**super().plan(), "vertical_flip": bool(self.vertical_flip)}


@dataclass(frozen=True)
class RandomHorizontalFlip(Op):
    """Left and right changed, with probability p."""

    p: float = 0.5

    alike = True

    def __post_init__(self) -> None:
        check_probability(self)

    def plan(self) -> dict[str, Any]:
        return {"op": type(self).__name__, "p": float(self.p)}


@dataclass(frozen=True)
class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom changed, with probability p."""
