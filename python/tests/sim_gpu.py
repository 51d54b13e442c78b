"""A GPU with one stream on a clock of its own: takes submitted work in order, and tells no time but the clock's."""

from __future__ import annotations

from collections import deque
from typing import Any


class SimClock:
    """Seconds; move it by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds


class SimMark:
    def __init__(self, gpu: SimGpu, place: tuple[int, int]) -> None:
        free_at = gpu.further.get(place, gpu.free_at)
        self.gpu, self.place, self.at = gpu, place, max(gpu.clock.now, free_at)

    def done(self) -> bool:
        return self.gpu.clock.now >= self.at

    def until(self, later: SimMark) -> float:
        assert self.done() and later.done(), "an event was read before the GPU came to it"
        return later.at - self.at


class SimGpu:
    """The host may run ahead by so many launches, as with CUDA."""

    def __init__(self, clock: SimClock, ahead: int = 1000) -> None:
        self.clock, self.free_at, self.busy = clock, 0.0, 0.0
        self.place = (0, 0)
        self.other_work = ""
        self.further: dict[tuple[int, int], float] = {}
        """Further streams, and when each is free."""
        self.foreign = False
        """Whether one of them is none of torch's."""
        self.asked = 0
        self._ends: deque[float] = deque(maxlen=ahead)

    def launch(self, seconds: float, host: float = 5e-6) -> None:
        """Submits work; blocks while the queue is full."""
        self.clock.spend(host)
        if len(self._ends) == self._ends.maxlen:
            self.clock.now = max(self.clock.now, self._ends[0])
        self.free_at = max(self.clock.now, self.free_at) + seconds
        self.busy += seconds
        self._ends.append(self.free_at)

    def kernels(self, seconds: float, number: int = 100, host: float = 5e-6) -> None:
        """Work of that length in so many launches."""
        for _ in range(number):
            self.launch(seconds / number, host)

    def synchronize(self) -> None:
        self.clock.now = max(self.clock.now, self.free_at)

    def copy(self, seconds: float, *, pinned: bool) -> None:
        """A host-to-device copy: in the stream, and from pageable memory also in the host's time, after the stream."""
        if pinned:
            self.launch(seconds)
        else:
            self.synchronize()
            self.launch(seconds)
            self.synchronize()

    def await_copy(self, done_at: float) -> None:
        """The stream goes on when a copy on another stream is done; the host does not wait."""
        self.free_at = max(self.clock.now, self.free_at, done_at)

    # -- feedwater._meter.gpu_events.Gpu ------------------------------------------------------------------------------

    def launch_further(self, place: tuple[int, int], seconds: float) -> None:
        """Submits work to a further stream."""
        self.further[place] = max(self.clock.now, self.further.get(place, 0.0)) + seconds

    def record_mark(self, stream: Any = None) -> SimMark:
        return SimMark(self, stream or self.place)

    def is_idle(self) -> bool:
        return self.clock.now >= self.free_at

    def find_further(self, place: tuple[int, int]) -> list[tuple[int, int]] | None:
        return None if self.foreign or self.other_work else list(self.further)

    def free_mark(self, mark: Any) -> None:
        assert isinstance(mark, SimMark)

    def find_elsewhere(self, place: tuple[int, int]) -> str:
        self.asked += 1
        return self.other_work or ("the program uses further streams" if self.further else "")
