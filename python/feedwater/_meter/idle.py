"""The step meter: how long the GPU stood still because the loop was blocked in next, and how long it takes for a step.

The Loader, through Pace, and the doctor measure by it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, Protocol

from . import gpu_events
from .gpu_events import Gpu, Mark, Place
from .marks import Marks

__all__ = ["Meter", "Reading"]

MOST_PENDING = 256
"""Steps whose marks the GPU has not reached; further ones are not measured."""
MOST_FURTHER = 16
"""Streams beside the loop's that marks are recorded on."""
NOTHING = "nothing was measured yet"
NO_GPU = "the program uses no GPU with CUDA events"
OFF_THREAD = "next is called outside the main thread, so the GPU may be used by another one"
MOVED = "the loop changed streams inside next"
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


@dataclass
class Totals:
    """Sums over steps that were read."""

    idle_s: float = 0.0
    step_s: float = 0.0
    """Of the steps whose idle is known."""
    most_s: float = 0.0
    """An upper bound of the idle, of all steps that were read."""
    most_step_s: float = 0.0
    transfer_s: float = 0.0
    transfers: int = 0


class Reader(Protocol):
    """Wants to know of a step what the GPU's clock says of it."""

    reading: Reading | None
    """None until that is known, or known not to be."""


class Turn(NamedTuple):
    """One step of the loop whose marks may not be reached yet."""

    before: tuple[Mark, ...]
    """Of the loop's stream first, then of further ones."""
    after: tuple[Mark, ...]
    """Of the loop's stream first, then of one stream of each further GPU."""
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
    unseen: str
    """Why the GPU may have had work that no mark tells of."""

    @property
    def gap_s(self) -> float:
        """How long none of the streams had work, from the last that ended it to the batch's arrival."""
        ends = {mark.place[0]: mark for mark in reversed(self.after)}
        return min(mark.until(ends[mark.place[0]]) for mark in self.before)

    @property
    def transfer_s(self) -> float:
        """From the batch's arrival, or the end of the work before it, to the end of its copy."""
        if self.landed is None:
            return UNKNOWN
        arrival = next((mark for mark in self.after if mark.place[0] == self.landed.place[0]), None)
        return UNKNOWN if arrival is None else max(0.0, arrival.until(self.landed))


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

    Where the program works on further streams, first marks are recorded on them too. Whoever is blocked in next submits
    nothing, so a stream whose first mark is reached has nothing to do until the batch is there: the GPU stood still
    from the last of the first marks to the second one. On each of several GPUs that is so, and the program stood still
    for the shortest of these times. Looks tell which streams those are; the loop's former ones are known without.

    A step is unknown by itself: next in another thread, or work on streams that marks cannot be recorded on. Of the
    latter it is known how long the GPU stood still at most. unknown says why the latest step is not known. closely has
    the stream asked, at each call of next, whether it has anything to do.
    """

    def __init__(self, find: Callable[[], Gpu | None] | None = None, *, closely: bool = False) -> None:
        self.totals = Totals()
        self._kept = Totals()
        """As they were at the last look."""
        self.last_idle_s: float | None = None
        self.unknown = NOTHING
        self._find = find or gpu_events.find_gpu
        self._closely = closely
        self._marks: Marks[Turn] | None = None
        """None until the program uses a GPU."""
        self._before: tuple[Mark, ...] | None = None
        self._after: tuple[Mark, ...] | None = None
        self._further: dict[Place, Any] = {}
        """Streams that work for this program, the loop's own among them if it was another one before."""
        self._unseen = ""
        """Why there may be work on others."""
        self._landed: Mark | None = None
        self._dry: bool | None = None
        self._last_step: int | None = None
        """Number of the step that was marked last, of this pass."""
        self._last_mark: Mark | None = None
        """The one after the latest step that was read, where steps are numbered."""
        self._place: Place | None = None
        self._stream: Any = None
        """The loop's, by the latest mark; None where it may be gone now."""
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
            self.unknown, self.last_idle_s = OFF_THREAD, None
        elif len(marks) < MOST_PENDING:
            self._dry = self._ask_stream(marks) if self._closely else None
            self._before = self._mark_streams(marks)

    def note_arrival(self) -> None:
        """The batch is there. What follows before next returns is the program's own work."""
        if self._before is not None and self._after is None and self._marks is not None:
            own, *further = self._before
            ends = {mark.place[0]: mark.stream for mark in reversed(further) if mark.place[0] != own.place[0]}
            self._after = self._record_all(self._marks, [None, *ends.values()])

    def note_landing(self, stream: Any = None) -> None:
        """The loop's stream, or another one for which the batch is, waits for its copy, and what follows is other work.

        One that no first mark was recorded on is followed from now on, and this step is not known.
        """
        if self._before is None or self._after is None or self._landed is not None or self._marks is None:
            return
        self._landed = self._record_mark(self._marks, stream)
        place = None if self._landed is None else self._landed.place
        if place is not None and place[0] not in {mark.place[0] for mark in self._after}:
            self._further = {place: stream, **self._further}
            self._drop_marks()

    def leave_next(self, wait_s: float, step_s: float, reader: Reader | None = None, step: int | None = None) -> None:
        """next returns, after that much blocked time in a step that took so long.

        reader is given what the marks say when they are read; that it is not known at once, or later, if it will not
        be. step: the step's number, where it is to be known how long the GPU takes for one.
        """
        if self._before is not None:
            self.note_arrival()
        if self._before is not None and self._after is not None and self._marks is not None:
            since = 0 if step is None or self._last_step is None else step - self._last_step
            fixed = (wait_s, step_s, reader, since, self._dry, step is not None, self._unseen)
            turn = Turn(self._before, self._after, self._landed, *fixed)
            last = () if turn.landed is None else (turn.landed,)
            self._marks.add((*turn.before, *turn.after, *last), turn)
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
        told = self.totals
        return {
            "idle_s": told.idle_s if told.step_s else None,
            "idle_step_s": told.step_s,
            "last_idle_s": self.last_idle_s,
            "transfer_s": told.transfer_s if told.transfers else None,
            "idle_most_share": min(1.0, told.most_s / told.most_step_s) if told.most_step_s else None,
            "idle_unknown": self.unknown,
        }

    def _add_turn(self, marks: Marks[Turn], turn: Turn) -> None:
        told, reading = self.totals, NOT_KNOWN
        moved = MOVED if turn.before[0].place != turn.after[0].place else ""
        self.unknown, self.last_idle_s = moved or turn.unseen, None
        if not moved:
            most_s = max(0.0, min(turn.gap_s, turn.wait_s))
            told.most_s += most_s
            told.most_step_s += turn.step_s
            transfer_s = turn.transfer_s
            if turn.landed is not None and transfer_s == transfer_s:
                told.transfer_s += transfer_s
                told.transfers += 1
            if not turn.unseen:
                told.idle_s += most_s
                told.step_s += turn.step_s
                self.last_idle_s = most_s
            idle_s = UNKNOWN if turn.unseen else most_s
            reading = Reading(idle_s, transfer_s, self._stream_time(turn), turn.dry)
        if turn.reader is not None:
            turn.reader.reading = reading
        self._free_marks(marks.clock, turn)
        self._readings += 1

    def _stream_time(self, turn: Turn) -> float:
        """Of a step, by the GPU's clock: steps that were not marked share the time with the one that is."""
        last = self._last_mark
        if not turn.since or last is None or last.place[0] != turn.after[0].place[0]:
            return UNKNOWN
        return last.until(turn.after[0]) / turn.since

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

    def _look_for_streams(self, gpu: Gpu, place: Place) -> None:
        """Marks are recorded on streams that are found, too. What was read since the look before it says too much if
        there are any, and is dropped; so it is if there are streams that no mark tells of.
        """
        self._look_at = self._readings + min(self._readings, LOOK_EVERY)
        try:
            found, unseen = gpu.find_streams(place)
        except (RuntimeError, AttributeError, KeyError, NotImplementedError) as error:
            found, unseen = {}, f"torch does not tell which streams are in use: {error}"
        merged = {**self._further, **found}
        if len(merged) > MOST_FURTHER:  # those that had their time go first
            merged = found
        if len(merged) > MOST_FURTHER:
            unseen = unseen or f"the program works on more than {MOST_FURTHER} further streams"
            merged = dict(islice(merged.items(), MOST_FURTHER))
        if merged.keys() - self._further.keys() or (unseen and not self._unseen):
            self.totals, self._look_at = replace(self._kept), self._readings + 1
            self.unknown, self.last_idle_s = unseen or NOTHING, None
            self._drop_pending()
        self._kept = replace(self.totals)
        self._further, self._unseen = merged, unseen

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

    def _mark_streams(self, marks: Marks[Turn]) -> tuple[Mark, ...] | None:
        """On the loop's stream, and on all others where it is known to work, those it was on before among them."""
        own = self._record_mark(marks)
        if own is None:
            return None
        if self._readings >= self._look_at:  # not amid a capture, which a look would end
            self._look_for_streams(marks.clock, own.place)
        if self._place not in (None, own.place):
            if self._stream is None:
                self._unseen = self._unseen or gpu_events.FOREIGN
            else:
                self._further[self._place] = self._stream
        self._place, self._stream = own.place, own.stream
        further = self._record_all(marks, [stream for at, stream in self._further.items() if at != own.place])
        return None if further is None else (own, *further)

    def _record_all(self, marks: Marks[Turn], streams: list[Any]) -> tuple[Mark, ...] | None:
        """A mark on each; None of them if one cannot be had."""
        found = [self._record_mark(marks, stream) for stream in streams]
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
