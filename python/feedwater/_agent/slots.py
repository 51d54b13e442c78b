"""The slots of one Loader: memory shared with the agent, and who holds which part of it.

A slot is lent to the agent by a want, held by a finished batch that waits for its turn, or leased to the user. The
trainer's side owns the memory, so nothing is lost with an agent.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.constants import ALIGN
from .._device.registration import Registered
from .._device.runtime import Registrar
from . import memory

__all__ = ["Field", "Lease", "Slots"]

VALUE_HEAD = 4
"""Bytes before a value, that say how many it has."""
HUGE_PAGE = 2 << 20
PAGE = mmap.PAGESIZE
"""What a slot begins at a multiple of: what the driver registers is whole pages, which are no other slot's."""


@dataclass(frozen=True)
class Field:
    """One array of a batch, as the agent places it in every slot."""

    name: str
    dtype: str
    """numpy's name of the type; "bfloat16" too."""
    shape: tuple[int, ...]
    """Of one sample; a 0 differs from sample to sample."""
    offset: int

    @cached_property
    def stored_type(self) -> np.dtype[Any]:
        """The type numpy knows it by."""
        return np.dtype("uint16" if self.dtype == "bfloat16" else self.dtype)

    @cached_property
    def typestr(self) -> str:
        """That type as array interfaces name it."""
        name: str = self.stored_type.str
        return name

    @cached_property
    def ragged(self) -> bool:
        """Whether samples differ in size."""
        return 0 in self.shape


class Lease:
    """Room of one delivered batch: the slot is free exactly when this object is gone.

    It is no ndarray: numpy collapses the base of a view over chains of ndarrays, so any array we would watch could be
    dropped while views of it live. But it is the base of every array made from it, and every tensor's storage holds
    such an array. It also keeps the mapping; nobody ever calls close on that, which would unmap live tensors.
    """

    __slots__ = ("__array_interface__", "__weakref__", "memory")

    def __init__(self, memory: Any, address: int, shape: tuple[int, ...], typestr: str) -> None:
        self.memory = memory
        """The mapping, or what owns it; with it a lease of the same slot that was made before, and lives."""
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": typestr, "version": 3}


class Slots:
    """Some slots of stride bytes each. Not for two threads at once."""

    def __init__(self, count: int, stride: int) -> None:
        self.count, self.stride = count, stride
        self.fields: dict[str, Field] = {}
        self.file, self.reserved = memory.create_shared_file(count * stride)
        mapping = mmap.mmap(self.file, count * stride)
        _advise_huge_pages(mapping)
        self.memory: mmap.mmap | Registered = mapping
        self._bytes = np.frombuffer(mapping, np.uint8)
        self._address = self._bytes.ctypes.data
        self._registered: set[int] = set()
        self._leases: dict[int, weakref.ref[Lease]] = {}
        """Of slots the program may hold. They are looked at, never called back: no finaliser of ours runs anywhere.

        A batch that is made once more, as after an exception of batch_transform, has a lease that holds the one before.
        """
        self.columns: dict[str, npt.NDArray[Any]] = {}
        """Fields of one number per sample, a row for each slot: to read or write while the slot is not the agent's."""

    def place_fields(self, fields: Collection[Field], batch: int) -> None:
        """Where the agent puts fields in each slot: for batch samples, however many there are."""
        self.fields = {field.name: field for field in fields}
        for field in fields:
            if not field.shape:
                shape, strides = (self.count, batch), (self.stride, field.stored_type.itemsize)
                self.columns[field.name] = np.ndarray(shape, field.stored_type, self._bytes, field.offset, strides)

    def find_free_slot(self, busy: set[int]) -> int | None:
        """The lowest slot that is nobody's; so slots that are not needed are never touched and cost nothing."""
        leases = self._leases
        for slot in range(self.count):
            if slot not in busy and (slot not in leases or leases[slot]() is None):
                return slot
        return None

    def await_slot(self) -> bool:
        """Waits until one more slot can be free, where that is a matter of GPUs; whether it waited."""
        return False

    def count_unleased(self) -> int:
        """How many slots no live tensor holds."""
        free = self.count
        for lease in self._leases.values():
            if lease() is not None:
                free -= 1
        return free

    def lease_array(self, slot: int, field: Field, count: int) -> npt.NDArray[Any]:
        """The field's array of the batch in slot. The slot is the user's until nothing made from the array is left."""
        address = self._address + slot * self.stride + field.offset
        return np.asarray(self._make_lease(slot, address, (count, *field.shape), field.typestr))

    def lease_tail(self, slot: int, field: Field) -> npt.NDArray[np.uint8]:
        """All bytes of slot from the field on, leased: where samples of different sizes lie."""
        address = self._address + slot * self.stride + field.offset
        return np.asarray(self._make_lease(slot, address, (self.stride - field.offset,), "|u1"))

    def _make_lease(self, slot: int, address: int, shape: tuple[int, ...], typestr: str) -> Lease:
        before = self._leases[slot]() if slot in self._leases else None
        lease = Lease(self.memory if before is None else (self.memory, before), address, shape, typestr)
        if before is None:
            self._leases[slot] = weakref.ref(lease)
        return lease

    def read_values(self, slot: int, name: str, count: int) -> list[bytes]:
        """Values of the batch in slot, copied: rows that begin with how many bytes the value has that follows."""
        field = self.fields[name]
        start, width = slot * self.stride + field.offset, field.shape[0]
        rows = self._bytes[start : start + count * width].reshape(count, width)
        sizes = np.ascontiguousarray(rows[:, :VALUE_HEAD]).view("<u4").ravel().tolist()
        return [row[VALUE_HEAD : VALUE_HEAD + size].tobytes() for row, size in zip(rows, sizes)]

    def register_slot(self, slot: int, runtime: Registrar) -> str:
        """Tells the GPU's driver of slot, once, before the first copy from it. Why the driver refuses, or "".

        Before leases of the slot are made: they hold what is registered.
        """
        if slot in self._registered:
            return ""
        if not isinstance(self.memory, Registered):
            self.memory = Registered(self.memory)
        if self.memory.register_part(runtime, self._address + slot * self.stride, self.stride):
            self._registered.add(slot)
        return self.memory.refused

    def close(self) -> None:
        """Closes the file; the mapping lives as long as the last tensor in it."""
        file, self.file = self.file, -1
        if file >= 0:
            os.close(file)


def _advise_huge_pages(mapping: mmap.mmap) -> None:
    try:
        mapping.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a kernel without huge pages for shared memory
        pass


def align_array(size: int) -> int:
    """What an array of that many bytes takes in a slot, where each begins at a multiple of ALIGN."""
    return _round_up(size, ALIGN)


def align_stride(size: int) -> int:
    """A stride of at least size bytes: whole pages, whole huge pages where that wastes little."""
    unit = HUGE_PAGE if size >= HUGE_PAGE else PAGE
    return _round_up(max(size, 1), unit)


def _round_up(size: int, unit: int) -> int:
    """The first multiple of unit that is not less than size."""
    return -(-size // unit) * unit
