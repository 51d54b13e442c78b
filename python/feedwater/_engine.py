"""The run behind a Loader, from its first use on: the opened plan, the order of samples, and the next batch."""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ._agent.feed import Feed
from ._agent.pinned_slots import PinnedSlots
from ._agent.plan_info import PlanInfo, Request
from ._agent.replay import Last, Totals, keys_of
from ._agent.session import IN_USE
from ._agent.slots import Slots
from ._agent.want import Done
from ._arguments.job_name import name_of
from ._batch import batch_transform
from ._batch.batch import Builder, Rows, check_ragged
from ._batch.error_budget import Budget, name_samples
from ._common import ranks
from ._common.filenames import to_json
from ._common.ranks import Ranks
from ._common.torch_modes import leave_inference_mode
from ._config import Config
from ._ctaugment.learning import Learning, rows_of
from ._ctaugment.policy import Weights
from ._device.failure import check_capture
from ._device.pinned import Pinning
from ._device.registration import end_registrations
from ._device.transfer import Transfer
from ._meter.pace import Pace
from ._meter.pulse import Pulse
from ._order.cursor import Cursor, Position
from ._order.sampler_epoch import SamplerEpoch
from ._order.samplers import BatchSamplerOrder, SamplerOrder, SubsetOrder, check_split, warn_other_length
from ._order.steps import Order, RangeOrder, Step, count_steps, digest_indices, find_start, share_step
from ._rank_check import RankCheck
from ._state import State, describe_order
from .errors import DataError, Error, StateMismatchError

if TYPE_CHECKING:
    from ._python.batches import Stage

__all__ = ["Engine", "Ready"]

log = logging.getLogger("feedwater")

CHANGED = "when the listing that was kept of the data set was made"
"""What the agent says of a file that is another one than its list has."""
COLLECT_EVERY_S, COLLECT_IN_VAIN_S = 2.0, 60.0


class Ready:
    """A batch made for the loop and not yet returned."""

    __slots__ = ("batch", "last", "step", "totals")

    def __init__(self, batch: Any, step: Step, last: Last, totals: Totals) -> None:
        self.batch, self.step, self.last, self.totals = batch, step, last, totals


