"""Marks in a GPU's stream, and what waits for them: recorded now, taken in when the GPU has come to them."""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, TypeVar

from .gpu_events import Gpu, Mark

__all__ = ["Marks"]

T = TypeVar("T")


class Marks(Generic[T]):
    """Of one clock, a GPU or the host. Nothing is recorded any more after a failure."""

    def __init__(self, clock: Gpu) -> None:
        self.clock = clock
        self.failure = ""
        """Why nothing is recorded any more."""
        self._waiting: deque[tuple[tuple[Mark, ...], T]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def record_mark(self, stream: Any = None) -> Mark | None:
        """A mark on the stream that the calling thread uses now, or on stream; None where it cannot be had."""
        if self.failure:
            return None
        try:
            return self.clock.record_mark(stream)
        except (RuntimeError, AttributeError, NotImplementedError) as error:
            self.fail(f"the GPU has no events to measure with: {error}")
            return None

    def add(self, marks: tuple[Mark, ...], item: T) -> None:
        """item waits for marks, behind all that was added before."""
        self._waiting.append((marks, item))

    def take_reached(self) -> T | None:
        """The next item whose marks are reached; None if there is none."""
        try:
            if not self._waiting or not all(mark.done() for mark in self._waiting[0][0]):
                return None
        except (RuntimeError, NotImplementedError) as error:
            self.fail(f"the GPU's events cannot be read: {error}")
            return None
        return self._waiting.popleft()[1]

    def take_all(self) -> list[T]:
        """All that waits, reached or not."""
        items = [item for _, item in self._waiting]
        self._waiting.clear()
        return items

    def fail(self, reason: str) -> None:
        """Nothing is recorded any more."""
        self.failure = self.failure or reason
