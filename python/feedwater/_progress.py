"""Where a Loader's iteration is: the latest pass, the batch that was peeked at, the thread that is in next."""

from __future__ import annotations

import threading
from typing import Any, SupportsIndex

from ._agent.index_use import IndexUse
from ._agent.replay import Totals
from ._common.constants import FEW_STEPS
from ._common.numbers import to_whole
from ._dataset.change_guard import ChangeGuard
from ._engine.engine import Engine, Ready
from ._order.cursor import Cursor, Position
from .errors import Error

__all__ = ["Progress"]


class Progress:
    """The passes of one Loader. One thread at a time."""

    def __init__(self, engine: Engine, cursor: Cursor, made_of: ChangeGuard | None) -> None:
        self._engine, self.cursor, self._made_of = engine, cursor, made_of
        self._peeked: Ready | None = None
        self.passes = 0
        """How many have begun; the number of the latest one."""
        self._begun = False
        """Whether the latest pass has begun: an error or a Ctrl-C may have come in between."""
        self.user: dict[str, int] = {}
        """The "thread" that is in next."""
        self._before = self._began = Totals()
        """Counts where the last two passes that returned batches began."""

    def is_latest(self, number: int) -> bool:
        """Whether no pass has begun after that one."""
        return self.passes == number

    def must_begin(self, number: int) -> bool:
        """Whether the next batch of that pass begins a pass, as its first one does."""
        return self.passes != number or self.cursor.moved

    @property
    def has_peeked(self) -> bool:
        """Whether the next batch is made and named already."""
        return self._peeked is not None

    @property
    def late_use(self) -> IndexUse:
        """What indexes pictures had of the latest pass, and while it is short of the one before."""
        now = self.cursor.at.totals or Totals()
        long = now.batches - self._began.batches >= FEW_STEPS
        return IndexUse(*now.index).minus(IndexUse(*(self._began if long else self._before).index))

    def drop_peeked(self) -> None:
        """The next batch is another one."""
        self._peeked = None

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """As Loader.set_epoch."""
        whole = to_whole(epoch)
        if whole is None or not 0 <= whole < 1 << 32:
            raise ValueError(f"set_epoch({epoch!r}): needs a whole number from 0 to 2**32 - 1")
        self.cursor.set_epoch(whole)
        self._engine.rank_check.note_epoch(whole)
        self._engine.shape.sampler_epoch.note_epoch()

    def _read_sampler_epoch(self) -> None:
        """What the program told its sampler is told to us."""
        wish = self._engine.shape.sampler_epoch.take_wish()
        if wish is not None:
            self.set_epoch(wish)

    def peek_batch(self) -> Ready | None:
        """The batch that comes next, which stays the next one; None at the epoch's end. It begins a pass if need be."""
        self.claim_thread()
        try:
            if not self._begun or self.cursor.pending:
                self.begin_pass()
            return self.peek_ready()
        finally:
            self.user.clear()

    def peek_ready(self) -> Ready | None:
        """peek_batch within a pass, by the thread that is in next."""
        self._peeked = self.next_ready()
        return self._peeked

    def begin_pass(self) -> int:
        """A pass begins, and any other ends. Its number."""
        self._begun = False
        self._read_sampler_epoch()
        self.cursor.begin_pass()
        self.passes += 1
        self._note_totals()
        self._engine.pace.end_pass()
        self._engine.start_pass()
        if self.cursor.skipped is not None:
            self.cursor.begin_at(self._engine.shape.find_start(self.cursor.at.place[0], self.cursor.skipped))
        if self._peeked is not None and self._peeked.step.key != self.cursor.at.place:
            self._peeked = None
        if self._made_of is not None:
            self._made_of.check_unchanged()
        self._engine.rank_check.begin_pass(self.cursor.at.place)
        self._begun = True
        return self.passes

    def _note_totals(self) -> None:
        now = self.cursor.at.totals or Totals()
        if now.batches > self._began.batches:
            self._before, self._began = self._began, now

    def next_ready(self) -> Ready | None:
        """The batch that comes next; None at the epoch's end. After an error of ours the next pass goes on here."""
        try:
            if self._peeked is None:
                return self._engine.next_batch()
            self._engine.hand_over(self._peeked)
            return self._peeked
        except Error:
            self.cursor.note_failure()
            raise

    def next_batch(self) -> Any:
        """The next batch. The store into the cursor is the last thing that happens; all before it may be repeated."""
        engine = self._engine
        if engine.rank_check.due and self.cursor.at.returned:
            engine.compare_ranks()
        entered = engine.pace.enter_next()
        ready = self.next_ready()
        if ready is None:
            self.cursor.finish_pass()
            engine.shape.sampler_epoch.expect_epoch(self.cursor.place[0])
            raise StopIteration
        engine.pace.leave_next(entered)
        step, batch = ready.step, ready.batch
        engine.pulse.note_step(step)
        if engine.feed.traced:
            engine.feed.note_returned(step.key, engine.pace.last_wait_s)
        at = Position(step.after, True, ready.last, ready.totals, step)
        self._peeked, self.cursor.at = None, at
        return batch

    def claim_thread(self) -> None:
        """One thread at a time, of the process that uses the Loader: a forked child gets to know before CUDA does."""
        self._engine.feed.session.check_process()
        me = threading.get_ident()
        if self.user.setdefault("thread", me) != me:
            raise Error("another thread is in next of this Loader: give each thread a Loader of its own")
