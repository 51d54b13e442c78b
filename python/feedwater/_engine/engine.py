"""The run behind a Loader, from its first use on: the opened plan, the order of samples, and the next batch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._agent.feed import Feed
from .._agent.pinned_slots import PinnedSlots
from .._agent.plan_info import PlanInfo, Request
from .._agent.replay import Last, Totals, keys_of
from .._agent.want import Done
from .._arguments.job_name import name_of
from .._batch import batch_transform
from .._batch.batch import Builder, Rows
from .._batch.error_budget import Budget, name_samples
from .._common.ranks import Ranks
from .._common.torch_modes import leave_inference_mode
from .._config import Config
from .._device.failure import check_capture
from .._device.pinned import Pinning
from .._device.registration import end_registrations
from .._device.transfer import Transfer
from .._meter.pace import Pace
from .._meter.pulse import Pulse
from .._order.cursor import Cursor, Position
from .._order.samplers import BatchSamplerOrder, SamplerOrder
from .._order.steps import Order, Step
from .._rank_check import RankCheck
from .._state import State, describe_order
from ..errors import DataError, StateMismatchError
from .builders import make_builder, make_host_builder, make_transfer
from .epoch_shape import EpochShape, resolve_ranks
from .opening import Opening
from .slot_room import SlotRoom
from .step_policies import StepPolicies

if TYPE_CHECKING:
    from .._python.batches import Stage

__all__ = ["Engine", "Ready"]

log = logging.getLogger("feedwater")

CHANGED = "when the listing that was kept of the data set was made"
"""What the agent says of a file that is another one than its list has."""


class Ready:
    """A batch made for the loop and not yet returned."""

    __slots__ = ("batch", "last", "step", "stream", "totals")

    def __init__(self, batch: Any, step: Step, last: Last, totals: Totals, stream: Any) -> None:
        self.batch, self.step, self.last, self.totals = batch, step, last, totals
        self.stream = stream
        """Of a GPU, for which it was made; None where batches are in the CPU's memory."""


