"""The last hop as a table: what the ops from ToImage on make of each of the 256 values of each channel.

The arithmetic is torchvision's, on numpy: ToDtype multiplies by float32(1/255) where ToTensor divides by 255, Normalize
divides; half types are computed in float32 and rounded after each step.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import UnsupportedTransformError

__all__ = [
    "CHANNELS",
    "DTYPES",
    "IDENTITY",
    "VALUES",
    "Pixels",
    "Table",
    "dtype_name",
    "encode_erased",
    "first_that_becomes",
]

DTYPES = ("uint8", "float32", "float16", "bfloat16")
CHANNELS, VALUES = 3, 256
_Floats = npt.NDArray[np.float32]


def dtype_name(dtype: Any) -> str:
    """The name of a supported type, given as torch's, numpy's or its name."""
    name = dtype if isinstance(dtype, str) else str(dtype)
    name = name.removeprefix("torch.")
    if name not in DTYPES:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            pass
    if name not in DTYPES:
        raise UnsupportedTransformError(f"dtype {name} is not there: supported are {', '.join(DTYPES)}")
    return name


@dataclass(frozen=True)
class Pixels:
    """Values [3][256] of a type. Half types are held as the float32 numbers they round to."""

    values: _Floats
    dtype: str

    @classmethod
    def all_values(cls) -> Pixels:
        """Each value a picture can hold, in each channel."""
        return cls(np.broadcast_to(np.arange(VALUES, dtype=np.float32), (CHANNELS, VALUES)).copy(), "uint8")

    def to_dtype(self, dtype: str, *, scale: bool) -> Pixels:
        """As torchvision's to_dtype."""
        if dtype == "uint8" and self.dtype != "uint8":
            raise UnsupportedTransformError("ToDtype back to uint8 is not there: leave out both, or cast the batch")
        values = _round_values(self.values, dtype)
        if scale and self.dtype == "uint8" and dtype != "uint8":
            values = _round_values(values * np.float32(1 / 255), dtype)
        return Pixels(values, dtype)

    def divided_by_255(self) -> Pixels:
        """As torchvision's to_tensor."""
        return Pixels(self.values / np.float32(255), "float32")

    def normalize_by(self, mean: Sequence[float], std: Sequence[float]) -> Pixels:
        """As torchvision's normalize."""
        m, s = (_round_values(np.array(numbers, np.float64), self.dtype)[:, None] for numbers in (mean, std))
        centred = _round_values(self.values - m, self.dtype)
        return Pixels(_round_values(centred / s, self.dtype), self.dtype)

    def to_table(self) -> Table:
        """The bytes of the values."""
        if self.dtype == "bfloat16":
            return Table(self.dtype, (self.values.view(np.uint32) >> 16).astype("<u2").tobytes())
        return Table(self.dtype, self.values.astype(np.dtype(self.dtype).newbyteorder("<")).tobytes())


def _round_values(values: npt.NDArray[Any], dtype: str) -> _Floats:
    """values as the nearest numbers of the type, ties to even."""
    values = values.astype(np.float32)
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    if dtype == "bfloat16":
        bits = values.view(np.uint32).astype(np.int64)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return bits.astype(np.uint32).view(np.float32)
    return values


@dataclass(frozen=True)
class Table:
    """[3][256] elements of a type, little-endian."""

    dtype: str
    data: bytes

    def cast_to(self, dtype: str) -> Table:
        """The same values in another type, rounded to nearest."""
        if dtype == self.dtype:
            return self
        if dtype == "uint8":
            raise UnsupportedTransformError(
                f'dtype="uint8" would cut off what the transforms made ({self.dtype}): leave out ToDtype and Normalize'
            )
        return Pixels(_round_values(self.to_floats(), dtype), dtype).to_table()

    def to_floats(self) -> _Floats:
        """The values as float32, [3][256]."""
        if self.dtype == "bfloat16":
            bits = np.frombuffer(self.data, "<u2").astype(np.uint32) << 16
            return bits.view(np.float32).reshape(CHANNELS, VALUES)
        stored = np.dtype(self.dtype).newbyteorder("<")
        return np.frombuffer(self.data, stored).astype(np.float32).reshape(CHANNELS, VALUES)

    def is_identity(self) -> bool:
        """Whether it leaves pictures as they are."""
        return self.dtype == "uint8" and self.data == Pixels.all_values().to_table().data

    def encode_table(self) -> str | None:
        """As the agent takes it; None for the identity."""
        return None if self.is_identity() else base64.b64encode(self.data).decode()


def first_that_becomes(wanted: float, values: _Floats, dtype: str) -> int | None:
    """The least of the 256 values that becomes the number, as the type has it."""
    (places,) = np.nonzero(values == _round_values(np.array(wanted, np.float64), dtype))
    return int(places[0]) if len(places) else None


def encode_erased(tables: Sequence[Table]) -> str:
    """The one value per channel of each table, as the agent takes them."""
    size = np.dtype("<u2" if tables[0].dtype == "bfloat16" else tables[0].dtype).itemsize
    elements = [table.data[c * VALUES * size :][:size] for table in tables for c in range(CHANNELS)]
    return base64.b64encode(b"".join(elements)).decode()


IDENTITY = Pixels.all_values().to_table()
