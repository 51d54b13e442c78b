"""ToImage and what follows: arithmetic on single values, done at the last hop by a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import _value_table
from .._common.numbers import to_number
from ..errors import UnsupportedTransformError
from ._op import Pointwise

__all__ = [
    "ConvertImageDtype",
    "Normalize",
    "PILToTensor",
    "ToDtype",
    "ToImage",
    "ToPureTensor",
    "ToTensor",
]


@dataclass(frozen=True)
class ToImage(Pointwise):
    """From here on a tensor: channels first."""

    def apply(self, pixels: _value_table.Pixels) -> _value_table.Pixels:
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

    def apply(self, pixels: _value_table.Pixels) -> _value_table.Pixels:
        return pixels.divided_by_255() if pixels.dtype == "uint8" else pixels


@dataclass(frozen=True)
class ToDtype(Pointwise):
    """Another type; with scale the range 0…255 becomes 0…1."""

    dtype: Any
    scale: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _value_table.dtype_name(self.dtype))

    def apply(self, pixels: _value_table.Pixels) -> _value_table.Pixels:
        return pixels.to_dtype(self.dtype, scale=self.scale)


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
            given: Any = getattr(self, argument)
            one = to_number(given)
            numbers = tuple(map(float, given if one is None else (one,)))
            if len(numbers) not in (1, 3):
                raise UnsupportedTransformError(f"Normalize({argument}={numbers}): needs one number or three (RGB)")
            if not all(map(math.isfinite, numbers)):
                raise UnsupportedTransformError(f"Normalize({argument}={numbers}): needs finite numbers")
            object.__setattr__(self, argument, numbers)
        if 0.0 in self.std:
            raise UnsupportedTransformError(f"Normalize(std={self.std}): a zero would divide by zero")

    def apply(self, pixels: _value_table.Pixels) -> _value_table.Pixels:
        if pixels.dtype == "uint8":
            raise UnsupportedTransformError(
                "Normalize works on floats: put ToDtype(float32, scale=True) between ToImage and it"
            )
        return pixels.normalize_by(self.mean, self.std)
