"""The GPU that a training loop works on, as events in its stream: recorded now, read later, never waited for.

The interface is small, so that a simulated GPU can stand in. torch is never imported here.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

from .._common.torch_modes import imported_torch

__all__ = ["Cuda", "Gpu", "Mark", "find_gpu", "synchronize_gpu"]

SPARE_EVENTS = 64


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

    def record_mark(self) -> Mark | None:
        """Records a mark on the stream that the calling thread uses now; None while that is impossible."""
        ...

    def free_mark(self, mark: Any) -> None:
        """The mark is not needed any more and may be used again."""
        ...

    def find_elsewhere(self, place: tuple[int, int]) -> str:
        """Why that stream is not all of this process's GPU work; "" if it seems to be. May cost a millisecond."""
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

    def record_mark(self) -> CudaMark | None:
        """Records an event on the current stream; none into a CUDA graph that is being captured."""
        cuda = self._torch.cuda
        if cuda.is_current_stream_capturing():
            return None
        mark = self._spare.pop() if self._spare else CudaMark(cuda.Event(enable_timing=True))
        stream = cuda.current_stream()
        mark.event.record(stream)
        mark.place = (stream.device_index, stream.cuda_stream)
        return mark

    def free_mark(self, mark: CudaMark) -> None:
        """Keeps the event for another mark; it is recorded anew then."""
        if len(self._spare) < SPARE_EVENTS:
            self._spare.append(mark)

    def find_elsewhere(self, place: tuple[int, int]) -> str:
        """Judges by the memory that tensors hold: the allocator notes the device and the stream it was taken for."""
        cuda = self._torch.cuda
        if cuda.get_allocator_backend() != "native":
            return f"the allocator {cuda.get_allocator_backend()} does not tell which streams are in use"
        for segment in cuda.memory_snapshot():
            if not segment["allocated_size"] or tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0):
                continue  # nothing is alive in it, or a CUDA graph's own pool, which is filled while capturing
            if segment["device"] != place[0]:
                return f"this process works on GPU {segment['device']} as well as on {place[0]}"
            if segment["stream"] != place[1]:
                return "the program uses further streams"
        return ""


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
