"""The GPU that a training loop works on, as events in its stream: recorded now, read later, never waited for.

The interface is small, so that a simulated GPU can stand in. torch is never imported here.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

from .._common.gpu_streams import used_streams
from .._common.torch_modes import imported_torch

__all__ = ["Cuda", "Gpu", "Mark", "find_gpu", "synchronize_gpu"]

SPARE_EVENTS = 64
MOST_FURTHER = 4
"""Streams beside the loop's that marks are recorded on."""
PRIORITIES, STREAMS_OF_A_PRIORITY = (0, -1, -2, -3), 32
"""Of torch's streams."""


class Mark(Protocol):
    """A point in the stream's work. It is reached when the stream has done all that was submitted before."""

    @property
    def place(self) -> tuple[int, int]:
        """Device and stream it was recorded on."""
        ...

    def done(self) -> bool:
        """Whether it is reached; does not wait."""
        ...

    def until(self, later: Any) -> float:
        """Seconds on the GPU's clock from this mark to a later one of the same kind; both must be reached."""
        ...


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

    def find_elsewhere(self, place: tuple[int, int]) -> str:
        """Why that stream is not all of this process's GPU work; "" if it seems to be. May cost a millisecond."""
        ...

    def find_further(self, place: tuple[int, int]) -> list[Any] | None:
        """The streams that together with that one seem to be all of it; None if marks cannot be had on all."""
        ...


class CudaMark:
    """An event of torch.cuda, and where it was recorded last."""

    __slots__ = ("event", "place")

    def __init__(self, event: Any) -> None:
        self.event, self.place = event, (0, 0)

    def done(self) -> bool:
        """Whether the stream has come so far."""
        return bool(self.event.query())

    def until(self, later: CudaMark) -> float:
        """Seconds to a later mark."""
        return float(self.event.elapsed_time(later.event)) / 1e3


class Cuda:
    """CUDA, or ROCm under the same names, through the torch that the program has imported."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._spare: list[CudaMark] = []

    def record_mark(self, stream: Any = None) -> CudaMark | None:
        """Records an event on the current stream, or on stream; none into a CUDA graph that is being captured."""
        cuda = self._torch.cuda
        if cuda.is_current_stream_capturing():
            return None
        mark = self._spare.pop() if self._spare else CudaMark(cuda.Event(enable_timing=True))
        stream = cuda.current_stream() if stream is None else stream
        mark.event.record(stream)
        mark.place = (stream.device_index, stream.cuda_stream)
        return mark

    def free_mark(self, mark: CudaMark) -> None:
        """Keeps the event for another mark; it is recorded anew then."""
        if len(self._spare) < SPARE_EVENTS:
            self._spare.append(mark)

    def is_idle(self) -> bool:
        """Asks the current stream; not while it is captured, as the question would end that."""
        cuda = self._torch.cuda
        return not cuda.is_current_stream_capturing() and bool(cuda.current_stream().query())

    def find_elsewhere(self, place: tuple[int, int]) -> str:
        """Judges by the memory that tensors hold: the allocator notes the device and the stream it was taken for."""
        cuda = self._torch.cuda
        if cuda.get_allocator_backend() != "native":
            return f"the allocator {cuda.get_allocator_backend()} does not tell which streams are in use"
        for device, stream in used_streams(cuda):
            if device != place[0]:
                return f"this process works on GPU {device} as well as on {place[0]}"
            if stream != place[1]:
                return "the program uses further streams"
        return ""

    def find_further(self, place: tuple[int, int]) -> list[Any] | None:
        """Those that torch made, which it never destroys; None where another library's is among them, or too many."""
        if self._torch.cuda.get_allocator_backend() != "native":
            return None
        used = used_streams(self._torch.cuda) - {place}
        known = self._list_pool(place[0]) if used else {}
        if len(used) > MOST_FURTHER or any(device != place[0] or stream not in known for device, stream in used):
            return None
        return [known[stream] for _, stream in sorted(used)]

    def _list_pool(self, device: int) -> dict[int, Any]:
        """All streams of a GPU that torch gives out, by their handles.

        It gives them out in turn, so asking for all of a priority leaves the turn where it was.
        """
        cuda = self._torch.cuda
        streams = [cuda.default_stream(device)]
        for priority in PRIORITIES:
            streams += [cuda.Stream(device, priority=priority) for _ in range(STREAMS_OF_A_PRIORITY)]
        return {stream.cuda_stream: stream for stream in streams}


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
