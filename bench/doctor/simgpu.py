"""A GPU in closed form in the place of torch.cuda: one stream that takes submitted work in order. It uses no CPU and no
thread; its clock is the machine's. install() makes torch believe in it, as far as a training loop and the doctor ask.
"""

from __future__ import annotations

import time
from functools import wraps
from types import SimpleNamespace
from typing import Any

import torch

AHEAD_S = 1.0
"""How far the host may run ahead."""
PAGEABLE_BYTES_S, PINNED_BYTES_S = 0.25e9, 1e9
GIB = 1 << 30


class Stream:
    """The stream: when it will have done what was submitted."""

    device_index, cuda_stream = 0, 0

    def __init__(self) -> None:
        self.free_at = 0.0
        self.pinned = False
        """Whether batches come in pinned memory."""

    def query(self) -> bool:
        return time.perf_counter() >= self.free_at


stream = Stream()


class Event:
    """As torch.cuda.Event."""

    def __init__(self, enable_timing: bool = True) -> None:
        self.at = 0.0

    def record(self, _stream: Any = None) -> None:
        self.at = max(time.perf_counter(), stream.free_at)

    def query(self) -> bool:
        return time.perf_counter() >= self.at

    def elapsed_time(self, later: Event) -> float:
        return (later.at - self.at) * 1e3


def launch(milliseconds: float, host_us: float = 5) -> None:
    """Submits work, at the cost of so much host CPU."""
    began = time.perf_counter()
    while time.perf_counter() - began < host_us * 1e-6:
        pass
    stream.free_at = max(time.perf_counter(), stream.free_at) + milliseconds / 1e3
    _sleep_until(stream.free_at - AHEAD_S)


def synchronize(_device: Any = None) -> None:
    """Waits for the stream."""
    _sleep_until(stream.free_at)


def _sleep_until(moment: float) -> None:
    """Where that is to come: a sleep of nothing takes 0.1 ms on some machines, half of it on the CPU."""
    left_s = moment - time.perf_counter()
    if left_s > 0:
        time.sleep(left_s)


def _copy(tensor: Any) -> None:
    """To the GPU: from pageable memory the host waits for the stream and for the copy."""
    nbytes = tensor.numel() * tensor.element_size()
    if stream.pinned:
        launch(nbytes / PINNED_BYTES_S * 1e3)
    else:
        synchronize()
        time.sleep(nbytes / PAGEABLE_BYTES_S)
        stream.free_at = time.perf_counter()


def install() -> None:
    """Puts it in torch.cuda's place, in this process and those it forks."""
    to, item = torch.Tensor.to, torch.Tensor.item

    @wraps(to)
    def copied(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args and str(args[0]).startswith("cuda"):
            _copy(self)
            return self
        return to(self, *args, **kwargs)

    @wraps(item)
    def awaited(self: Any) -> Any:
        synchronize()
        return item(self)

    torch.Tensor.to, torch.Tensor.item = copied, awaited  # type: ignore[method-assign,assignment]
    torch.Tensor.is_pinned = lambda *_: stream.pinned  # type: ignore[method-assign,assignment]
    vars(torch.cuda).update(
        is_available=lambda: True,
        is_initialized=lambda: True,
        is_current_stream_capturing=lambda: False,
        get_allocator_backend=lambda: "native",
        memory_snapshot=list,
        mem_get_info=lambda: (8 * GIB, 16 * GIB),
        memory_allocated=lambda: 2 * GIB,
        max_memory_allocated=lambda: 6 * GIB,
        current_stream=lambda *_: stream,
        synchronize=synchronize,
        Event=Event,
        stream=SimpleNamespace(stream=stream),
    )
