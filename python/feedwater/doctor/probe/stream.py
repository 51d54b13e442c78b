"""The GPU under a loop: marks around next, read later without a sync, for idle and for the step on the GPU's clock."""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import Any

from ..._meter.gpu_events import Cuda, Mark

MOST_PENDING = 256
LOOKS = (8, 64, 512, 4096)
"""Readings after which other streams and GPUs are looked for."""


class Row:
    """One step: from one return of next to the following. Times in ns; None: not known, or not yet."""

    __slots__ = ("burst", "dry", "gpu_ns", "held", "idle_ns", "ready", "step_ns", "wait_ns")

    def __init__(self, wait_ns: int, step_ns: int, ready: int, held: int, burst: bool) -> None:
        self.wait_ns, self.step_ns, self.ready, self.held, self.burst = wait_ns, step_ns, ready, held, burst
        self.idle_ns: int | None = None
        self.gpu_ns: int | None = None
        self.dry: bool | None = None

    def dump(self) -> list[Any]:
        """For the report."""
        return [self.wait_ns, self.step_ns, self.ready, self.held, self.burst, self.idle_ns, self.gpu_ns, self.dry]


class Stream:
    """The stream of one loop. unknown: why there are no readings; "" while there are, or while no GPU is used."""

    def __init__(self) -> None:
        self.unknown = ""
        self.gpu: Cuda | None = None
        self._before: Mark | None = None
        self._last: Mark | None = None
        self._last_step = 0
        self._dry: bool | None = None
        self._pending: deque[tuple[Row, Mark, Mark, Mark | None, int]] = deque()
        self._place: tuple[int, int] | None = None
        self._readings = 0

    @property
    def name(self) -> str:
        """Of the GPU, "" without one."""
        return "cuda" if self.gpu is not None else ""

    def enter_next(self) -> None:
        """next was called."""
        self.read_marks()
        self._before = None
        if self.unknown or not self._find_gpu():
            return
        if threading.current_thread() is not threading.main_thread():
            self._give_up("next is called outside the main thread")
        elif len(self._pending) < MOST_PENDING:
            try:
                assert self.gpu is not None
                self._dry = bool(sys.modules["torch"].cuda.current_stream().query())
                self._before = self.gpu.record_mark()
            except (RuntimeError, AttributeError, NotImplementedError) as error:
                self._give_up(f"the GPU has no events: {error}")

    def leave_next(self, row: Row | None, step: int) -> None:
        """next returns; row is the step that ends with it, None for the first of a pass. step: how many were before;
        those that were not marked share the GPU's time with this one.
        """
        after = None
        if self._before is not None and self.gpu is not None:
            after = self.gpu.record_mark()
            if row is not None and after is not None:
                row.dry = self._dry
                self._pending.append((row, self._before, after, self._last, step - self._last_step))
        self._last, self._last_step = after, step

    def end_pass(self) -> None:
        """A pass ended."""
        self._last = self._before = None

    def read_marks(self) -> None:
        """Reads the marks that the GPU has come to."""
        try:
            while self._pending and self._pending[0][2].done():
                self._take_marks(*self._pending.popleft())
        except (RuntimeError, NotImplementedError) as error:
            self._give_up(f"the GPU's events cannot be read: {error}")

    def _take_marks(self, row: Row, before: Mark, after: Mark, last: Mark | None, steps: int) -> None:
        if not before.place == after.place == (self._place or after.place):
            self._give_up("the loop uses several streams or GPUs")
            return
        self._place = after.place
        row.idle_ns = max(0, min(int(before.until(after) * 1e9), row.wait_ns))
        if last is not None and last.place == after.place:
            row.gpu_ns = int(last.until(after) * 1e9) // steps
        self._readings += 1
        if self._readings in LOOKS:
            assert self.gpu is not None
            reason = self.gpu.find_elsewhere(self._place)
            if reason:
                self._give_up(reason)

    def _find_gpu(self) -> bool:
        if self.gpu is None:
            torch = sys.modules.get("torch")
            cuda = getattr(torch, "cuda", None)
            if cuda is not None and cuda.is_initialized():
                self.gpu = Cuda(torch)
        return self.gpu is not None

    def _give_up(self, reason: str) -> None:
        self.unknown = reason
        self._pending.clear()
        self._before = self._last = None
