"""The GPU that a training loop works on, as events in its stream: recorded now, read later, never waited for.

The interface is small, so that a simulated GPU can stand in. torch is never imported here.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, Protocol

from .._common.gpu_streams import is_foreign, used_streams
from .._common.torch_modes import imported_torch

__all__ = ["Cuda", "Gpu", "Mark", "Place", "Streams", "find_gpu", "synchronize_gpu"]

Place = tuple[int, int]
"""A GPU's number, and the handle of a stream on it."""
SPARE_EVENTS = 64
"""Of each GPU."""
FOREIGN = "the program works on a stream that torch did not make"
PRIORITIES, STREAMS_OF_A_PRIORITY = (0, -1, -2, -3), 32
"""Of torch's streams."""


class Mark(Protocol):
    """A point in the stream's work. It is reached when the stream has done all that was submitted before."""

    @property
    def place(self) -> Place:
        """Device and stream it was recorded on."""
        ...

    @property
    def stream(self) -> Any:
        """What to record further marks there by, at any time; None where the stream may be gone by then."""
        ...

    def done(self) -> bool:
        """Whether it is reached; does not wait."""
        ...

    def until(self, later: Any) -> float:
        """Seconds on the GPU's clock from this mark to a later one of the same GPU; both must be reached."""
        ...


class Streams(NamedTuple):
    """Where a program works on GPUs."""

    found: dict[Place, Any]
    """Streams that marks can be recorded on."""
    unseen: str = ""
    """Why there may be work on others; "" if that is not known of any."""


class Gpu(Protocol):
    """What a meter needs of a GPU. Any method may raise what the driver raises."""

    def record_mark(self, stream: Any = None) -> Mark | None:
        """Records a mark on the stream that the calling thread uses now, or on stream; None where it cannot."""
        ...

    def free_mark(self, mark: Any) -> None:
        """The mark is not needed any more and may be used again."""
        ...

    def is_idle(self) -> bool:
        """Whether the stream that the calling thread uses now has done all that was submitted to it; does not wait."""
        ...

    def find_streams(self, place: Place) -> Streams:
        """Streams beside that one which have work now, or memory. May cost some milliseconds."""
        ...


class CudaMark:
    """An event of torch.cuda, and where it was recorded last."""

    __slots__ = ("_cuda", "event", "place", "stream")

    def __init__(self, cuda: Any) -> None:
        self._cuda, self.event = cuda, cuda.Event(enable_timing=True)
        self.place, self.stream = (0, 0), None

    def done(self) -> bool:
        """Whether the stream has come so far. Not asked while this thread captures a CUDA graph, as that would end it:
        next of a Loader may be called there whose batches lie in the CPU's memory, and stats().
        """
        return not self._cuda.is_current_stream_capturing() and bool(self.event.query())

    def until(self, later: CudaMark) -> float:
        """Seconds to a later mark."""
        return float(self.event.elapsed_time(later.event)) / 1e3


class Cuda:
    """CUDA, or ROCm under the same names, through the torch that the program has imported."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._spare: dict[int, list[CudaMark]] = {}
        """By GPU: an event stays with the one that it was recorded on first."""

    def record_mark(self, stream: Any = None) -> CudaMark | None:
        """Records an event on the current stream, or on stream; none into a CUDA graph that is being captured."""
        cuda = self._torch.cuda
        if cuda.is_current_stream_capturing():
            return None
        stream = cuda.current_stream() if stream is None else stream
        spare = self._spare.get(stream.device_index)
        mark = spare.pop() if spare else CudaMark(cuda)
        mark.event.record(stream)
        mark.place = (stream.device_index, stream.cuda_stream)
        mark.stream = None if is_foreign(stream) else stream
        return mark

    def free_mark(self, mark: CudaMark) -> None:
        """Keeps the event for another mark; it is recorded anew then."""
        spare = self._spare.setdefault(mark.place[0], [])
        if len(spare) < SPARE_EVENTS:
            spare.append(mark)

    def is_idle(self) -> bool:
        """Asks the current stream; not while it is captured, as the question would end that."""
        cuda = self._torch.cuda
        return not cuda.is_current_stream_capturing() and bool(cuda.current_stream().query())

    def find_streams(self, place: Place) -> Streams:
        """Asks each stream of torch's for work, and the allocator for what memory was taken for, where it tells.

        Those of other libraries are not followed: they may be destroyed at any time.
        """
        cuda = self._torch.cuda
        if cuda.get_allocator_backend() == "native":
            used = used_streams(cuda)
            gpus = {place[0], *(gpu for gpu, _ in used)}
        else:
            used = set()
            gpus = {gpu for gpu in range(cuda.device_count()) if self._torch._C._cuda_hasPrimaryContext(gpu)}
        pool = {at: stream for gpu in sorted(gpus) for at, stream in self._list_pool(gpu).items() if at != place}
        found = {at: stream for at, stream in pool.items() if at in used or self._is_busy(stream)}
        return Streams(found, FOREIGN if used - pool.keys() - {place} else "")

    def _is_busy(self, stream: Any) -> bool:
        """Whether a stream has work. One that another thread captures is not asked: the question would end that."""
        cuda = self._torch.cuda
        with cuda.stream(stream):
            return not cuda.is_current_stream_capturing() and not stream.query()

    def _list_pool(self, device: int) -> dict[Place, Any]:
        """All streams of a GPU that torch gives out, which it never destroys.

        It gives them out in turn, so asking for all of a priority leaves the turn where it was.
        """
        cuda = self._torch.cuda
        streams = [cuda.default_stream(device)]
        for priority in PRIORITIES:
            streams += [cuda.Stream(device, priority=priority) for _ in range(STREAMS_OF_A_PRIORITY)]
        return {(device, stream.cuda_stream): stream for stream in streams}


def find_gpu() -> Gpu | None:
    """The GPU that the program uses through torch; None while it uses none that events can be had from."""
    return Cuda(sys.modules["torch"]) if _find_cuda() is not None else None


def synchronize_gpu() -> None:
    """Waits for the GPU, where the program uses one through torch."""
    cuda = _find_cuda()
    if cuda is not None:
        cuda.synchronize()


def _find_cuda() -> Any:
    """torch.cuda, where the program has begun to use it; else None."""
    cuda = getattr(imported_torch(), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None
