"""The steps of one loader of the script, as numbers. Most are counted, with two readings of the clock; some are looked
at closely: on a machine whose caches the script's own work has emptied, whatever is touched costs microseconds.
"""

from __future__ import annotations

import os
import sys
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter_ns, sleep
from typing import Any

from . import backward, proc, settings
from .hold import Hold
from .replay import Replay
from .stream import Row, Stream

WARM_STEPS = 8
"""Left out at the beginning of a loop."""
KEPT_STEPS = 400
"""Rows that go into a report: the latest that were counted, that were looked at closely, and that followed a burst."""
BURSTS = ((4, tuple(range(30, 200, 20))), (8, (40, 70, 100, 130, 160)), (1 << 30, (40, 90, 150)))
"""Room in the prefetch queue, and the steps before which the loop waits until it is full: a short queue shows one
or two steps at a time. The same on all ranks, so that they stay together.
"""
BURST_NS = 3_000_000_000
ENDED_NS = 500_000_000
"""A queue of an IterableDataset that did not grow for so long: workers that have ended answer nothing more."""
MOST_FREE_STEPS = 16
"""Steps watched after a burst."""
LATE = 0.2
"""Share of the time so far that the loop had no batch or no core; from it on workers rest while those are watched."""
MOST_SHAPES = 8
CLOSELY = 12
"""The first steps, all looked at closely."""
LOOK_NS = 100_000_000
"""Between two close looks, about: a fifth of the steps of 20 ms, all that are longer than this."""
MOST_APART_NS = 1_000_000_000


