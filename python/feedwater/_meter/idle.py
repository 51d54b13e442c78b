"""The step meter: how long the GPU stood still because the loop was blocked in next, and how long it takes for a step.

The Loader, through Pace, and the doctor measure by it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from . import gpu_events
from .gpu_events import Gpu, Mark
from .marks import Marks

__all__ = ["Meter", "Reading"]

MOST_PENDING = 256
"""Steps whose marks the GPU has not reached; further ones are not measured."""
NOTHING = "nothing was measured yet"
NO_GPU = "the program uses no GPU with CUDA events"
"""What is said of the idle before it means anything, and where it means nothing."""
UNKNOWN = float("nan")
LOOK_EVERY = 1024
"""Readings between two looks for work elsewhere; the first looks come after 1, 2, 4, 8 ... readings."""


class Reading(NamedTuple):
    """What the GPU's clock says of a step; not a number where that cannot be known."""

    idle_s: float = UNKNOWN
    """For how long the GPU stood still for data."""
    transfer_s: float = UNKNOWN
    """For how long it stood still for the copy of the batch."""
    stream_s: float = UNKNOWN
    """From one return of next to the following one, by the GPU's clock."""
    dry: bool | None = None
    """Whether the stream had nothing to do when next was called; None where that was not asked."""


NOT_KNOWN = Reading()


class Reader(Protocol):
    """Wants to know of a step what the GPU's clock says of it."""

    reading: Reading | None
    """None until that is known, or known not to be."""


class Turn(NamedTuple):
    """One step of the loop whose marks may not be reached yet."""

    before: tuple[Mark, ...]
    after: tuple[Mark, ...]
    """Of the loop's stream first, then of further ones."""
    landed: Mark | None
    """When the batch is on the GPU, for the loop's stream; None where the program copies."""
    wait_s: float
    step_s: float
    reader: Reader | None
    since: int
    """Steps since the one that was marked before, of the same pass; 0: there is none, or nobody asks."""
    dry: bool | None
    numbered: bool
    """Whether the next step is measured from here."""


