"""Slots that the GPUs' driver may read, also when a batch's last tensor is gone; see feedwater._device.pinned."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._device.pinned import Pinning
from .._device.runtime import Event
from .slots import Field, Slots

__all__ = ["PinnedSlots"]


class PinnedSlots(Slots):
    """Slots that are registered at their first use, and free when no copy can read them any more."""

    def __init__(self, count: int, stride: int, pinning: Pinning) -> None:
        super().__init__(count, stride)
        self._pinning = pinning
        self._fences: dict[int, list[Event]] = {}
        """Of slots whose lease is dead, in the order in which that was seen."""

    def find_free_slot(self, busy: set[int]) -> int | None:
        with self._pinning.explained:
            self._fence_dead()
        return super().find_free_slot(busy | self._fences.keys() | self._leases.keys())

    def _fence_dead(self) -> None:
        """Records events behind what may read the slots of dead leases; forgets those that the GPUs have come to.

        While a CUDA graph is captured neither is possible, and such slots are in use still.
        """
        host = self._pinning.find_host()
        if host is not None and host.is_capturing():
            return
        for slot in [slot for slot, lease in self._leases.items() if lease() is None]:
            self._fences[slot] = self._pinning.record_fence()  # noted before it is no lease: never free in between
            del self._leases[slot]
        for slot in [slot for slot, events in self._fences.items() if all(event.done() for event in events)]:
            del self._fences[slot]

    def await_slot(self) -> bool:
        with self._pinning.explained:
            self._fence_dead()
            if not self._fences:
                return False
            slot, events = next(iter(self._fences.items()))
            for event in events:
                event.wait()
        del self._fences[slot]
        return True

    def lease_array(self, slot: int, field: Field, count: int) -> npt.NDArray[Any]:
        self._register(slot)
        return super().lease_array(slot, field, count)

    def lease_tail(self, slot: int, field: Field) -> npt.NDArray[np.uint8]:
        self._register(slot)
        return super().lease_tail(slot, field)

    def _register(self, slot: int) -> None:
        host = self._pinning.find_host()
        if host is None:
            return
        with self._pinning.explained:
            reason = self.register_slot(slot, host)
        if reason:
            self._pinning.warn_refused(reason)