class Handed(BaseException):
    """Carries an exception of the script's through the probe's own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class Loop:
    """One loader. It is asked in the loop's thread alone."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about
        """What the loader was told; so_far, if it is there, tells what it has counted by now."""
        self.steps = 0
        self.stream = Stream()
        self.looks = self.off_thread = 0
        """Steps looked at closely, and those of them whose next was not called by the main thread."""
        self.look_at = self.look_by = 0
        """Time and step from which on the next one is looked at."""
        self._looked = self._looked_ns = 0
        self.first_ns: list[int] = []
        """From iter() to the first batch, per pass."""
        self.shapes: set[tuple[int, ...]] = set()
        self.batch_bytes = 0
        self.memory: dict[str, int] = {}
        self.replay = Replay()
        self._counted: deque[tuple[int, int]] = deque(maxlen=KEPT_STEPS)
        self._rows: deque[Row] = deque(maxlen=KEPT_STEPS)
        self._free_rows: deque[Row] = deque(maxlen=KEPT_STEPS)
        self._left = self._fresh = self._free_steps = 0
        self._hold: Hold | None = None
        """Keeps the workers at rest."""
        self._held_since = self._held_ns = 0
        self._refill_steps = 0
        """Steps left in which batches are late because workers were at rest."""
        self._waited_ns = self._took_ns = 0
        """Of the steps that are neither those nor after a burst."""
        self._since, self._queued0_ns = perf_counter_ns(), proc.main_queueing_ns()
        room = about["workers"] * about["prefetch"]
        bursts = settings.BURSTS and about["workers"]
        self._bursts = next(steps for most, steps in BURSTS if room <= most) if bursts else ()
        self._backward0 = self._pass_backward = backward.passes[0]
        self.first = False
        """The latest step was the first of its pass."""
        self.frames = self.without_backward = 0
        """Looks at frames, and those of them that found graphs in a pass that had not gone backward."""

    # -- a pass -------------------------------------------------------------------------------------------------------

    def begin_pass(self, now: int) -> None:
        """iter() was called."""
        self._break_off()
        self._fresh = now
        self.look_by = 0
        self._pass_backward = backward.passes[0]
        self.stream.end_pass()

    def end_pass(self) -> None:
        """next returned no batch."""
        self._break_off()
        self.stream.end_pass()

    def _break_off(self) -> None:
        self.release_workers()
        self._left = self._free_steps = self._refill_steps = 0

    # -- a step -------------------------------------------------------------------------------------------------------

    def count_step(self, began: int, now: int) -> None:
        """next has returned a batch; that is all to be known of this step."""
        if self._left and self._free_steps:
            self._free_rows.append(Row(now - began, now - self._left, 1, 0, True))
        elif self._left and not self._refill_steps:
            self._counted.append((now - began, now - self._left))
            self._waited_ns += now - began
            self._took_ns += now - self._left
        self._step_on(now)

    def has_passed(self, numbers: Sequence[int]) -> bool:
        """Whether a step of these numbers was done since the close look before this one."""
        return bisect_right(numbers, self.steps) > bisect_right(numbers, self._looked)

    def end_look(self, now: int, *, go_on: bool = False) -> None:
        """A close look ends. The next, unless they go on, comes after a number of steps, not at a time: at a time it
        would be the long ones that are looked at.
        """
        self.looks += 1
        self.off_thread += threading.current_thread() is not threading.main_thread()
        apart = LOOK_NS * (self.steps - self._looked) // max(1, now - self._looked_ns) + self.looks % 2
        free = self._free_steps and self.stream.gpu is not None  # whose clock is to tell how long they take
        apart = 1 if go_on or free or self.steps < CLOSELY or settings.REPLAY else max(1, apart)
        self._looked, self._looked_ns, self.look_at = self.steps, now, now + MOST_APART_NS
        held = next((step for step in self._bursts if step >= self.steps), self.steps + apart)
        self.look_by = min(self.steps + apart - 1, held)

    def enter_next(self, iterator: Any) -> tuple[int, int, int]:
        """next was called: when, and how many batches are ready, how many of them out of their turn."""
        ready, held = count_queue(iterator)
        if ready >= 0 and self.steps in self._bursts:
            self._fill_queue(iterator)
            ready, held = count_queue(iterator)
        self.stream.enter_next()
        return perf_counter_ns(), ready, held

    def leave_next(self, entered: tuple[int, int, int], batch: Any) -> None:
        """next returns a batch."""
        now = perf_counter_ns()
        began, ready, held = entered
        row = None
        self.first = self._fresh > 0
        if self._fresh:
            self.first_ns.append(now - self._fresh)
            self._fresh = 0
        elif self._left and not self._refill_steps:
            row = Row(now - began, now - self._left, ready, held, self._free_steps > 0)
            self._keep_row(row)
        self.stream.leave_next(row, self.steps)
        self._step_on(now)
        if self.steps <= CLOSELY:
            self._look_at_batch(batch)

    def _step_on(self, now: int) -> None:
        """The step is over. A look behind those that refill the queue would have their time in its own."""
        if self._refill_steps:
            self._refill_steps -= 1
            if not self._refill_steps:
                self.stream.end_pass()
        if self._free_steps:
            self._free_steps -= 1
            if not self._free_steps:
                self.release_workers()
        self._left = now
        self.steps += 1

    def _keep_row(self, row: Row) -> None:
        if row.burst:
            if row.ready > row.held:
                self._free_rows.append(row)
        elif self.steps >= WARM_STEPS:
            self._rows.append(row)
            self._waited_ns += row.wait_ns
            self._took_ns += row.step_ns

    def _fill_queue(self, iterator: Any) -> None:
        """Waits until every batch that was asked for is there, so that the next steps need not."""
        began = grew = perf_counter_ns()
        ready = count_queue(iterator)[0]
        while ready < len(iterator._task_info) and perf_counter_ns() - began < BURST_NS:
            self._sleep()
            before = ready
            ready = count_queue(iterator)[0]
            if ready > before:
                grew = perf_counter_ns()
            if self.about["iterable"] and perf_counter_ns() - grew > ENDED_NS:
                break
        self._free_steps = min(ready, MOST_FREE_STEPS)
        self._left = 0
        self.stream.end_pass()
        if self._free_steps and not self.about["iterable"] and self._is_late():
            self._held_since = perf_counter_ns()
            self._hold = Hold(iterator)

    def _sleep(self) -> None:
        try:
            sleep(0.002)
        except Exception as error:  # of a signal's handler, and so the script's
            raise Handed(error) from None

    def _is_late(self) -> bool:
        queued_ns = proc.main_queueing_ns() - self._queued0_ns
        waited = self._waited_ns / max(1, self._took_ns)
        return waited + queued_ns / (perf_counter_ns() - self._since) > LATE

    def release_workers(self) -> None:
        """The workers go on, if they were at rest. Never waits."""
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release_items()
            self._held_ns += perf_counter_ns() - self._held_since
            self._refill_steps = hold.batches

    def _look_at_batch(self, batch: Any) -> None:
        self.batch_bytes = count_bytes(batch)
        shape = first_shape(batch)
        if shape and len(self.shapes) < MOST_SHAPES:
            self.shapes.add(shape)

    def look_at_frames(self, look: Callable[[], bool]) -> None:
        """look is that of frames.Frames."""
        self.frames += 1
        self.without_backward += look() and backward.passes[0] == self._pass_backward

    def next_replayed(self) -> Any:
        """A batch that was seen, in place of the next one; None while the real ones are to come."""
        batch = self.replay.batch_at(self.steps)
        if batch is not None:
            self._left, self.steps = perf_counter_ns(), self.steps + 1
        return batch

    # -- the report ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """For the report."""
        self.stream.read_marks()
        about = dict(self.about)
        so_far = about.pop("so_far", dict)
        return {
            **about,
            **so_far(),
            "steps": self.steps,
            "rows": [*self._counted, *(row.dump() for row in (*self._rows, *self._free_rows))],
            "held_ns": self._held_ns,
            "first_ns": self.first_ns[-100:],
            "passes": len(self.first_ns),
            "gpu": self.stream.name,
            "gpu_unknown": self.stream.unknown,
            "off_thread": self.off_thread * self.steps // max(1, self.looks),
            "shapes": len(self.shapes),
            "batch_bytes": self.batch_bytes,
            "memory": self.memory,
            "replayed_ns": self.replay.step_ns,
            "backward": backward.passes[0] - self._backward0,
            "frames": self.frames,
            "without_backward": self.without_backward,
            "pid": os.getpid(),
        }


def count_queue(iterator: Any) -> tuple[int, int]:
    """Batches ready in the main process or on their way, and how many of them wait for an earlier one; -1: no queue."""
    try:
        tasks = iterator._task_info
        held = sum(len(task) == 2 for task in tasks.values())
        return iterator._data_queue.qsize() + held, held
    except (AttributeError, NotImplementedError):
        return -1, 0


def count_bytes(batch: Any, depth: int = 3) -> int:
    """Bytes of the tensors in a batch."""
    if _is_tensor(batch):
        return int(batch.numel() * batch.element_size())
    if depth and isinstance(batch, dict):
        batch = list(batch.values())
    return sum(count_bytes(part, depth - 1) for part in batch) if depth and isinstance(batch, (list, tuple)) else 0


def first_shape(batch: Any, depth: int = 3) -> tuple[int, ...]:
    """Shape of the first tensor in a batch."""
    if _is_tensor(batch):
        return tuple(batch.shape)
    if isinstance(batch, dict):
        batch = list(batch.values())
    return first_shape(batch[0], depth - 1) if depth and isinstance(batch, (list, tuple)) and batch else ()


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
