"""The idle meter: how long the GPU stood still because the loop was blocked in next."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from . import gpu_events
from .gpu_events import Gpu, Mark

__all__ = ["Meter"]

MOST_PENDING = 256
"""Turns whose marks the GPU has not reached; further ones are not measured."""
NO_GPU = "the program uses no GPU with CUDA events"
"""What is said of the idle where it means nothing."""
UNKNOWN = float("nan")
LOOK_EVERY = 1024
"""Readings between two looks for work elsewhere; the first looks come after 1, 2, 4, 8 ... readings."""


class Reader(Protocol):
    """Wants to know of a turn how long the GPU stood still for data, and then for the copy of the batch."""

    idle_s: float | None
    transfer_s: float | None


class Turn(NamedTuple):
    """One turn of the loop whose marks may not be reached yet."""

    before: tuple[Mark, ...]
    after: tuple[Mark, ...]
    """Of the loop's stream first, then of further ones."""
    landed: Mark | None
    """When the batch is on the GPU, for the loop's stream; None where the program copies."""
    wait_s: float
    step_s: float
    reader: Reader | None


class Meter:
    """Reads, per turn, idle = min(GPU time from the mark before next to the mark after it, blocked time in next).

    The first mark is reached when the stream has done all work submitted before next, the second when in addition next
    has returned. So the time between them is what of the wait the stream had nothing to do in: 0 where the loop was
    blocked and the GPU still busy. It adds two events a turn and never a sync; readings come as the GPU gets there.

    Low by what data costs outside next: the host's time from next's return to the first work it submits, and the rest
    of the last kernel of a loop that is slower at submitting than the GPU at working. High by the resolution of events,
    about a microsecond.

    Where batches are copied by us, a third mark stands behind the stream's wait for the copy: from the second to it the
    stream stood still for the copy, and for what the host did until it submitted that. This is no idle.

    Where the program works on further streams of torch, marks are recorded on them too, and the GPU stood still where
    all of them had nothing to do: from the last of the first marks to the first of the second ones.

    unknown says why there is no reading, and never goes away once work was seen where the marks do not tell of it.
    """

    def __init__(self, find: Callable[[], Gpu | None] | None = None) -> None:
        self.idle_s = self.step_s = self.transfer_s = 0.0
        self._transfers = 0
        self.last_idle_s: float | None = None
        self.unknown = "nothing was measured yet"
        self._find = find or gpu_events.find_gpu
        self._gpu: Gpu | None = None
        self._before: tuple[Mark, ...] | None = None
        self._after: tuple[Mark, ...] | None = None
        self._further: list[Any] = []
        """Streams beside the loop's that work for this program."""
        self._landed: Mark | None = None
        self._pending: deque[Turn] = deque()
        self._place: tuple[int, int] | None = None
        self._readings, self._look_at = 0, 1
        self._off = False

    def enter_next(self) -> None:
        """next was called."""
        if self._before is not None:
            self.end_pass()
        if self._off:
            return
        if self._gpu is None:
            self._gpu = self._find()
        if self._gpu is None:
            self.unknown = NO_GPU
            return
        if threading.current_thread() is not threading.main_thread():
            self._give_up("next is called outside the main thread, so the GPU may be used by another one")
        elif len(self._pending) < MOST_PENDING:
            self._before = self._record_marks()

    def note_arrival(self) -> None:
        """The batch is there. What follows before next returns is the program's own work."""
        if self._before is not None and self._after is None:
            self._after = self._record_marks()

    def note_landing(self) -> None:
        """The loop's stream waits for the batch's copy to it, and what follows is other work."""
        if self._after is not None and self._landed is None:
            self._landed = self._record_mark()

    def leave_next(self, wait_s: float, step_s: float, reader: Reader | None = None) -> None:
        """next returns, after that much blocked time in a turn that took so long.

        reader is given the turn's idle when it is read; not a number at once, or later, if it will not be.
        """
        if self._before is not None:
            self.note_arrival()
        if self._before is not None and self._after is not None:
            self._pending.append(Turn(self._before, self._after, self._landed, wait_s, step_s, reader))
            self._before = self._after = self._landed = None
        elif reader is not None:
            reader.idle_s = reader.transfer_s = UNKNOWN
        if self._pending:
            self.read_marks()

    @property
    def unmeasured(self) -> bool:
        """Whether the loop uses a GPU whose idle is not known."""
        return self.unknown not in ("", NO_GPU)

    def end_pass(self) -> None:
        """next returned nothing: its marks mean nothing."""
        landed = () if self._landed is None else (self._landed,)
        for mark in (*(self._before or ()), *(self._after or ()), *landed):
            assert self._gpu is not None
            self._gpu.free_mark(mark)
        self._before = self._after = self._landed = None

    def read_marks(self) -> None:
        """Takes in the turns that the GPU has come to."""
        try:
            while not self._off and self._pending and _is_reached(self._pending[0]):
                self._add_turn(self._pending.popleft())
        except (RuntimeError, NotImplementedError) as error:
            self._give_up(f"the GPU's events cannot be read: {error}")

    def stats_fields(self) -> dict[str, Any]:
        """The fields of Stats that are the meter's."""
        idle_s = None if self.unknown else self.idle_s
        step_s = 0.0 if self.unknown else self.step_s
        last_s = self.last_idle_s
        transfer_s = None if self.unknown or not self._transfers else self.transfer_s
        known = {"idle_s": idle_s, "idle_step_s": step_s, "last_idle_s": last_s, "transfer_s": transfer_s}
        return {**known, "idle_unknown": self.unknown}

    def _add_turn(self, turn: Turn) -> None:
        gpu = self._gpu
        assert gpu is not None
        before, after = turn.before[0].place, turn.after[0].place
        if not before == after == (self._place or after):
            if turn.reader is not None:
                turn.reader.idle_s = turn.reader.transfer_s = UNKNOWN
            self._give_up("the loop uses several streams or GPUs")
            return
        self._place = after
        gaps = [begin.until(end) for begin in turn.before for end in turn.after]
        self.last_idle_s = max(0.0, min(*gaps, turn.wait_s))
        self.idle_s += self.last_idle_s
        transfer_s = UNKNOWN if turn.landed is None else max(0.0, turn.after[0].until(turn.landed))
        if turn.landed is not None:
            self.transfer_s += transfer_s
            self._transfers += 1
            gpu.free_mark(turn.landed)
        if turn.reader is not None:
            turn.reader.idle_s, turn.reader.transfer_s = self.last_idle_s, transfer_s
        self.step_s += turn.step_s
        self.unknown = ""
        for mark in (*turn.before, *turn.after):
            gpu.free_mark(mark)
        self._readings += 1
        if self._readings >= self._look_at:
            self._look_at = self._readings + min(self._readings, LOOK_EVERY)
            self._check_streams(gpu, self._place)

    def _check_streams(self, gpu: Gpu, place: tuple[int, int]) -> None:
        try:
            reason = gpu.find_elsewhere(place)
            further = gpu.find_further(place) if reason else self._further
        except (RuntimeError, AttributeError, KeyError, NotImplementedError) as error:
            reason, further = f"torch does not tell which streams are in use: {error}", None
        if further is None:
            self._give_up(reason)
        elif any(stream not in self._further for stream in further):
            self._follow_streams([*self._further, *(stream for stream in further if stream not in self._further)])

    def _follow_streams(self, streams: list[Any]) -> None:
        """Marks are recorded on further streams too. What was read without them says too much, and is dropped."""
        self._further = streams
        self.idle_s = self.step_s = self.transfer_s = 0.0
        self._transfers, self._look_at = 0, self._readings + 1
        self.unknown, self.last_idle_s = "nothing was measured yet", None
        for turn in self._pending:
            if turn.reader is not None:
                turn.reader.idle_s = turn.reader.transfer_s = UNKNOWN
        self._pending.clear()

    def _record_marks(self) -> tuple[Mark, ...] | None:
        """On the loop's stream, and on the further ones."""
        marks = [self._record_mark(), *(self._record_mark(stream) for stream in self._further)]
        return None if None in marks else tuple(mark for mark in marks if mark is not None)

    def _record_mark(self, stream: Any = None) -> Mark | None:
        if self._off:
            return None
        assert self._gpu is not None
        try:
            return self._gpu.record_mark(stream)
        except (RuntimeError, AttributeError, NotImplementedError) as error:
            self._give_up(f"the GPU has no events to measure with: {error}")
            return None

    def _give_up(self, reason: str) -> None:
        self._off, self.unknown, self.last_idle_s = True, reason, None
        self._before = self._after = self._landed = None
        for turn in self._pending:
            if turn.reader is not None:
                turn.reader.idle_s = turn.reader.transfer_s = UNKNOWN
        self._pending.clear()


def _is_reached(turn: Turn) -> bool:
    last = turn.after if turn.landed is None else (*turn.after, turn.landed)
    return all(mark.done() for mark in last)
