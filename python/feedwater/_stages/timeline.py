"""The time of a training loop, cut into stages.

Whoever hooks the loop says when a stage begins and ends; each moment belongs to the innermost one, so that a step's
stages add up to the step. Cuts are marks of a clock: the host's, or events in a GPU's stream, which are read when the
GPU has come to them. One thread's loop; calls of other threads are left to whoever hooks it to keep away.
"""

from __future__ import annotations

from collections import Counter, deque
from os import getpid
from threading import get_ident
from time import perf_counter
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

from .._meter.gpu_events import Gpu, Mark, Place, Streams
from .._meter.marks import Marks

__all__ = ["BACKWARD", "COPY", "DATA", "FORWARD", "OPTIMIZER", "OTHER", "STAGES", "Host", "Loop", "Timeline"]

STAGES = ("data wait", "host-to-device", "forward", "backward", "optimizer", "other")
DATA, COPY, FORWARD, BACKWARD, OPTIMIZER, OTHER = range(len(STAGES))

MOST_CUTS = 1000
"""Cuts after which those that are reached are taken in, though no loader is asked for a batch."""
KEPT_STEPS = 10_000
"""Steps that figures are made of: the latest."""
WARM_UP = "warm-up"
INNER_LOOP = "with another loop inside"
TORN = "broken off inside a stage"
MOVED = "on several streams or GPUs"


class Instant(float):
    """A moment of the host's clock, as a mark."""

    __slots__ = ()
    place = (-1, 0)
    stream = None

    def done(self) -> bool:
        """A moment that was taken has come."""
        return True

    def until(self, later: float) -> float:
        """Seconds to a later moment."""
        return later - self


class Host:
    """The host's clock, where no GPU has events."""

    def record_mark(self, stream: Any = None) -> Instant:
        """Now."""
        return Instant(perf_counter())

    def free_mark(self, mark: Any) -> None:
        """Nothing to keep."""

    def is_idle(self) -> bool:
        """There is no stream that could have work to do."""
        return True

    def find_streams(self, place: Place) -> Streams:
        """Work of other threads is not looked for."""
        return Streams({})


class Loop:
    """The steps of one loader: from one call of next to the following one in the same pass."""

    __slots__ = ("__weakref__", "_begun", "_inside", "fault", "left_out", "steps", "trained")

    def __init__(self) -> None:
        self.steps: deque[tuple[float, ...]] = deque(maxlen=KEPT_STEPS)
        """Seconds per stage, and last the host's blocked time in next."""
        self.left_out: Counter[str] = Counter()
        self.trained = 0
        """Steps with a backward pass or an optimizer in them."""
        self.fault = ""
        """Why the step that is open cannot be counted."""
        self._begun: tuple[float, ...] | None = None
        self._inside: Counter[int] = Counter()

    def begin_step(self, totals: tuple[float, ...], *, first: bool, warm: bool) -> None:
        """next was called: the step before ends, unless this is the first of a pass, and another begins."""
        if self._begun is not None and not first:
            self._close_step(tuple(now - then for now, then in zip(totals, self._begun)), warm)
        self._begun, self.fault = totals, ""
        self._inside.clear()

    def end_pass(self) -> None:
        """next had no batch."""
        self._begun = None

    def passed_by(self, other: Loop) -> None:
        """Another loader's next was called inside a step. Once is a second source of data, twice a loop."""
        self._inside[id(other)] += 1
        if self._inside[id(other)] > 1:
            self.fault = self.fault or INNER_LOOP

    def _close_step(self, spent: tuple[float, ...], warm: bool) -> None:
        fault = self.fault or ("" if warm and (self.steps or self.left_out) else WARM_UP)
        if fault:
            self.left_out[fault] += 1
            return
        self.steps.append(spent)
        self.trained += spent[BACKWARD] > 0 or spent[OPTIMIZER] > 0


class Call(NamedTuple):
    """next of a loader is called, for the first time in a pass or again; or a pass ends."""

    loop: Loop
    event: Literal["first", "next", "end"]
    waited: float = 0.0
    torn: bool = False
    warm: bool = True


