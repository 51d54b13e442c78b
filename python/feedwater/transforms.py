"""Transforms without torchvision: the same names, arguments and pixels as torchvision.transforms.v2.

They are plain values that describe what nodes do. The ops up to ToImage run on nodes, on 8-bit pictures. ToImage and
what follows is arithmetic on single values, done at the last hop by a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from . import _table
from .errors import UnsupportedTransformError

__all__ = [
    "JPEG",
    "AugMix",
    "AutoAugment",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "Identity",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShortestSize",
    "RandomSolarize",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "ScaleJitter",
    "ToDtype",
    "ToImage",
    "ToPureTensor",
    "ToTensor",
    "TrivialAugmentWide",
]


class Op:
    """A step that nodes run."""

    fixed_size: ClassVar[bool] = False
    alike: ClassVar[bool] = False
    """Whether it does the same to tensors, as it only moves values, and sets some to paints."""
    paints: ClassVar[tuple[int, ...]] = ()

    def plan(self) -> dict[str, Any]:
        """The step as the plan says it."""
        raise NotImplementedError


class Pointwise:
    """A step on single values, behind the pictures' way through the nodes."""

    def apply(self, pixels: _table.Pixels) -> _table.Pixels:
        """What it does to values; in the arithmetic of the type they have."""
        raise NotImplementedError


@dataclass(frozen=True)
class Compose:
    """Several transforms, one after another. May be nested."""

    transforms: Sequence[Any]

    def __post_init__(self) -> None:
        if isinstance(self.transforms, str) or not isinstance(self.transforms, Sequence):
            raise TypeError("Compose takes a sequence of transforms")
        if not self.transforms:
            raise ValueError("Compose needs at least one transform")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.transforms)


@dataclass(frozen=True)
class RandomResizedCrop(Op):
    """A random part of the picture, of random area and shape, resized to size."""

    size: int | Sequence[int]
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: Any = "bilinear"
    antialias: bool | None = True

    fixed_size = True

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "size", height_width(name, self.size))
        for argument, upper in (("scale", 1.0), ("ratio", None)):
            value = getattr(self, argument)
            if not isinstance(value, Sequence) or len(value) != 2:
                raise UnsupportedTransformError(f"{name}({argument}={value!r}): needs two numbers, (min, max)")
            low, high = float(value[0]), float(value[1])
            if not 0 < low <= high or (upper is not None and high > upper):
                bound = f" <= {upper:g}" if upper is not None else ""
                raise UnsupportedTransformError(f"{name}({argument}={value!r}): needs 0 < min <= max{bound}")
            object.__setattr__(self, argument, (low, high))
        _sizes.check_method(self)

    def plan(self) -> dict[str, Any]:
        return {
            "op": "RandomResizedCrop",
            "size": list(self.size),  # type: ignore[arg-type]
            "scale": list(self.scale),
            "ratio": list(self.ratio),
            **_sizes.method(self),
        }


@dataclass(frozen=True)
class Resize(Op):
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
            object.__setattr__(self, "size", _whole("Resize", "size", self.size, (1, 2)))
        if self.max_size is not None:
            self._check_max_size()
        _sizes.check_method(self)

    def _check_max_size(self) -> None:
        sides = tuple(self.size or (0,))  # type: ignore[arg-type]
        if not _positive(self.max_size):
            raise UnsupportedTransformError(f"Resize(max_size={self.max_size!r}): needs a positive whole number")
        if len(sides) == 2:
            raise UnsupportedTransformError("Resize(max_size=…) goes with one number for size")
        if self.max_size <= sides[0]:  # type: ignore[operator]
            raise UnsupportedTransformError(f"Resize(max_size={self.max_size}) must be above size, {sides[0]}")

    @property
    def fixed_size(self) -> bool:  # type: ignore[override]
        return self.size is not None and len(self.size) == 2  # type: ignore[arg-type]

    def plan(self) -> dict[str, Any]:
        return {
            "op": "Resize",
            "size": None if self.size is None else list(self.size),  # type: ignore[arg-type]
            "max_size": self.max_size,
            **_sizes.method(self),
        }


