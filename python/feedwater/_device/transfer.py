"""Copies from the host to the GPU that are under way, and who holds what until they are done."""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from .failure import Explained
from .registration import end_registrations
from .runtime import Event, Runtime
from .tensors import list_tensors

__all__ = ["Transfer", "Upload"]

log = logging.getLogger("feedwater")


class Upload:
    """Arrays of one batch on their way to the GPU."""

    __slots__ = ("event", "held", "runtime", "stream", "tensors")

    def __init__(self, runtime: Runtime, held: Any) -> None:
        self.runtime, self.held = runtime, held
        """held is what keeps the host's memory from being used again: leases on slots."""
        self.stream = runtime.current_stream()
        """That the tensors were allocated for."""
        self.tensors: dict[str, Any] = {}
        """By name. Held until the copies are done, unless the batch was received before."""
        self.event: Event | None = None
        """Behind the copies; None while they are submitted, and after an exception came amid that."""

    def is_done(self) -> bool:
        """Whether the GPU has read the host's memory. Does not wait."""
        if self.event is None:
            self.event = self.runtime.record_copies()
        return self.event.done()

    def finish(self) -> None:
        """Waits until it has."""
        if not self.is_done():
            assert self.event is not None
            self.event.wait()


_ABANDONED: deque[Upload] = deque()
"""Of Loaders that were collected amid copies: no finaliser of ours calls CUDA."""
_LOST: list[Upload] = []
"""Of which it will never be known whether they are done."""


class Transfer:
    """The copies of one Loader. Not for two threads at once."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self._owner = runtime, os.getpid()
        self._under_way: deque[Upload] = deque()
        """In the order of our stream."""
        self._warned = False
        self.explained = Explained(sys.modules["torch"], runtime.name)
        """What calls of the GPU are made in."""
        self.stream: Any = None
        """That the latest batch was received for."""
        self.landed: Callable[[Any], None] = _do_nothing
        """Told of the current stream when it has been made to wait for a batch, and has got no further work."""

    def start_upload(self, sources: Mapping[str, Any], held: Any) -> Upload:
        """Begins to copy tensors of the host. held is let go of when the GPU has read them, however long that takes.

        The copies run behind what the current stream has to do now, and beside what it gets to do later.
        """
        upload = Upload(self.runtime, held)
        self._under_way.append(upload)  # before the first copy: an exception from here on leaves it held
        upload.tensors = {name: self.runtime.allocate(one.shape, one.dtype) for name, one in sources.items()}
        self.runtime.copy_to_gpu([(upload.tensors[name], source) for name, source in sources.items()])
        upload.event = self.runtime.record_copies()
        return upload

    def receive_tensors(self, upload: Upload) -> dict[str, Any]:
        """The tensors, for work that is submitted to the current stream from now on."""
        runtime = self.runtime
        assert upload.event is not None
        runtime.await_event(upload.event)
        stream = runtime.current_stream()
        self.landed(stream)
        self.stream = stream
        if stream != upload.stream:
            for tensor in upload.tensors.values():
                runtime.keep_for_stream(tensor, stream)
        tensors, upload.tensors = upload.tensors, {}
        return tensors

    def change_stream(self, batch: Any, before: Any) -> Any:
        """The current stream, which waits for what the one before had to do, and may have the batch's tensors then."""
        runtime = self.runtime
        with self.explained:
            stream = runtime.current_stream()
            if stream != before:
                runtime.await_event(runtime.record_event(before))
                for tensor in list_tensors(sys.modules["torch"], batch):
                    runtime.keep_for_stream(tensor, stream)
        return stream

    def make_ones(self, shape: Any, dtype: Any) -> Any:
        """A tensor of ones, made on the GPU."""
        made = self.runtime.allocate(shape, dtype)
        self.runtime.launch(lambda: made.fill_(1))
        return made

    def warn_refused(self, reason: str) -> None:
        """Says once that shared memory cannot be registered."""
        if not self._warned:
            self._warned = True
            log.warning(
                "the driver does not register shared memory (%s), so the loop waits for each copy to %s: raise "
                "ulimit -l, or see docs/device.md",
                reason,
                self.runtime.name,
            )

    def count_under_way(self) -> int:
        """Batches whose copies are not known to be done."""
        return len(self._under_way)

    def release_done(self) -> None:
        """Lets go of what the GPU has read. Does not wait."""
        while self._under_way and self._under_way[0].is_done():
            self._under_way.popleft()
        _release_abandoned()
        end_registrations()

    def make_room(self, most: int) -> None:
        """Fewer than most batches are under way then: waits for the GPU where it is so many batches behind."""
        self.release_done()
        self._finish_down_to(most - 1)

    def _finish_down_to(self, most: int) -> None:
        """Waits for the earliest ones until no more are under way."""
        while len(self._under_way) > most:
            self._under_way[0].finish()
            self._under_way.popleft()

    def close(self) -> None:
        """Waits for the copies that are under way, and lets go of what they held. end_registrations comes after it.

        In a forked child, which may not call CUDA, they keep it; while a CUDA graph is captured, which a wait would
        end, they keep it until another Loader's next.
        """
        if self._owner != os.getpid():
            _LOST.extend(self._under_way)
            self._under_way.clear()
            return
        try:
            if self.runtime.is_capturing():
                self.abandon()
            self._finish_down_to(0)
        except RuntimeError as error:  # the driver is lost: whether it still reads the memory nobody knows
            log.warning("the GPU does not answer, and what is copied to it keeps its memory: %s", error)
            _LOST.extend(self._under_way)
            self._under_way.clear()

    def abandon(self) -> None:
        """Like close, but calls no CUDA, which another Loader's next does; called by finalisers."""
        _ABANDONED.extend(self._under_way)
        self._under_way = deque()


def _release_abandoned() -> None:
    """Lets go of what was read of Loaders that are no more. Loaders of other threads do so at the same time.

    A GPU of theirs that is lost is no matter of ours, which may be another one.
    """
    for _ in range(len(_ABANDONED)):
        try:
            upload = _ABANDONED.popleft()
        except IndexError:  # the last one is another thread's
            return
        try:
            if not upload.is_done():
                _ABANDONED.append(upload)
        except RuntimeError:
            _LOST.append(upload)


def _do_nothing(_: Any) -> None:
    """Nobody wants to know."""