class Meter:
    """Reads, per step, idle = min(GPU time from the mark before next to the mark after it, blocked time in next).

    The first mark is reached when the stream has done all work submitted before next, the second when in addition next
    has returned. So the time between them is what of the wait the stream had nothing to do in: 0 where the loop was
    blocked and the GPU still busy. It adds two events a step and never a sync; readings come as the GPU gets there.

    Low by what data costs outside next: the host's time from next's return to the first work it submits, and the rest
    of the last kernel of a loop that is slower at submitting than the GPU at working. High by the resolution of events,
    about a microsecond.

    Where batches are copied by us, a third mark stands behind the stream's wait for the copy: from the second to it the
    stream stood still for the copy, and for what the host did until it submitted that. This is no idle.

    Where the program works on further streams of torch, marks are recorded on them too, and the GPU stood still where
    all of them had nothing to do: from the last of the first marks to the first of the second ones. With follow=False
    such a program is unknown. closely has the stream asked, at each call of next, whether it has anything to do.

    unknown says why there is no reading, and never goes away once work was seen where the marks do not tell of it.
    """

    def __init__(
        self, find: Callable[[], Gpu | None] | None = None, *, follow: bool = True, closely: bool = False
    ) -> None:
        self.idle_s = self.step_s = self.transfer_s = 0.0
        self._transfers = 0
        self.last_idle_s: float | None = None
        self.unknown = NOTHING
        self._find = find or gpu_events.find_gpu
        self._follow, self._closely = follow, closely
        self._marks: Marks[Turn] | None = None
        """None until the program uses a GPU."""
        self._before: tuple[Mark, ...] | None = None
        self._after: tuple[Mark, ...] | None = None
        self._further: list[Any] = []
        """Streams beside the loop's that work for this program."""
        self._landed: Mark | None = None
        self._dry: bool | None = None
        self._last_step: int | None = None
        """Number of the step that was marked last, of this pass."""
        self._last_mark: Mark | None = None
        """The one after the latest step that was read, where steps are numbered."""
        self._place: tuple[int, int] | None = None
        self._readings, self._look_at = 0, 1

    @property
    def gpu(self) -> Gpu | None:
        """None until the program is seen to use one."""
        return None if self._marks is None else self._marks.clock

    def enter_next(self) -> None:
        """next was called."""
        if self._before is not None:
            self._drop_marks()
        if self._marks is None:
            gpu = self._find()
            if gpu is None:
                self.unknown = NO_GPU
                return
            self._marks = Marks(gpu)
        marks = self._marks
        if marks.failure:
            return
        if threading.current_thread() is not threading.main_thread():
            self._give_up("next is called outside the main thread, so the GPU may be used by another one")
        elif len(marks) < MOST_PENDING:
            self._dry = self._ask_stream(marks) if self._closely else None
            self._before = self._record_marks(marks)

    def note_arrival(self) -> None:
        """The batch is there. What follows before next returns is the program's own work."""
        if self._before is not None and self._after is None and self._marks is not None:
            self._after = self._record_marks(self._marks)

    def note_landing(self) -> None:
        """The loop's stream waits for the batch's copy to it, and what follows is other work."""
        if self._after is not None and self._landed is None and self._marks is not None:
            self._landed = self._record_mark(self._marks)

    def leave_next(self, wait_s: float, step_s: float, reader: Reader | None = None, step: int | None = None) -> None:
        """next returns, after that much blocked time in a step that took so long.

        reader is given what the marks say when they are read; that it is not known at once, or later, if it will not
        be. step: the step's number, where it is to be known how long the GPU takes for one.
        """
        if self._before is not None:
            self.note_arrival()
        if self._before is not None and self._after is not None and self._marks is not None:
            since = 0 if step is None or self._last_step is None else step - self._last_step
            turn = Turn(
                self._before, self._after, self._landed, wait_s, step_s, reader, since, self._dry, step is not None
            )
            self._marks.add(turn.after if turn.landed is None else (*turn.after, turn.landed), turn)
            self._before = self._after = self._landed = None
            self._last_step = step
        else:
            self._last_step = None
            if reader is not None:
                reader.reading = NOT_KNOWN
        if self._marks is not None and len(self._marks):
            self.read_marks()

    @property
    def unmeasured(self) -> bool:
        """Whether the loop uses a GPU whose idle is not known."""
        return self.unknown not in ("", NO_GPU)

    def end_pass(self) -> None:
        """next returned nothing: its marks mean nothing, and what follows is another pass."""
        self._drop_marks()
        self._last_step = None

    def _drop_marks(self) -> None:
        landed = () if self._landed is None else (self._landed,)
        for mark in (*(self._before or ()), *(self._after or ()), *landed):
            assert self._marks is not None
            self._marks.clock.free_mark(mark)
        self._before = self._after = self._landed = None

    def read_marks(self) -> None:
        """Takes in the steps that the GPU has come to."""
        marks = self._marks
        if marks is None:
            return
        while not marks.failure and (turn := marks.take_reached()) is not None:
            try:
                self._add_turn(marks, turn)
            except (RuntimeError, NotImplementedError) as error:
                self._give_up(f"the GPU's events cannot be read: {error}")
        if marks.failure and len(marks):
            self._give_up(marks.failure)

    def stats_fields(self) -> dict[str, Any]:
        """The fields of Stats that are the meter's."""
        idle_s = None if self.unknown else self.idle_s
        step_s = 0.0 if self.unknown else self.step_s
        last_s = self.last_idle_s
        transfer_s = None if self.unknown or not self._transfers else self.transfer_s
        known = {"idle_s": idle_s, "idle_step_s": step_s, "last_idle_s": last_s, "transfer_s": transfer_s}
        return {**known, "idle_unknown": self.unknown}

    def _add_turn(self, marks: Marks[Turn], turn: Turn) -> None:
        before, after = turn.before[0].place, turn.after[0].place
        if not before == after == (self._place or after):
            if turn.reader is not None:
                turn.reader.reading = NOT_KNOWN
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
        if turn.reader is not None:
            turn.reader.reading = Reading(self.last_idle_s, transfer_s, self._stream_time(turn), turn.dry)
        self.step_s += turn.step_s
        self.unknown = ""
        self._free_marks(marks.clock, turn)
        self._readings += 1
        if self._readings >= self._look_at:
            self._look_at = self._readings + min(self._readings, LOOK_EVERY)
            self._check_streams(marks.clock, self._place)

    def _stream_time(self, turn: Turn) -> float:
        """Of a step, by the GPU's clock: steps that were not marked share the time with the one that is."""
        if not turn.since or self._last_mark is None:
            return UNKNOWN
        return self._last_mark.until(turn.after[0]) / turn.since

    def _free_marks(self, gpu: Gpu, turn: Turn) -> None:
        """All of a step's but the one that the next is measured from."""
        spent = [*turn.before, *turn.after[1:], *([] if turn.landed is None else [turn.landed])]
        if self._last_mark is not None:
            spent.append(self._last_mark)
        self._last_mark = turn.after[0] if turn.numbered else None
        if self._last_mark is None:
            spent.append(turn.after[0])
        for mark in spent:
            gpu.free_mark(mark)

    def _check_streams(self, gpu: Gpu, place: tuple[int, int]) -> None:
        try:
            reason = gpu.find_elsewhere(place)
            further = gpu.find_further(place) if reason and self._follow else None if reason else self._further
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
        self.unknown, self.last_idle_s = NOTHING, None
        self._drop_pending()

    def _drop_pending(self) -> None:
        for turn in self._marks.take_all() if self._marks is not None else []:
            if turn.reader is not None:
                turn.reader.reading = NOT_KNOWN

    def _ask_stream(self, marks: Marks[Turn]) -> bool | None:
        try:
            return marks.clock.is_idle()
        except (RuntimeError, AttributeError, NotImplementedError) as error:
            self._give_up(f"the GPU has no events to measure with: {error}")
            return None

    def _record_marks(self, marks: Marks[Turn]) -> tuple[Mark, ...] | None:
        """On the loop's stream, and on the further ones."""
        found = [self._record_mark(marks), *(self._record_mark(marks, stream) for stream in self._further)]
        return None if None in found else tuple(mark for mark in found if mark is not None)

    def _record_mark(self, marks: Marks[Turn], stream: Any = None) -> Mark | None:
        failed, mark = bool(marks.failure), marks.record_mark(stream)
        if marks.failure and not failed:
            self._give_up(marks.failure)
        return mark

    def _give_up(self, reason: str) -> None:
        if self._marks is not None:
            self._marks.fail(reason)
        self.unknown, self.last_idle_s = reason, None
        self._before = self._after = self._landed = None
        self._drop_pending()
