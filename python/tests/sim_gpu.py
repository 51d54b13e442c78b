"""GPUs with streams on a clock of their own: take submitted work in order, and tell no time but the clock's."""

from __future__ import annotations

from collections import deque
from typing import Any

from feedwater._meter.gpu_events import FOREIGN, Place, Streams


class SimClock:
    """Seconds; move it by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds


class SimMark:
    def __init__(self, gpu: SimGpu, place: Place) -> None:
        self.gpu, self.place, self.at = gpu, place, max(gpu.clock.now, gpu.free.get(place, 0.0))
        self.stream = None if place in gpu.foreign else place

    def done(self) -> bool:
        return self.gpu.clock.now >= self.at

    def until(self, later: SimMark) -> float:
        assert self.place[0] == later.place[0], "events of two GPUs have no time in common"
        assert self.done() and later.done(), "an event was read before the GPU came to it"
        return later.at - self.at


class SimGpu:
    """The host may run ahead by so many launches, as with CUDA."""

    def __init__(self, clock: SimClock, ahead: int = 1000) -> None:
        self.clock, self.busy = clock, 0.0
        self.place: Place = (0, 0)
        """The loop's stream."""
        self.free: dict[Place, float] = {}
        """When each stream has done all its work."""
        self.memory: set[Place] = set()
        """Streams that hold memory, as torch's own allocator tells; one such as cudaMallocAsync's tells of none."""
        self.foreign: set[Place] = set()
        """Streams that torch did not make."""
        self.asked = 0
        self.capturing = False
        self._ends: deque[float] = deque(maxlen=ahead)
        self._spans: list[tuple[float, float]] = []

    @property
    def free_at(self) -> float:
        return self.free.get(self.place, 0.0)

    def launch(self, seconds: float, host: float = 5e-6, stream: Place | None = None) -> None:
        """Submits work; blocks while the queue is full."""
        place = stream or self.place
        self.clock.spend(host)
        if len(self._ends) == self._ends.maxlen:
            self.clock.now = max(self.clock.now, self._ends[0])
        begin = max(self.clock.now, self.free.get(place, 0.0))
        self.free[place] = begin + seconds
        self.busy += seconds
        self._ends.append(self.free[place])
        self._spans.append((begin, begin + seconds))

    def kernels(self, seconds: float, number: int = 100, host: float = 5e-6, stream: Place | None = None) -> None:
        """Work of that length in so many launches."""
        for _ in range(number):
            self.launch(seconds / number, host, stream)

    def wait_stream(self, stream: Place, other: Place) -> None:
        """What stream gets to do from now on comes behind what the other one has to do; the host does not wait."""
        self.free[stream] = max(self.free.get(stream, 0.0), self.free.get(other, 0.0))

    def synchronize(self) -> None:
        self.clock.now = max(self.clock.now, *self.free.values(), 0.0)

    def read_loss(self) -> None:
        """item(): the host waits for the loop's stream."""
        self.clock.now = max(self.clock.now, self.free_at)

    def copy(self, seconds: float, *, pinned: bool) -> None:
        """A host-to-device copy: in the stream, and from pageable memory also in the host's time, after the stream."""
        if pinned:
            self.launch(seconds)
        else:
            self.synchronize()
            self.launch(seconds)
            self.synchronize()

    def await_copy(self, done_at: float, stream: Place | None = None) -> None:
        """The stream goes on when a copy on another stream is done; the host does not wait."""
        place = stream or self.place
        self.free[place] = max(self.clock.now, self.free.get(place, 0.0), done_at)

    def still_s(self) -> float:
        """How long none of the streams had work, until the last of it was done."""
        end = still = 0.0
        for begin, ended in sorted(self._spans):
            still += max(0.0, begin - end)
            end = max(end, ended)
        return still

    # -- feedwater._meter.gpu_events.Gpu ------------------------------------------------------------------------------

    def record_mark(self, stream: Any = None) -> SimMark | None:
        assert stream is None or stream not in self.foreign, "the stream may be gone"
        return None if self.capturing else SimMark(self, stream or self.place)

    def free_mark(self, mark: Any) -> None:
        assert isinstance(mark, SimMark)

    def is_idle(self) -> bool:
        return self.clock.now >= self.free_at

    def find_streams(self, place: Place) -> Streams:
        assert not self.capturing, "a look ends the capture"
        self.asked += 1
        used = {at for at in {*self.free, *self.memory} if at in self.memory or self.free[at] > self.clock.now}
        used.discard(place)
        return Streams({at: at for at in sorted(used - self.foreign)}, FOREIGN if used & self.foreign else "")
