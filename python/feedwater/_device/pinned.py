"""pin_memory=True: batches of the CPU that the program copies to GPUs by itself, without the host waiting.

Such a copy may still read a batch's memory when the batch is gone. So a slot whose lease is dead is not free yet:
events are recorded behind all that could read it, and it is free when the GPUs have come to them.
"""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from . import runtime
from .failure import Explained
from .registration import end_registrations
from .runtime import Event, Host
from .tensors import map_tensors
from .watch import StreamWatch

__all__ = ["Pinning"]

MOST_FORMER = 32
"""Streams that were current at an earlier time and are asked still."""

log = logging.getLogger("feedwater")


class Pinning:
    """Pinned memory of one Loader. Not for two threads at once."""

    def __init__(self) -> None:
        self._host: Host | None = None
        self.explained: AbstractContextManager[None] = nullcontext()
        """What calls of the GPUs are made in."""
        self._declared: list[Any] = []
        self._former: list[Any] = []
        """Streams that were current, the latest last: copies may run there still when next is called on another one."""
        self._watch = StreamWatch(
            "the program has tensors of further streams: if batches are copied on one that the current stream does "
            "not wait for, call loader.record_stream(stream) once, or a copy may read the batch after it; "
            "docs/device.md"
        )
        self._warned = False

    def find_host(self) -> Host | None:
        """The GPUs of this process; None before the program has begun to use them."""
        if self._host is None:
            self._host = runtime.find_host(sys.modules["torch"])
            if self._host is not None:
                self.explained = Explained(sys.modules["torch"], "the GPU")
        return self._host

    def is_capturing(self) -> bool:
        """Whether the calling thread captures a CUDA graph."""
        host = self.find_host()
        with self.explained:
            return host is not None and host.is_capturing()

    def declare_stream(self, stream: Any) -> None:
        """Copies are made on that stream too, which the current one does not wait for."""
        if not hasattr(stream, "cuda_stream"):
            raise TypeError(f"record_stream({stream!r}): give it a stream of torch.cuda, as torch.cuda.Stream() makes")
        if stream not in self._declared:
            self._declared.append(stream)

    def record_fence(self) -> list[Event]:
        """Events behind all that was submitted so far to the streams that copies are made on.

        Those are the current ones, those that were it in an earlier call, GPUs' default ones, and those declared.
        """
        host = self.find_host()
        if host is None:
            return []
        current = host.current_streams()
        former = [stream for stream in self._former if stream not in current]
        self._former = [*former, *filter(host.lasts, current)][-MOST_FORMER:]
        further = [stream for stream in self._declared if stream not in current and stream not in former]
        streams = [*current, *former, *further]
        self._watch.note_batch(host, streams)
        return [host.record_event(stream) for stream in streams]

    def pin_batch(self, batch: Any) -> Any:
        """The batch with every tensor of it in pinned memory: as it is, or copied there once."""
        host = self.find_host()
        end_registrations()
        with self.explained:
            if host is not None:
                batch = map_tensors(sys.modules["torch"], batch, host.pin_tensor, pins=True)
            return batch

    def warn_refused(self, reason: str) -> None:
        """Says once that shared memory cannot be registered."""
        if not self._warned:
            self._warned = True
            log.warning(
                "the driver does not register shared memory (%s), so batches are copied into pinned memory: raise "
                "ulimit -l, or see docs/device.md",
                reason,
            )
