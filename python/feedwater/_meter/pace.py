"""How fast the training loop goes: the wait in next, the step around it, the GPU's idle."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

from .._agent.index_use import NO_USE, IndexUse
from .idle import Meter, Reading

__all__ = ["Pace", "Stats", "StepTime"]


@dataclass(frozen=True)
class Stats:
    """What a Loader has done since it was made. Times in seconds."""

    batches: int
    samples: int
    """Rows that came from the data set; padding is not counted."""
    received_bytes: int
    wait_s: float
    """Time the loop was blocked in next, waiting for batches."""
    transform_s: float
    """Time of batch_transform, which runs in the loop's own thread, inside next."""
    python_wait_s: float
    """Part of wait_s: for the processes of python=, while the agent's batch was there."""
    step_s: float
    """Time of all steps of the loop, wait_s and transform_s included; what lies between two passes is not counted."""
    last_wait_s: float
    window: int
    """Batches the agent would like to have wanted or ready at once."""
    slots: int
    copied_batches: int
    """Batches put into ordinary memory because live tensors held the slots."""
    skipped: int
    """Broken samples left out (on_error="skip")."""
    substituted: int
    """Broken samples replaced by others (on_error="substitute")."""
    agent_restarts: int
    idle_s: float | None
    """Time the GPU stood still because the loop was blocked in next; None: unknown of every step, see idle_unknown.

    Per step, the time between two events in the loop's stream, recorded when next is called and when the batch is
    there, and at most the wait: what of the wait the stream had nothing to do in. Steps whose events the GPU has not
    come to are not in it yet. Low by the host's time from next's return to the first work it submits to the GPU, where
    the stream had run dry.
    """
    idle_step_s: float
    """Time of the steps of the loop that idle_s is of: those whose idle is known."""
    last_idle_s: float | None
    """idle_s of the last step that was read; None: unknown."""
    idle_unknown: str
    """Why the last step is not part of idle_s; "" if it is. Unknown are loops of other threads, streams of other
    libraries, and no CUDA.
    """

    transfer_s: float | None = None
    """With device="cuda": time the GPU stood still for the copy of a batch that was there, apart from idle_s.

    None: unknown, as idle_s is, or because the program copies.
    """
    idle_most_share: float | None = None
    """An upper bound of idle_share over all steps that were read, those too whose idle is not known, as work on a
    stream may fill it that cannot be seen; None: nothing was read.
    """
    index: IndexUse = NO_USE
    """Pictures of these batches that had to be decoded, by what index they had: hits, copies, misses. missing_copies is
    how many could have had a copy, for which no room was given, made_copies of how many one was made on the way:
    docs/image-index.md. kept is how many others there were, whose pixels were kept: docs/keep.md.
    """

    @property
    def wait_share(self) -> float:
        """Part of the loop's time that went into waiting: 0 is fed, 1 is starved."""
        return self.wait_s / self.step_s if self.step_s else 0.0

    @property
    def idle_share(self) -> float | None:
        """Part of the time in which the GPU stood still for data: what faster data would save. None: unknown."""
        return self.idle_s / self.idle_step_s if self.idle_s is not None and self.idle_step_s else None


class StepTime:
    """One step of the loop, from one return of next to the following one."""

    __slots__ = ("reading", "step_s", "wait_s")

    def __init__(self, step_s: float, wait_s: float) -> None:
        self.step_s, self.wait_s = step_s, wait_s
        self.reading: Reading | None = None
        """What the GPU's clock says of it; None until the meter has read that."""

    @property
    def idle_s(self) -> float | None:
        """None until the meter has read it; not a number if it cannot be known."""
        return None if self.reading is None else self.reading.idle_s

    @property
    def transfer_s(self) -> float | None:
        """The same of the wait for the batch's copy, where batches are copied by us."""
        return None if self.reading is None else self.reading.transfer_s


class Pace:
    """Times of one loop."""

    def __init__(self, meter: Meter | None = None) -> None:
        self.meter = meter or Meter()
        self.wait_s = self.transform_s = self.step_s = self.last_wait_s = 0.0
        self._inside = self._stopped = 0.0
        self.step: StepTime | None = None
        """The latest step; None if what came before is no step: a pass has just begun."""
        self._returned: float | None = None

    def enter_next(self) -> float:
        """next was called."""
        self._inside = self._stopped = 0.0
        self.meter.enter_next()  # a look for streams is no wait
        return perf_counter()

    def note_arrival(self) -> None:
        """The batch is there; what follows inside next is batch_transform."""
        self.meter.note_arrival()

    def note_landing(self, stream: Any = None) -> None:
        """That stream, the loop's if there is none, waits for the batch's copy to the GPU."""
        self.meter.note_landing(stream)

    def note_transform(self, seconds: float) -> None:
        """batch_transform took so long: work of the loop, no wait for us."""
        self.transform_s += seconds
        self._inside += seconds

    def note_stop(self, seconds: float) -> None:
        """This process did not run for so long, inside next: neither a wait for us nor work of the loop."""
        self._stopped += seconds

    def leave_next(self, entered: float) -> None:
        """next returns."""
        now = perf_counter()
        self.last_wait_s = now - entered - self._inside - self._stopped
        self.wait_s += self.last_wait_s
        step_s = now - (self._returned if self._returned is not None else entered) - self._stopped
        self.step_s += step_s
        self.step = None if self._returned is None else StepTime(step_s, self.last_wait_s)
        self._returned = now
        self.meter.leave_next(self.last_wait_s, step_s, self.step)

    def end_pass(self) -> None:
        """A pass ended: what comes before the next batch is no step."""
        self._returned = None
        self.meter.end_pass()