@dataclass(frozen=True)
class CenterCrop(Op):
    """The middle of the picture; zeros around it where the picture is smaller."""

    size: int | Sequence[int]

    alike = True
    paints = (0,)
    fixed_size = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", height_width("CenterCrop", self.size))

    def plan(self) -> dict[str, Any]:
        return {"op": "CenterCrop", "size": list(self.size)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class RandomHorizontalFlip(Op):
    """Left and right changed, with probability p."""

    p: float = 0.5

    alike = True

    def __post_init__(self) -> None:
        _check_probability(self)

    def plan(self) -> dict[str, Any]:
        return {"op": type(self).__name__, "p": float(self.p)}


@dataclass(frozen=True)
class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom changed, with probability p."""


@dataclass(frozen=True)
class ToImage(Pointwise):
    """From here on a tensor: channels first."""

    def apply(self, pixels: _table.Pixels) -> _table.Pixels:
        return pixels


@dataclass(frozen=True)
class PILToTensor(ToImage):
    """The same as ToImage here."""


@dataclass(frozen=True)
class ToPureTensor(ToImage):
    """Nothing here: batches are plain tensors."""


@dataclass(frozen=True)
class ToTensor(Pointwise):
    """From here on a float32 tensor: values divided by 255."""

    def apply(self, pixels: _table.Pixels) -> _table.Pixels:
        return pixels.divided_by_255() if pixels.dtype == "uint8" else pixels


@dataclass(frozen=True)
class ToDtype(Pointwise):
    """Another type; with scale the range 0…255 becomes 0…1."""

    dtype: Any
    scale: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _table.dtype_name(self.dtype))

    def apply(self, pixels: _table.Pixels) -> _table.Pixels:
        return pixels.to(self.dtype, scale=self.scale)


@dataclass(frozen=True)
class ConvertImageDtype(ToDtype):
    """ToDtype with scale."""

    dtype: Any = "float32"
    scale: bool = field(default=True, init=False)


@dataclass(frozen=True)
class Normalize(Pointwise):
    """(x - mean) / std, per channel."""

    mean: Sequence[float]
    std: Sequence[float]
    inplace: bool = False

    def __post_init__(self) -> None:
        for argument in ("mean", "std"):
            numbers = tuple(float(number) for number in getattr(self, argument))
            if len(numbers) not in (1, 3):
                raise UnsupportedTransformError(f"Normalize({argument}={numbers}): needs one number or three (RGB)")
            object.__setattr__(self, argument, numbers)
        if 0.0 in self.std:
            raise UnsupportedTransformError(f"Normalize(std={self.std}): a zero would divide by zero")

    def apply(self, pixels: _table.Pixels) -> _table.Pixels:
        if pixels.dtype == "uint8":
            raise UnsupportedTransformError(
                "Normalize works on floats: put ToDtype(float32, scale=True) between ToImage and it"
            )
        return pixels.normalized(self.mean, self.std)


def height_width(op: str, size: Any) -> tuple[int, int]:
    """(h, w) of a size argument that means a fixed size: one number is a square."""
    sides = _whole(op, "size", size, (1, 2))
    return (sides[0], sides[-1])


def _whole(op: str, argument: str, value: Any, lengths: tuple[int, ...]) -> tuple[int, ...]:
    numbers = (value,) if isinstance(value, int) else tuple(value) if isinstance(value, Sequence) else ()
    if len(numbers) not in lengths or not all(_positive(number) for number in numbers):
        raise UnsupportedTransformError(
            f"{op}({argument}={value!r}): needs a positive whole number, or (height, width)"
        )
    return tuple(int(number) for number in numbers)


def _positive(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0


def _check_probability(op: Any) -> None:
    if not isinstance(op.p, (int, float)) or not 0 <= op.p <= 1:
        raise UnsupportedTransformError(f"{type(op).__name__}(p={op.p!r}): needs a number from 0 to 1")


from . import _sizes  # noqa: E402 - needs Op
from ._colour import (  # noqa: E402 - needs Op
    ColorJitter,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
)
from ._containers import Identity, RandomApply, RandomChoice, RandomOrder  # noqa: E402 - needs Op
from ._erasing import RandomErasing  # noqa: E402
from ._lossy import JPEG, GaussianBlur, GaussianNoise  # noqa: E402 - needs Op
from ._policies import AugMix, AutoAugment, RandAugment, TrivialAugmentWide  # noqa: E402 - needs Op
from ._sizes import (  # noqa: E402
    Pad,
    RandomCrop,
    RandomResize,
    RandomShortestSize,
    RandomZoomOut,
    ScaleJitter,
)
from ._warp import RandomAffine, RandomPerspective, RandomRotation  # noqa: E402 - needs Op
