"""Workers at rest for some steps: what the iterator asks of them is kept back, and handed on afterwards.

Steps that find their batches ready then have the cores that make batches, as if these were made elsewhere. Order and
random numbers stay the same, since the iterator draws as it always does.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

__all__ = ["Hold"]


class Hold:
    """Of one DataLoader's iterator, until it is ended, or something other than a batch is said to a worker."""

    def __init__(self, iterator: Any) -> None:
        self.batches = 0
        """How many were kept back."""
        self._iterator, self._queues = ref(iterator), iterator._index_queues
        self._kept: list[tuple[Any, Any]] = []
        self._ended = False
        iterator._index_queues = [_Queue(queue, self) for queue in self._queues]

    def hold_item(self, queue: Any, item: Any) -> None:
        """What the iterator puts into a worker's queue."""
        if type(item) is not tuple:
            self.release_items()
        if self._ended:
            queue.put(item)
            return
        self._kept.append((queue, item))
        self.batches += 1

    def release_items(self) -> None:
        """Hands on what was kept, in its order; the workers go on. Harmless when repeated."""
        self._ended = True
        iterator = self._iterator()
        if iterator is None:  # the queues went with it
            return
        iterator._index_queues = self._queues
        while self._kept:
            queue, item = self._kept.pop(0)
            queue.put(item)


class _Queue:
    """A worker's queue, in whose place it stands."""

    def __init__(self, queue: Any, hold: Hold) -> None:
        self._queue, self._hold = queue, hold

    def put(self, item: Any) -> None:
        self._hold.hold_item(self._queue, item)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)
