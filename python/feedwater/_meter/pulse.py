"""The pulse: what the agent, and through it the nodes, are told of how the loop fares."""

from __future__ import annotations

import struct
import weakref
from collections import deque
from time import perf_counter

from .._agent.feed import Feed
from .._common.ranks import Ranks
from .._order.steps import Order, Step
from .pace import Pace, StepTime

__all__ = ["Pulse"]

EVERY_S = 0.25
BLOCKED_S = 0.5
MOST_STEPS = 512
OVERDUE = 64
"""Steps after which one whose idle the GPU's events have not told is told without."""

_HEAD = struct.Struct("<cIIIIIdB")
_STEP = struct.Struct("<Qdddd")
UNKNOWN = float("nan")


class Pulse:
    """Gathers steps, and sends them at most every EVERY_S. Never waits; what is lost is lost."""

    def __init__(self, pace: Pace, feed: Feed) -> None:
        self._pace = pace
        self._feed = weakref.ref(feed)
        """It knows us: no cycle, so that a Loader's memory goes when the last reference to it does.

        Of what is garbage in a cycle it gives None while finalisers run, which may ask for batches still.
        """
        self._steps: deque[tuple[int, StepTime]] = deque(maxlen=MOST_STEPS)
        self._after = 0.0
        self._place = Ranks(0, 1)
        self._samples = 0
        self._whole: tuple[int, int] | None = None
        feed.waiting, feed.stopped = self.note_wait, pace.note_stop

    def begin_pass(self, order: Order, batch: int | None, ranks: Ranks) -> None:
        """A pass begins."""
        self._place = ranks
        try:
            steps = order.count_steps(ranks)
        except TypeError:  # a sampler without a length
            steps = 0
        self._whole = (steps, batch * ranks.world) if steps and batch else None

    def note_step(self, step: Step) -> None:
        """That step's batch is returned now."""
        time = self._pace.step
        if time is not None:
            self._steps.append((self.step_number(step), time))
        self._samples = step.size
        now = perf_counter()
        if now >= self._after:
            self._send_report(now, -1.0)

    def step_number(self, step: Step) -> int:
        """Counts steps over the whole job, the same on all ranks.

        Where an epoch's length or the size of its steps is not known beforehand it grows by more than one.
        """
        if self._whole is None:
            return step.number
        steps, whole = self._whole
        return step.epoch * steps + step.start // whole

    def note_wait(self, blocked_s: float) -> None:
        """The loop is blocked in next, for so long now."""
        if blocked_s >= BLOCKED_S:
            now = perf_counter()
            if now >= self._after:
                self._send_report(now, blocked_s)

    def _send_report(self, now: float, blocked_s: float) -> None:
        feed = self._feed()
        link = None if feed is None else feed.session.link
        if feed is None or link is None:
            return
        self._after = now + EVERY_S
        self._pace.meter.read_marks()
        parts = [self._encode_head(feed, blocked_s)]
        steps = self._steps
        while steps:
            number, time = steps[0]
            if time.idle_s is None and len(steps) < OVERDUE:
                break
            idle_s = UNKNOWN if time.idle_s is None else time.idle_s
            transfer_s = UNKNOWN if time.transfer_s is None else time.transfer_s
            parts.append(_STEP.pack(number, time.step_s, time.wait_s, idle_s, transfer_s))
            steps.popleft()
        link.send_lossy(b"".join(parts))

    def _encode_head(self, feed: Feed, blocked_s: float) -> bytes:
        unmeasured = self._pace.meter.unmeasured
        return _HEAD.pack(b"P", *self._place, self._samples, feed.count_ready(), feed.window, blocked_s, unmeasured)