class Timeline:
    """Stages and loops of the thread that made it."""

    def __init__(self) -> None:
        self.resume()
        self.restart(Host())

    def restart(self, clock: Gpu) -> None:
        """Forgets everything and goes by another clock."""
        self._marks: Marks[tuple[Mark, int, Call | None]] = Marks(clock)
        """Where stages begin, and which; the clock may not have come to them."""
        self.loops: list[Loop] = []
        """In the order they were seen."""
        self.loop_of: WeakKeyDictionary[Any, Loop] = WeakKeyDictionary()
        """By loader, and by iterator."""
        self.strayed = False
        """Whether a stage was on another stream than the call of next. Its work counts where it is waited for."""
        self.home: Place | None = None
        self._open: dict[Loop, None] = {}
        """Loops with a step begun."""
        self._totals = [0.0] * len(STAGES)
        self._stack: list[tuple[int, object]] = []
        self._mark: Mark | None = None
        """The last cut that was taken in, and the stage that began there."""
        self._begun = OTHER
        self._waited = self._entered = 0.0

    @property
    def clock(self) -> Gpu:
        """Whose time it is."""
        return self._marks.clock

    @property
    def failure(self) -> str:
        """Why nothing is measured any more; "" while it is."""
        return self._marks.failure

    def pause(self) -> None:
        """A block ends: what is open is no step."""
        self._stack.clear()
        for loop in set(self.loop_of.values()):
            self._cut_stage(OTHER, Call(loop, "end"))

    def resume(self) -> None:
        """A block begins, in the calling thread."""
        self._thread, self._pid = get_ident(), getpid()

    def find_elsewhere(self) -> str:
        """Why the loop's stream is not all of the GPU's work; "" if it seems to be, or there is none."""
        home = self.home
        try:
            found, unseen = self.clock.find_streams(home) if home is not None else Streams({})
        except (RuntimeError, AttributeError, KeyError, NotImplementedError):
            return ""
        other = next((gpu for gpu, _ in found if home is not None and gpu != home[0]), None)
        if other is not None and home is not None:
            return f"this process works on GPU {other} as well as on {home[0]}"
        return unseen or ("the program uses further streams" if found else "")

    def in_own_thread(self) -> bool:
        """Whether the calling thread is the loop's, and no forked child's."""
        return get_ident() == self._thread and getpid() == self._pid

    @property
    def stage(self) -> int:
        """The innermost stage that is open."""
        return self._stack[-1][0] if self._stack else OTHER

    def enter_stage(self, stage: int, owner: object) -> None:
        """A stage begins. All of a backward pass is backward, and all of next is data wait but for copies."""
        stack = self._stack
        before = stack[-1][0] if stack else OTHER
        if before == BACKWARD or (before == DATA and stage != COPY):
            stage = before
        stack.append((stage, owner))
        if stage != before:
            self._cut_stage(stage)

    def leave_stage(self, owner: object) -> None:
        """The stage that owner began ends, and all inside it that were not ended."""
        stack = self._stack
        for at in range(len(stack) - 1, -1, -1):
            if stack[at][1] is owner:
                before = stack[-1][0]
                del stack[at:]
                after = stack[-1][0] if stack else OTHER
                if after != before:
                    self._cut_stage(after)
                return

    def begin_next(self, loop: Loop, *, first: bool, warm: bool) -> None:
        """next of a loader was called."""
        self.read_marks()
        torn = bool(self._stack)
        self._stack = [(DATA, loop)]
        self._cut_stage(DATA, Call(loop, "first" if first else "next", self._waited, torn, warm))
        self._entered = perf_counter()

    def end_next(self, loop: Loop, got: bool) -> None:
        """next returns, with or without a batch."""
        self._waited += perf_counter() - self._entered
        self._stack.clear()
        self._cut_stage(OTHER, None if got else Call(loop, "end"))

    def _cut_stage(self, stage: int, call: Call | None = None) -> None:
        mark = self._marks.record_mark()
        if mark is None:  # it has failed, or a CUDA graph is being captured
            return
        if call is not None:
            self.home = mark.place
        elif mark.place != self.home:
            self.strayed = self.strayed or self.home is not None
            self.clock.free_mark(mark)
            return
        self._marks.add((mark,), (mark, stage, call))
        if len(self._marks) >= MOST_CUTS:
            self.read_marks()

    def read_marks(self) -> None:
        """Takes in the cuts that the clock has come to."""
        marks = self._marks
        try:
            while (cut := marks.take_reached()) is not None:
                self._take_mark(*cut)
        except (RuntimeError, NotImplementedError) as error:
            marks.fail(f"the GPU's events cannot be read: {error}")
        if marks.failure:
            marks.take_all()

    def _take_mark(self, mark: Mark, stage: int, call: Call | None) -> None:
        last = self._mark
        if last is not None:
            if last.place == mark.place:
                self._totals[self._begun] += last.until(mark)
            else:
                self._note_fault(MOVED)
            self.clock.free_mark(last)
        self._mark, self._begun = mark, stage
        if call is not None:
            self._apply_call(call.loop, call)

    def _apply_call(self, loop: Loop, call: Call) -> None:
        if call.torn:
            self._note_fault(TORN)
        if call.event == "end":
            loop.end_pass()
            self._open.pop(loop, None)
            return
        if loop not in self._open:
            self._open[loop] = None
            if loop not in self.loops:
                self.loops.append(loop)
        for other in self._open:
            if other is not loop:
                other.passed_by(loop)
        loop.begin_step((*self._totals, call.waited), first=call.event == "first", warm=call.warm)

    def _note_fault(self, fault: str) -> None:
        for loop in self._open:
            loop.fault = fault