class Engine:
    """Everything of a Loader that belongs to this process and is not pickled. Not for two threads at once."""

    def __init__(self, config: Config, cursor: Cursor) -> None:
        self.config, self.cursor = config, cursor
        self.pace = Pace()
        self.feed = Feed(_make_request(config))
        self.pulse = Pulse(self.pace, self.feed)
        self._sampler = config.batch_sampler if config.sampler is None else config.sampler
        self.sampler_epoch = SamplerEpoch(self._sampler)
        self.rank_check = RankCheck(config, self._sampler)
        self.ranks: Ranks | None = None
        self.order: Order | None = None
        self.state: tuple[State, bool] | None = None
        """A loaded state that was not compared with the opened plan yet, and whether strictly."""
        self.python: Stage | None = None
        if config.python is not None:
            from ._python.batches import Stage

            self.python = Stage(config)
        self.learning = Learning.for_config(config)
        self._builder: Builder | None = None
        self.pinning: Pinning | None = None
        """Pinned memory; None where nobody asked for it."""
        if config.pin_memory:
            self.pinning = Pinning()
            self.feed.session.make_slots = partial(PinnedSlots, pinning=self.pinning)
        self._transfer: Transfer | None = None
        """Copies to the GPU; None before the first pass, and where batches stay in the CPU's memory."""
        self._budget = Budget(config.max_errors)
        self._warned = self._fits = False
        self._kept_listing = not config.nodes
        """Whether the first batch is to come, of a listing that may be of an earlier run."""
        self._collect_after = 0.0

    # -- opening ------------------------------------------------------------------------------------------------------

    def open_plan(self) -> PlanInfo:
        """The opened plan; starts the agent if need be."""
        session = self.feed.session
        if not self._fits:
            if self.state is not None and self.state[1]:
                raw = self.state[0].raw
                session.revisions, session.stores = raw.get("revisions"), raw.get("stores")
                if self.config.nodes or session.revisions is None:
                    session.numerics = raw.get("numerics")
            session.ensure_link()
            assert session.opened is not None
            self.config.source.check_data_set(list(session.opened.classes), session.opened.samples)
            self._check_listing(session.opened)
            made_alike = self.config.python is not None or self.config.batch_transform is not None
            check_ragged(self.config.batch_size or 1, session.opened, expected=made_alike)
            if self.config.relabel is not None:
                self.config.relabel.open_classes(session.opened.classes, self.config.source.name)
            self._fits = True
        assert session.opened is not None
        return session.opened

    def _check_listing(self, opened: PlanInfo) -> None:
        """Raises DataError if an ImageFolder that was passed has other samples, labels or order than its folder."""
        source, session = self.config.source, self.feed.session
        if source.listing is None:
            return
        params = {"path": to_json(source.local or source.path)}
        answer, keys = session.call("listing", params, session.request.start_timeout or float("inf"))
        if answer["fingerprint"] != opened.fingerprint:
            raise DataError(f"{source.name}: the folder changed while it was opened. Start anew")
        source.listing.compare_listing(source.name, keys, answer["counts"])

    def count_samples(self) -> int:
        """Samples that an epoch can choose from. Opens nothing where the source tells."""
        source = self.config.source
        if source.indices is not None:
            return len(source.indices)
        return source.samples if source.samples is not None else self.open_plan().samples

    def count_positions(self) -> int:
        """Positions that an epoch's order has, the last step's repeats among them."""
        fixed, ranks = self.config.steps_per_epoch, self.find_ranks()
        if fixed is None or self.config.batch_size is None:
            more = ranks.world - 1 if self.config.tail == "short" else 0
            return 1 << 63 if self.config.listed else self.open_plan().samples + more
        return fixed * self.config.batch_size * ranks.world

    def batch_size_at(self, position: int) -> int:
        """Samples of this rank's batch that begins at a position of the epoch's own order. IndexError if none does."""
        order, ranks = self._ensure_order(), self.find_ranks()
        assert isinstance(order, RangeOrder)
        size = order.batch_size_at(position, ranks)
        if not size:
            raise IndexError(
                f"replay: position={position}: no batch of rank {ranks.rank} is known to begin there. Pass what was "
                "loader.last.position, or use replay(index, epoch)"
            )
        return size

    def find_position(self, index: int, epoch: int) -> int | None:
        """Where a Subset or a sampler has a sample first in an epoch's order; None if that is not known."""
        order = self._ensure_order()
        assert isinstance(order, (SubsetOrder, SamplerOrder, BatchSamplerOrder))
        return order.find_position(epoch, index, self.find_ranks())

    def find_ranks(self) -> Ranks:
        """This rank's place among all, as it is now. Raises ValueError if a sampler that splits has another one."""
        ranks = _find_ranks(self.config)
        check_split(self._sampler, ranks)
        return ranks

    def count_rank_samples(self) -> int:
        """Samples of a whole epoch on this rank, where no sampler decides."""
        ranks = self.find_ranks()
        steps, batch = self.count_steps(), self.config.batch_size or 1
        if self.config.steps_per_epoch is not None:
            return steps * batch
        begun = max(0, steps - 1) * batch
        last = share_step(
            begun * ranks.world, self.count_samples() - begun * ranks.world, batch, ranks, self.config.tail
        )
        return begun + (last[2] if last else 0)

    def count_steps(self) -> int:
        """Steps of an epoch. Opens nothing where the arguments tell."""
        ranks = self.find_ranks()
        if self.config.steps_per_epoch is not None:
            return self.config.steps_per_epoch
        known = self.config.source.samples
        if known is not None and not self.config.listed:
            steps = count_steps(known, self.config.batch_size or 1, ranks, self.config.tail)
        else:
            steps = self._ensure_order().count_steps(ranks)
        if not steps:
            self._check_drop(ranks)
        return steps

    def find_start(self, epoch: int, number: int) -> int:
        """The cursor at which a step of an epoch begins. Raises ValueError if it is known not to have so many."""
        ranks, order = self.find_ranks(), self._ensure_order()
        try:
            steps = self.count_steps()
        except TypeError:  # a sampler without a length
            steps = number
        if number > steps:
            raise ValueError(f"skip({number}): an epoch has {steps} steps")
        return find_start(order, epoch, number, ranks)

    def _check_drop(self, ranks: Ranks) -> None:
        """An epoch without any step: raises ValueError if the tail is to blame. It would train nothing, in silence."""
        if self.config.tail == "drop":
            raise ValueError(
                f"batch_size={self.config.batch_size} on {ranks.world} rank(s) is more than an epoch has samples, and "
                'tail="drop" leaves out what is no whole step: no batch is left. Use a smaller one, or tail="short"'
            )

    def _check_drawn(self, epoch: int) -> None:
        """An epoch without any step, of a sampler: raises DataError. It would train nothing, in silence."""
        if self._sampler is not None:
            raise DataError(
                f"{type(self._sampler).__name__} gave nothing in epoch {epoch}, which would be an epoch without a "
                "step. An iterator is used up by the first epoch: pass what iter() begins anew, a list or a class with "
                "__iter__. To go on behind an epoch that is to be empty, call loader.set_epoch(epoch + 1)"
            )

    def _ensure_order(self) -> Order:
        if self.order is None:
            self.order = _make_order(self.config, self.open_plan().samples, self.sampler_epoch)
        return self.order

    def start_pass(self) -> None:
        """A pass begins: finds out our place among the ranks, and whether a loaded state fits."""
        if self.python is not None:
            self.feed.session.check_open()  # before processes start, which nobody would end
            self.python.start_pool()
        opened, order = self.open_plan(), self._ensure_order()
        ranks = self.find_ranks()
        if ranks != self.ranks:
            self._log_ranks(ranks)
            self.feed.forget_wants()
            self.ranks = self.feed.ranks = ranks
        if self.state is not None:
            self._compare_state(*self.state, opened, order)
            self.state = None
        self.pulse.begin_pass(order, self.config.batch_size, ranks)
        if self._builder is None:
            self._builder = self._make_builder(opened)

    def compare_ranks(self) -> None:
        """At a pass's second batch: raises ValueError if another rank has another order. Waits for none."""
        if self.order is not None and self.ranks is not None:
            self.rank_check.compare_pass(self.order, self.open_plan(), self.ranks, self.cursor.at.place)

    def _make_builder(self, opened: PlanInfo) -> Builder:
        look = self.config.pictures, opened, self.config.names, self.config.as_dict
        if self.config.device is not None:
            on_device: Builder = self._make_device_builder(self.config.device, look)
            return on_device
        return self._make_host_builder(look)

    def _make_host_builder(self, look: Any) -> Builder:
        if self.python is None:
            return Builder(*look)
        from ._python.batches import PythonBuilder

        builder: Builder = PythonBuilder(self.python, self.feed, *look)
        return builder

    def _make_device_builder(self, device: str, look: Any) -> Any:
        """The GPU that device means is found out now, and is the same ever after."""
        from ._batch.device_batch import DeviceBuilder, MovedBuilder
        from ._device import runtime

        if self._transfer is None:
            self._transfer = Transfer(runtime.find_runtime(sys.modules["torch"], device))
            self._transfer.landed = self.pace.note_landing
        if self.python is None:
            return DeviceBuilder(self._transfer, self.feed, *look)
        return MovedBuilder(self._transfer, self._make_host_builder(look))

    def run_python_again(self, index: int, epoch: int, repeat: int) -> dict[str, Any]:
        """What python= makes of one sample, by a want of its own."""
        from ._python.batches import PythonBuilder

        opened = self.open_plan()
        step = Step(epoch, 0, 1, repeat, 1, 1, np.array([index], np.int64))
        step.policy = self.policy_at()
        feed = Feed(_make_request(self.config))
        try:
            done = feed.take_batch(step.key, 1, lambda _, start: None if start else step)
            look = self.config.pictures, opened, self.config.names, self.config.as_dict
            builder = self._make_host_builder(look)
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
        if cursor.pending or cursor.failed or not cursor.at.returned or self.order is None or self.ranks is None:
            return False
        try:
            return self.order.step_at(*cursor.at.place, self.ranks) is None
        except Exception:  # of the program's sampler: the next batch raises it
            return False

    def describe_state(self, epoch: int, consumed: int) -> dict[str, Any]:
        """The state at a place."""
        if self.state is not None and self.state[0].raw:  # nothing was done since it was loaded
            return {**self.state[0].raw, "epoch": epoch, "consumed": consumed}
        known = describe_order(self.config.seed, self.config.shuffle, self.feed.session.opened)
        if self.learning is not None and self.ranks is not None:
            number = self._step_number(epoch, consumed)
            if self.cursor.at.last is not None:
                self.learning.expect_feedback(number - 1)
            known["policy"] = self.learning.policy.save_state(number)
        return {**known, "epoch": epoch, "consumed": consumed, "sampler": self._sampler_state(epoch, consumed)}

    def _sampler_state(self, epoch: int, consumed: int) -> dict[str, Any] | None:
        indices = self.config.source.indices
        if isinstance(self.order, (SamplerOrder, BatchSamplerOrder)) and self.ranks is not None:
            return self.order.save_state(epoch, consumed, self.ranks)
        if indices is not None and self._sampler is None:
            return {"class": "Subset", "indices": digest_indices(indices)}
        return None

    def load_state(self, state: State, strict: bool) -> None:
        """Takes up a state; compares it at once if the plan is open, else when it is."""
        if strict:
            state.check_known()
        self.rank_check.note_state()
        self._kept_listing = self._kept_listing and not state.raw
        opened = self.feed.session.opened
        if opened is None or self.ranks is None:
            self.state = (state, strict)
            return
        self._compare_state(state, strict, opened, self._ensure_order())
        self.state = None

    def _compare_state(self, state: State, strict: bool, opened: PlanInfo, order: Order) -> None:
        if self.learning is not None:
            self.learning.policy.load_state(state.raw.get("policy"), self._step_number(state.epoch, state.consumed))
            self.feed.forget_wants()
        if not state.raw:
            return
        state.check_order(self.config.seed, self.config.shuffle, opened)
        if strict:
            state.check_pixels(opened)
        before = state.raw.get("sampler")
        if isinstance(order, (SamplerOrder, BatchSamplerOrder)) and (before is not None or not state.consumed):
            assert self.ranks is not None
            order.load_state(before, self.ranks)
            self.feed.forget_wants()
        elif before != self._sampler_state(0, 0):
            raise StateMismatchError("the state is of another choice of samples: another sampler or Subset")

    # -- batches ------------------------------------------------------------------------------------------------------

    def next_batch(self) -> Ready | None:
        """The batch at the cursor; None at the epoch's end. Consumes nothing, except steps of which nothing is left."""
        assert self._builder is not None
        if self._transfer is not None:
            check_capture(self._transfer.runtime.is_capturing())
        while (step := self.feed.find_wanted_step(self.cursor.at.place) or self._next_step()) is not None:
            done = self._take_step(step) if step.size else None
            errors = done.errors if done is not None else []
            rows = self._builder.gather_rows(step, done, self._slots_full)
            totals = self._count_rows(rows, errors)
            if not len(rows.labels):
                self._pass_over(step, errors, totals)
                continue
            if self.config.relabel is not None:
                rows.labels = self.config.relabel.change_labels(rows.labels, rows.valid)
            if self._transfer is not None:
                self.pace.note_arrival()
            torch, transform = self._builder.torch, self.config.batch_transform
            if transform is None and (torch is None or not torch.is_inference_mode_enabled()):  # as below, fewer calls
                batch = self._builder.build_batch(rows, self._read_keys)
            else:
                with leave_inference_mode():
                    batch = self._builder.build_batch(rows, self._read_keys)
                    if transform is not None:
                        batch = self._apply_transform(transform, batch, step, rows.valid)
            last = Last(step.epoch, step.position, rows.indices, rows.places, self.feed.session)
            if self._transfer is not None:
                self._builder.send_ahead()
            elif self.pinning is not None:
                batch = self.pinning.pin_batch(batch)
            self.cursor.prepare_batch()
            return Ready(batch, step, last, totals)
        return None

    def _next_step(self) -> Step | None:
        assert self.order is not None and self.ranks is not None
        place = self.cursor.at.place
        step = self.order.step_at(*place, self.ranks)
        if step is None and place[1]:
            self._budget.check_left(*place)
        elif step is None:
            self._check_drop(self.ranks)
            self._check_drawn(place[0])
        return self._with_policy(step)

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
        assert self.order is not None
        wanted = step.key, self.order.largest or step.size, self._upcoming_step
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
        assert self.order is not None and self.ranks is not None
        return self.ranks.share_evenly(max(self.order.count_samples(self.ranks), step.end))

    def _read_keys(self, indices: Any) -> list[str]:
        return keys_of(self.feed.session, self.cursor.at.place[0], indices)

    def _upcoming_step(self, epoch: int, start: int) -> Step | None:
        """The step at or after a place on the way ahead, over the epoch's end and where the loop usually breaks off."""
        assert self.order is not None and self.ranks is not None
        habit, ahead = self.cursor.habit, self.order.known_ahead
        if ahead and habit is not None and start >= habit:
            at_epoch, consumed = self.cursor.at.place
            if epoch > at_epoch or consumed < habit:
                epoch, start = epoch + 1, 0
        step = self.order.step_at(epoch, start, self.ranks)
        if step is None and ahead:
            step = self.order.step_at(epoch + 1, 0, self.ranks)
        return step if self.learning is None else self._with_policy(step)

    # -- learning -----------------------------------------------------------------------------------------------------

    def _step_number(self, epoch: int, consumed: int) -> int:
        """How many steps of the run lie before a place."""
        assert self.learning is not None
        return self.learning.step_number(epoch, consumed, self.count_steps(), self.find_ranks())

    def _with_policy(self, step: Step | None) -> Step | None:
        """The step with the policy its batch is made by; None if that is not known yet."""
        if step is None or self.learning is None:
            return step
        weights = self.learning.weights_at(self._step_number(*step.key), self._step_number(*self.cursor.at.place))
        step.policy = weights
        return None if weights is None else step

    def learn_outcomes(self, indices: Any, values: Any, repeat_at: Callable[[int], int]) -> None:
        """What the last batch's samples teach, of all ranks."""
        if self.learning is None:
            raise Error("feedback() teaches CTAugment, which the transform has not: feedwater.transforms.CTAugment()")
        at = self.cursor.at
        if at.last is None or self.ranks is None:
            raise Error("feedback() is about the last batch, and there was none")
        wanted, repeats, outcomes = rows_of(at.last, indices, values, repeat_at)
        step = self._step_number(at.last.epoch, at.place[1]) - 1
        self.learning.learn_outcomes(step, at.last.epoch, (wanted, repeats), outcomes, self.ranks)

    def policy_at(self, begins: tuple[int, int] | None = None) -> Weights | None:
        """What a batch is made by that begins at a position of an epoch; by default the last one, or the first to come.

        None where nothing is learnt. Raises Error where it is not known.
        """
        if self.learning is None:
            return None
        self.open_plan()
        if begins is not None:
            epoch, position = begins
            return self.learning.recall_weights(
                self._step_number(epoch, position + 1) - 1, self._step_number(*self.cursor.at.place)
            )
        at = self.cursor.at
        number = (
            self._step_number(*self.cursor.place)
            if at.last is None
            else self._step_number(at.last.epoch, at.place[1]) - 1
        )
        return self.learning.policy.weights_at(number)

    def _count_rows(self, rows: Rows, errors: list[dict[str, Any]]) -> Totals:
        """What will have been consumed with these rows."""
        before = self.cursor.at.totals or Totals()
        substituted = sum(error.get("substitute") is not None for error in errors) if errors else 0
        return Totals(
            before.batches + bool(len(rows.labels)),
            before.samples + rows.samples,
            before.nbytes + rows.nbytes,
            before.copied + rows.crowded,
            before.skipped + len(errors) - substituted,
            before.substituted + substituted,
        )

    def _slots_full(self, slots: Slots) -> bool:
        """Whether live batches hold so many slots that this one must go to ordinary memory; never a deadlock."""
        if slots.count_unleased() >= slots.count - IN_USE:  # needed is never more
            return False
        needed = self.feed.count_needed_slots(slots)
        if slots.count_unleased() >= needed:
            return False
        now = time.monotonic()
        if now > self._collect_after and gc.isenabled():
            # Batches in reference cycles: the collector sees no 38 MB in them and would not run by itself.
            gc.collect()
            helped = slots.count_unleased() >= needed
            self._collect_after = time.monotonic() + (COLLECT_EVERY_S if helped else COLLECT_IN_VAIN_S)
            if helped:
                return False
        if not self._warned:
            self._warned = True
            log.warning(
                "the program holds %d batches; further ones are copied to ordinary memory, which costs time. "
                "Keep fewer batches, or give more room with memory=",
                slots.count - slots.count_unleased(),
            )
        return True

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