class Engine:
    """Everything of a Loader that belongs to this process and is not pickled. Not for two threads at once."""

    def __init__(self, config: Config, cursor: Cursor) -> None:
        self.config, self.cursor = config, cursor
        self.pace = Pace()
        self.feed = Feed(_make_request(config))
        self.pulse = Pulse(self.pace, self.feed)
        self.opening = Opening(config, self.feed)
        self.shape = EpochShape(config, self.opening)
        self.policies = StepPolicies(config, self.opening, self.shape, cursor)
        self.rank_check = RankCheck(config, self.shape.sampler)
        self.ranks: Ranks | None = None
        """This rank's place in the latest pass; None before the first one."""
        self.python: Stage | None = None
        if config.python is not None:
            from .._python.batches import Stage

            self.python = Stage(config)
        self._builder: Builder | None = None
        self.pinning: Pinning | None = None
        """Pinned memory; None where nobody asked for it."""
        if config.pin_memory:
            self.pinning = Pinning()
            self.feed.session.make_slots = partial(PinnedSlots, pinning=self.pinning)
        self._transfer: Transfer | None = None
        """Copies to the GPU; None before the first pass, and where batches stay in the CPU's memory."""
        self._budget = Budget(config.max_errors)
        self._slot_room = SlotRoom(self.feed)
        self._kept_listing = not config.nodes
        """Whether the first batch is to come, of a listing that may be of an earlier run."""

    # -- opening ------------------------------------------------------------------------------------------------------

    def start_pass(self) -> None:
        """A pass begins: finds out our place among the ranks, and whether a loaded state fits."""
        if self.python is not None:
            self.feed.session.check_open()  # before processes start, which nobody would end
            self.python.start_pool()
        opened, order = self.opening.open_plan(), self.shape.ensure_order()
        ranks = self.shape.find_ranks()
        if ranks != self.ranks:
            self._log_ranks(ranks)
            self.feed.forget_wants()
            self.ranks = self.feed.ranks = ranks
        if self.opening.state is not None:
            self._compare_state(*self.opening.state, opened, order)
            self.opening.state = None
        self.pulse.begin_pass(order, self.config.batch_size, ranks)
        if self._builder is None:
            if self.config.device is not None and self._transfer is None:
                self._transfer = make_transfer(self.config.device, self.pace)
            self._check_capture()
            with leave_inference_mode():
                self._builder = make_builder(self.config, opened, self.feed, self.python, self._transfer)
            self._builder.targets = self.config.targets

    def compare_ranks(self) -> None:
        """At a pass's second batch: raises ValueError if another rank has another order. Waits for none."""
        if self.shape.order is not None and self.ranks is not None:
            self.rank_check.compare_pass(self.shape.order, self.opening.open_plan(), self.ranks, self.cursor.at.place)

    def run_python_again(self, index: int, epoch: int, repeat: int) -> dict[str, Any]:
        """What python= makes of one sample, by a want of its own."""
        from .._python.batches import PythonBuilder

        opened = self.opening.open_plan()
        step = Step(epoch, 0, 1, repeat, 1, 1, np.array([index], np.int64))
        step.policy = self.policies.policy_at()
        feed = Feed(_make_request(self.config))
        try:
            done = feed.take_batch(step.key, 1, lambda _, start: None if start else step)
            builder = make_host_builder(self.config, opened, self.feed, self.python)
            assert isinstance(builder, PythonBuilder)
            return builder.build_sample(done, feed)
        finally:
            feed.close()

    def _log_ranks(self, ranks: Ranks) -> None:
        if self.config.batch_size is None:
            log.info("rank %d/%d", *ranks)
        else:
            log.info("rank %d/%d, global batch %s", *ranks, f"{self.config.batch_size * ranks.world:,}")
        if ranks.world > 1 and self.config.split_unasked:
            log.warning(
                "%s: split among %d ranks, each of which gets a part, where a DataLoader without DistributedSampler "
                "gives all of it to each. To read it whole pass rank=0, num_replicas=1; to evaluate on all ranks pass "
                'tail="valid" and add up; if it is meant, pass rank= and num_replicas=',
                self.config.source.name,
                ranks.world,
            )

    # -- state --------------------------------------------------------------------------------------------------------

    def at_end(self) -> bool:
        """Whether the running pass has returned the last batch of its epoch. False where a sampler does not tell."""
        cursor = self.cursor
        if cursor.pending or cursor.failed or not cursor.at.returned or self.shape.order is None or self.ranks is None:
            return False
        try:
            return self.shape.order.step_at(*cursor.at.place, self.ranks) is None
        except Exception:  # of the program's sampler: the next batch raises it
            return False

    def describe_state(self, epoch: int, consumed: int) -> dict[str, Any]:
        """The state at a place."""
        if self.opening.state is not None and self.opening.state[0].raw:  # nothing was done since it was loaded
            return {**self.opening.state[0].raw, "epoch": epoch, "consumed": consumed}
        known = describe_order(self.config.seed, self.config.shuffle, self.feed.session.opened)
        if self.policies.learning is not None and self.ranks is not None:
            number = self.policies.step_number(epoch, consumed)
            if self.cursor.at.last is not None:
                self.policies.learning.expect_feedback(number - 1)
            known["policy"] = self.policies.learning.policy.save_state(number)
        return {
            **known,
            "image": self.config.image_column,
            "epoch": epoch,
            "consumed": consumed,
            "sampler": self.shape.save_sampler(epoch, consumed, self.ranks),
        }

    def load_state(self, state: State, strict: bool, opens: bool) -> None:
        """Takes up a state that fits; where it opens nothing, one of other data is found out with the first batch."""
        if strict:
            state.check_known()
            state.check_image(self.config.image_column)
        state.check_order(self.config.seed, self.config.shuffle, None)
        kept, self._kept_listing = self._kept_listing, self._kept_listing and not state.raw
        before, self.opening.state = self.opening.state, (state, strict)
        try:
            self._check_loaded(state, strict, opens)
        except BaseException:
            self.opening.state, self._kept_listing = before, kept
            raise
        self.rank_check.note_state()

    def _check_loaded(self, state: State, strict: bool, opens: bool) -> None:
        opened = self.feed.session.opened
        if opened is not None and self.ranks is not None:
            self._compare_state(state, strict, opened, self.shape.ensure_order())
            self.opening.state = None
        elif state.raw and (opens or opened is not None):
            self._compare_data(state, strict, self.opening.open_plan(), self.shape.ensure_order())

    def _compare_state(self, state: State, strict: bool, opened: PlanInfo, order: Order) -> None:
        if self.policies.learning is not None:
            self.policies.learning.policy.load_state(
                state.raw.get("policy"), self.policies.step_number(state.epoch, state.consumed)
            )
            self.feed.forget_wants()
        if not state.raw:
            return
        self._compare_data(state, strict, opened, order)
        if isinstance(order, (SamplerOrder, BatchSamplerOrder)):
            assert self.ranks is not None
            order.load_state(state.raw.get("sampler"), self.ranks)
            self.feed.forget_wants()

    def _compare_data(self, state: State, strict: bool, opened: PlanInfo, order: Order) -> None:
        """Raises StateMismatchError for a state of other data, another order, or other pixels where strict."""
        state.check_order(self.config.seed, self.config.shuffle, opened)
        if strict:
            state.check_pixels(opened)
        before = state.raw.get("sampler")
        listed = isinstance(order, (SamplerOrder, BatchSamplerOrder)) and (before is not None or not state.consumed)
        if not listed and before != self.shape.save_sampler(0, 0, self.ranks):
            raise StateMismatchError("the state is of another choice of samples: another sampler or Subset")

    # -- batches ------------------------------------------------------------------------------------------------------

    def next_batch(self) -> Ready | None:
        """The batch at the cursor; None at the epoch's end. Consumes nothing, except steps of which nothing is left."""
        assert self._builder is not None
        if self._transfer is not None or self.pinning is not None:
            self._check_capture()
        torch = self._builder.torch
        if torch is None or not torch.is_inference_mode_enabled():  # as below, fewer calls
            return self._make_batch()
        with leave_inference_mode():
            return self._make_batch()

    def _check_capture(self) -> None:
        """Raises DeviceError where batches are copied to a GPU and a CUDA graph is captured."""
        if self._transfer is not None:
            with self._transfer.explained:
                check_capture(self._transfer.runtime.is_capturing())
        elif self.pinning is not None:
            check_capture(self.pinning.is_capturing())

    def _make_batch(self) -> Ready | None:
        """As next_batch. Tensors made inside are none of inference mode, those of later batches and pinned ones too."""
        assert self._builder is not None
        while (step := self.feed.find_wanted_step(self.cursor.at.place) or self._next_step()) is not None:
            done = self._take_step(step) if step.size else None
            errors = done.errors if done is not None else []
            if self._transfer is not None and self.python is None and not errors:
                self.pace.note_arrival()  # what follows is the copy
            rows = self._builder.gather_rows(step, done, self._slot_room.is_full)
            totals = self._count_rows(rows, errors, done)
            if not rows.labels.size:
                self._pass_over(step, errors, totals)
                continue
            if self.config.relabel is not None:
                rows.labels = self.config.relabel.change_labels(rows.labels, rows.valid)
            if self._transfer is not None:
                self.pace.note_arrival()
            batch = self._builder.build_batch(rows, self._read_keys)
            if self.config.batch_transform is not None:
                batch = self._apply_transform(self.config.batch_transform, batch, step, rows.valid)
            last = Last(step.epoch, step.position, rows.indices, rows.places, self.feed.session)
            if self._transfer is not None:
                self._builder.send_ahead()
            elif self.pinning is not None:
                batch = self.pinning.pin_batch(batch)
            self.cursor.prepare_batch()
            stream = None if self._transfer is None else self._transfer.stream
            return Ready(batch, step, last, totals, stream)
        return None

    def hand_over(self, ready: Ready) -> None:
        """A batch that was made at another time is for the stream that is current now."""
        if self._transfer is not None:
            ready.stream = self._transfer.change_stream(ready.batch, ready.stream)

    def _next_step(self) -> Step | None:
        assert self.shape.order is not None and self.ranks is not None
        place = self.cursor.at.place
        step = self.shape.order.step_at(*place, self.ranks)
        if step is None and place[1]:
            self._budget.check_left(*place)
        elif step is None:
            self.shape.check_drop(self.ranks)
            self.shape.check_drawn(place[0])
        return self.policies.name_policy(step)

    def _pass_over(self, step: Step, errors: list[dict[str, Any]], totals: Totals) -> None:
        """A step all of whose samples were skipped. Raises DataError if other ranks do not leave it out with us."""
        assert self.ranks is not None
        if self.ranks.world > 1:
            raise DataError(
                f'on_error="skip" leaves nothing of rank {self.ranks.rank}\'s batch at position {step.position} of '
                f"epoch {step.epoch}: none of {name_samples(errors)} decodes. The other ranks have theirs and would "
                'wait for this one: repair the files, or pass on_error="substitute"'
            )
        at = self.cursor.at
        self.cursor.at = Position(step.after, at.returned, at.last, totals, at.step)

    def _apply_transform(self, transform: Callable[..., Any], batch: Any, step: Step, valid: Any) -> Any:
        self.pace.note_arrival()
        began = time.perf_counter()
        numbers = self.config.seed, step.epoch, step.position
        drawn = () if self._transfer is None else (self._transfer.runtime.generator,)
        batch = batch_transform.apply_batch_transform(transform, batch, numbers, self.config.names, valid, drawn)
        self.pace.note_transform(time.perf_counter() - began)
        return batch

    def _take_step(self, step: Step) -> Done:
        assert self.shape.order is not None
        wanted = step.key, self.shape.order.largest or step.size, self._upcoming_step
        done = self._take_first(*wanted) if self._kept_listing else self.feed.take_batch(*wanted)
        while (
            self.python is not None and done.slots.file < 0
        ):  # larger slots took the place of what processes could map
            self.feed.forget_wants()
            done = self.feed.take_batch(*wanted)
        if done.errors:
            self._budget.count_errors(step.epoch, step.start, done.errors, self._epoch_samples(step))
        return done

    def _take_first(self, key: tuple[int, int], batch: int, upcoming: Callable[[int, int], Step | None]) -> Done:
        """The run's first batch. Where files changed since an earlier run listed them, they are listed anew.

        Names and sizes have to be as they were, for which all ranks have the same order.
        """
        try:
            done = self.feed.take_batch(key, batch, upcoming)
        except DataError as error:
            self._kept_listing = False
            if CHANGED not in str(error):
                raise
            self.feed.forget_wants()
            try:
                self.feed.session.open_anew()
            except DataError:
                raise error from None
            log.warning("%s. No batch was made of it yet: listed anew, as no name and no size is another", error)
            done = self.feed.take_batch(key, batch, upcoming)
        self._kept_listing = False
        return done

    def _epoch_samples(self, step: Step) -> int:
        """This rank's samples of the step's epoch; those up to its end where nothing tells how many follow."""
        assert self.shape.order is not None and self.ranks is not None
        return self.ranks.share_evenly(max(self.shape.order.count_samples(self.ranks), step.end))

    def _read_keys(self, indices: Any) -> list[str]:
        return keys_of(self.feed.session, self.cursor.at.place[0], indices)

    def _upcoming_step(self, epoch: int, start: int) -> Step | None:
        """The step at or after a place on the way ahead, over the epoch's end and where the loop usually breaks off."""
        assert self.shape.order is not None and self.ranks is not None
        habit, ahead = self.cursor.habit, self.shape.order.known_ahead
        if ahead and habit is not None and start >= habit:
            at_epoch, consumed = self.cursor.at.place
            if epoch > at_epoch or consumed < habit:
                epoch, start = epoch + 1, 0
        step = self.shape.order.step_at(epoch, start, self.ranks)
        if step is None and ahead:
            step = self.shape.order.step_at(epoch + 1, 0, self.ranks)
        return step if self.policies.learning is None else self.policies.name_policy(step)

    def _count_rows(self, rows: Rows, errors: list[dict[str, Any]], done: Done | None) -> Totals:
        """What will have been consumed with these rows."""
        before = self.cursor.at.totals or Totals()
        substituted = sum(error.get("substitute") is not None for error in errors) if errors else 0
        index = before.index
        if done is not None:  # without a call
            (a, b, c, d, e, f, g), (h, i, j, k, m, n, o) = index, done.index
            index = (a + h, b + i, c + j, d + k, e + m, f + n, g + o)
        return Totals(
            before.batches + bool(rows.labels.size),
            before.samples + rows.samples,
            before.nbytes + rows.nbytes,
            before.copied + rows.crowded,
            before.skipped + len(errors) - substituted,
            before.substituted + substituted,
            index,
        )

    def close(self) -> None:
        """Gives up the agent; batches that were handed out stay good."""
        if self.python is not None:
            self.python.close()
        self.feed.close()
        if self._builder is not None:
            self._builder.forget_slots()
        if self._transfer is not None:
            self._transfer.close()
        end_registrations()

    def drop_handles(self) -> None:
        """Like close, but takes no lock and waits for nothing; called by finalisers."""
        if self.python is not None:
            self.python.drop_handles()
        if self._transfer is not None:
            self._transfer.abandon()
        self.feed.session.note_collected()


def _make_request(config: Config) -> Request:
    return Request(
        plan=config.to_plan(),
        nodes=config.nodes,
        local=config.source.local,
        labels_unused="label" not in config.names and config.python is None,
        table=config.source.table,
        job=lambda: name_of(config.job, resolve_ranks(config).world),
        workers=config.local_workers,
        timeout=config.timeout,
        start_timeout=config.start_timeout,
        memory=config.memory,
        last_hop={picture.field: picture.output.last_hop() for picture in config.pictures},
        trust=config.trust,
    )
