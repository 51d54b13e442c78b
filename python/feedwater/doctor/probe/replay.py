"""Batches that were seen, in place of the next ones: how fast the loop is with data ready. It voids the training."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from ..._meter.gpu_events import synchronize_gpu
from . import settings

__all__ = ["Replay"]

FROM = 30
BATCHES = 8
WARM = 7
BLOCK = 8
"""Steps that are timed together. A GPU is waited for between them: the host may be far ahead of it."""


class Replay:
    """Of one loop."""

    def __init__(self) -> None:
        self.step_ns: list[int] = []
        """Means of blocks of steps."""
        self._kept: list[Any] = []
        self._began = 0

    def remember_batch(self, batch: Any) -> None:
        """Keeps a batch."""
        if settings.REPLAY and len(self._kept) < BATCHES:
            self._kept.append(batch)

    def batch_at(self, step: int) -> Any:
        """The batch of a step; None where the real one is to come."""
        served = step - FROM
        if not (0 <= served < settings.REPLAY and self._kept):
            return None
        if served >= WARM and (served - WARM) % BLOCK == 0:
            self._time_step()
        return self._kept[served % len(self._kept)]

    def _time_step(self) -> None:
        synchronize_gpu()
        now = perf_counter_ns()
        if self._began:
            self.step_ns.append((now - self._began) // BLOCK)
        self._began = now
