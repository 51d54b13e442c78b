"""Workers at rest for some steps: what the iterator asks of them is kept back, and handed on afterwards.

Steps that find their batches ready then have the cores that make batches, as if these were made elsewhere. Order and
random numbers stay the same, since the iterator draws as it always does.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

__all__ = ["Hold"]


class Hold:
    """Of one DataLoader's iterator, until it is ended, so many batches were asked for, or something else is said."""

    def __init__(self, iterator: Any, batches: int) -> None:
        self.kept, self._left = 0, batches
        """How many batches were kept back."""
        self._iterator, self._queues = ref(iterator), iterator._index_queues
        self._kept: list[tuple[Any, Any]] = []
        iterator._index_queues = [_Queue(queue, self) for queue in self._queues]

    def take(self, queue: Any, item: Any) -> None:
        """What the iterator puts into a worker's queue."""
        if self._left and type(item) is tuple:
            self._kept.append((queue, item))
            self.kept += 1
            self._left -= 1
            if not self._left:
                self.end()
        else:
            self.end()
            queue.put(item)

    def end(self) -> None:
        """Hands on what was kept, in its order; the workers go on. Harmless when repeated."""
        self._left = 0
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
        self._hold.take(self._queue, item)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)
