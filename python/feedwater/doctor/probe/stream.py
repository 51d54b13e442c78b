"""The GPU under a loop, by the meter of Loaders: idle, and the step on the GPU's clock."""

from __future__ import annotations

from math import isnan
from typing import Any

from ..._meter.gpu_events import Gpu
from ..._meter.idle import NO_GPU, NOTHING, Meter, Reading


class Row:
    """One step: from one return of next to the following. Times in ns; None: not known, or not yet."""

    __slots__ = ("burst", "held", "reading", "ready", "step_ns", "wait_ns")

    def __init__(self, wait_ns: int, step_ns: int, ready: int, held: int, burst: bool) -> None:
        self.wait_ns, self.step_ns, self.ready, self.held, self.burst = wait_ns, step_ns, ready, held, burst
        self.reading: Reading | None = None
        """What the GPU's clock says of the step."""

    @property
    def idle_ns(self) -> int | None:
        """How long the GPU stood still for data."""
        return None if self.reading is None else _to_ns(self.reading.idle_s)

    @property
    def gpu_ns(self) -> int | None:
        """How long the step took by the GPU's clock."""
        return None if self.reading is None else _to_ns(self.reading.stream_s)

    @property
    def dry(self) -> bool | None:
        """Whether the GPU had nothing to do when next was called."""
        return None if self.reading is None else self.reading.dry

    def dump(self) -> list[Any]:
        """For the report."""
        return [self.wait_ns, self.step_ns, self.ready, self.held, self.burst, self.idle_ns, self.gpu_ns, self.dry]


def _to_ns(seconds: float) -> int | None:
    return None if isnan(seconds) else round(1e9 * seconds)


class Stream:
    """The stream of one loop."""

    def __init__(self, meter: Meter | None = None) -> None:
        self.meter = meter or Meter(closely=True)

    @property
    def unknown(self) -> str:
        """Why there are no readings; "" while there are, or while no GPU is used."""
        return "" if self.meter.unknown in (NO_GPU, NOTHING) else self.meter.unknown

    @property
    def gpu(self) -> Gpu | None:
        """None until the program is seen to use one."""
        return self.meter.gpu

    @property
    def name(self) -> str:
        """Of the GPU, "" without one."""
        return "cuda" if self.gpu is not None else ""

    def enter_next(self) -> None:
        """next was called."""
        self.meter.read_marks()
        self.meter.enter_next()

    def leave_next(self, row: Row | None, step: int) -> None:
        """next returns; row is the step that ends with it, None for the first of a pass. step: how many were before;
        those that were not marked share the GPU's time with this one.
        """
        wait_s, step_s = (0.0, 0.0) if row is None else (row.wait_ns / 1e9, row.step_ns / 1e9)
        self.meter.leave_next(wait_s, step_s, row, step)

    def end_pass(self) -> None:
        """A pass ended."""
        self.meter.end_pass()

    def read_marks(self) -> None:
        """Reads the marks that the GPU has come to."""
        self.meter.read_marks()