def _find_ranks(config: Config) -> Ranks:
    return ranks.resolve_ranks(config.rank, config.num_replicas, config.mesh)


def _make_request(config: Config) -> Request:
    return Request(
        plan=config.to_plan(),
        nodes=config.nodes,
        local=config.source.local,
        labels_unused="label" not in config.names and config.python is None,
        table=config.source.table,
        job=lambda: name_of(config.job, _find_ranks(config).world),
        workers=config.local_workers,
        timeout=config.timeout,
        start_timeout=config.start_timeout,
        memory=config.memory,
        last_hop={picture.field: picture.output.last_hop() for picture in config.pictures},
        trust=config.trust,
    )


def _make_order(config: Config, samples: int, sampler_epoch: SamplerEpoch) -> Order:
    chosen, sampler = config.source.indices, config.sampler if config.batch_sampler is None else config.batch_sampler
    if sampler is not None:
        choice = (samples, "the data set") if chosen is None else (len(chosen), "the Subset")
        warn_other_length(sampler, *choice)
    if config.batch_sampler is not None:
        return BatchSamplerOrder(sampler, config.seed, samples, sampler_epoch, config.tail, chosen)
    assert config.batch_size is not None
    if sampler is not None:
        return SamplerOrder(sampler, config.batch_size, config.tail, config.seed, samples, sampler_epoch, chosen)
    if chosen is not None:
        return SubsetOrder(chosen, config.batch_size, config.tail, config.shuffle, config.seed)
    return RangeOrder(samples, config.batch_size, config.tail, config.steps_per_epoch)
