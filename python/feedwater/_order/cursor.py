"""Where a run stands: the cursor, and what iter, set_epoch and load_state_dict do to it. No I/O, no clock.

The place and what was returned there are one object, replaced by one store: an exception leaves either the old or the
new state, never half of it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

__all__ = ["Cursor", "Position"]

KEPT = 256


class Position:
    """A place in the run. Never changed, but replaced."""

    __slots__ = ("last", "place", "returned", "step", "totals")

    def __init__(self, place: tuple[int, int], returned: bool, last: Any, totals: Any, step: Any = None) -> None:
        self.place = place
        """The names of what comes next: the epoch, and how many samples of it all ranks have consumed."""
        self.returned = returned
        """Whether this pass has returned a batch."""
        self.last = last
        """What is known of the last batch that was returned."""
        self.totals = totals
        """Counts of what was consumed since the run began."""
        self.step = step
        """The step of the last batch of this pass."""


class Cursor:
    """The state machine of passes. A pass is what one iter() yields."""

    def __init__(self) -> None:
        self.at = Position((0, 0), False, None, None)
        self.habit: int | None = None
        """Where the last pass was broken off; the next one probably is too."""
        self._failed: Position | None = None
        """Where we were at the latest error of ours. A pass that has gone on since was not ended by it."""
        self.loaded = False
        """A state was loaded and no batch returned since."""
        self.moved = False
        """A state was loaded that the running pass has not taken up."""
        self._next: tuple[int, int] | None = (0, 0)
        """Where the next pass begins, if that is decided."""
        self._decided = self.at
        """Where we were when it was. A pass that has gone on since was not broken off."""
        self._history: deque[tuple[int, int]] = deque(maxlen=KEPT)
        self.skipped: int | None = None
        """Steps of its epoch that the next pass leaves out, where a place does not say so yet."""

    @property
    def place(self) -> tuple[int, int]:
        """The names of the next batch: where the next pass begins if that was decided, and none has gone on since."""
        return (self.pending and self._next) or self.at.place

    @property
    def following(self) -> tuple[int, int]:
        """Where the next pass begins if the running one runs through."""
        return self._next or (self.at.place[0] + 1, 0)

    @property
    def failed(self) -> bool:
        """Whether an error of ours came here: then the next pass goes on at the cursor."""
        return self._failed is self.at

    def note_failure(self) -> None:
        """An error of ours in place of the next batch."""
        self._failed = self.at

    def begin_pass(self) -> None:
        """A pass begins: at the decided place, else at the cursor if nothing was returned or we failed, else anew."""
        at = self.at
        place = self._next or at.place
        if self._next is None and at.returned and not self.failed:
            epoch, self.habit = place
            self.loaded = False
            place = epoch + 1, 0
        self.at = Position(place, False, at.last, at.totals)
        self._next = None
        self.moved = False

    def prepare_batch(self) -> None:
        """Notes the place before a batch; harmless when repeated."""
        place = self.at.place
        if not self._history or self._history[-1] != place:
            self._history.append(place)

    def finish_pass(self) -> None:
        """The pass has yielded all of its epoch."""
        self.habit = None
        self.loaded = self.moved = False
        self._decide_place(self.following)

    def set_epoch(self, epoch: int) -> None:
        """The next pass is that epoch from its beginning; a state just loaded for that epoch keeps its cursor.

        A running pass may go on to its end before.
        """
        fresh = self.loaded and (self._next is not None or not self.at.returned)
        if fresh and self.place[0] == epoch:
            return
        self.loaded = self.moved = False
        self._decide_place((epoch, 0))

    def skip_steps(self, count: int) -> None:
        """The next pass leaves out the first steps of its epoch, whichever that will be."""
        self.skipped = count
        if self._next is None:
            epoch = self.at.place[0]
            self._decide_place((epoch + (self.at.returned and not self.failed), 0))

    def begin_at(self, start: int) -> None:
        """The pass that has just begun is from a cursor of its epoch on, which the steps to be left out end at."""
        at = self.at
        self.at = Position((at.place[0], start), at.returned, at.last, at.totals)
        self.skipped = None

    def load_place(self, epoch: int, consumed: int) -> None:
        """Continues there, with the first batch from now on."""
        self._history.clear()
        self.skipped = None
        self.habit = None
        self._decide_place((epoch, consumed))
        self.loaded = self.moved = True

    def _decide_place(self, place: tuple[int, int]) -> None:
        """The next pass begins there."""
        self._next, self._decided = place, self.at

    @property
    def pending(self) -> bool:
        """Whether it is decided where the next pass begins, and none has gone on since."""
        return self._next is not None and self._decided is self.at

    def place_before(self, lag: int) -> tuple[int, int]:
        """The place as if the last lag returned batches had not been."""
        if lag == 0:
            return self.place
        known = list(self._history)
        if known and known[-1] == self.at.place:  # prepared, not returned
            known.pop()
        if not 0 < lag <= len(known):
            raise ValueError(f"lag={lag}: the last {len(known)} batches are known (at most {KEPT})")
        return known[-lag]
