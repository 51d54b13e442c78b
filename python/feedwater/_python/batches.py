"""python=: the program's function on every sample, in processes of their own, behind the agent.

A batch that the agent has finished lies in a slot; its rows are dealt out to the processes, which write what the
function makes of them into slots of their own. All batches that are ready are dealt out, in the order of need, so that
processes work while the loop trains. A job is a pure function of a batch: whatever is lost with a process is done
again, and what nobody wants any more is forgotten.
"""

from __future__ import annotations

import logging
import math
import os
import pickle
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._agent import memory
from .._agent.replay import keys_of
from .._agent.session import FEWEST_SLOTS, MOST_SLOTS
from .._agent.slots import Field, Slots, align_array, align_stride
from .._agent.want import Done
from .._batch.batch import Builder, Rows
from .._common.waits import Waited
from .._order.steps import Indices, Step
from .._plan.output import IMAGE, MASK
from ..errors import DataError, PythonError, StallError
from .function import name_of
from .pool import Member, Pool
from .worker import Job, Look, Report, Shown, join_views

if TYPE_CHECKING:
    from .._agent.feed import Feed
    from .._agent.session import Session
    from .._config import Config
    from .._plan.pictures import Picture

__all__ = ["PythonBuilder", "Stage", "count_cores"]

log = logging.getLogger("feedwater")

_Array = npt.NDArray[Any]

OURS = ("index", "key", "valid")
"""Fields that the function has no part in."""
TURN_S = 0.05
"""How often a wait for processes looks whether the agent has finished more."""
TELL_AFTER_S = 5.0
"""A first batch that takes longer is told of."""
BACKLOG_BYTES = 128 << 10
"""Jobs that lie in one process's socket at most, so that sending never waits."""
SMALL_BYTES = 64 << 10
"""Fields up to that size are copied out, so that labels which the program keeps hold no slot."""


def count_cores() -> int:
    """Cores that this rank may use: affinity and control group, shared with the machine's other ranks."""
    most = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        most = min(most, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # no such group, or no limit
        pass
    return max(1, most // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1") or 1)))


def look_of(config: Config) -> Look:
    """What the function gets: pictures as arrays, or, where the transforms make tensors, tensors."""
    first = config.pictures[0]
    tensor = first.compiled.to_tensor and first.output.torch
    shown = [_show_picture(picture) for picture in config.pictures]
    if config.masks is not None:
        cast = first.compiled.mask_dtype if tensor else None
        shown += [Shown(picture.field.replace(IMAGE, MASK), "uint8", cast=cast) for picture in config.pictures]
    return Look(
        tensor=tensor,
        shown=tuple(shown),
        views=config.views,
        fields=tuple(name for name in config.names if name not in OURS),
        seed=config.seed,
    )


def _show_picture(picture: Picture) -> Shown:
    wanted = "chw" if picture.compiled.to_tensor else "hwc"
    turn = "" if picture.output.layout == wanted else "first" if picture.compiled.to_tensor else "last"
    return Shown(picture.field, picture.output.dtype, turn)


class _Task:
    """A batch that is dealt out."""

    __slots__ = ("done", "left", "packets", "reports", "sent", "slot")

    def __init__(self, done: Done, slot: int, packets: dict[int, bytes]) -> None:
        self.done, self.slot, self.packets = done, slot, packets
        self.left = set(packets)
        """Places of the processes that have not answered."""
        self.sent: dict[Member, list[int]] = {}
        """Not empty for a process that has been told; see Pool.send_job."""
        self.reports: list[Report] = []

    def first_failure(self) -> Report | None:
        """What happened at the first row that failed, if one did."""
        return min((report for report in self.reports if report.row >= 0), key=lambda r: r.row, default=None)


class Made(NamedTuple):
    """Where the results of a batch lie: in which slots, and in which of them."""

    slots: Slots
    slot: int


class Stage:
    """The processes of python=, and the batches that they work on. For one thread at a time, except drop_handles."""

    def __init__(self, config: Config) -> None:
        self.name = name_of(config.python)
        self.look = look_of(config)
        self.pool = Pool(pickle.dumps(config.python), self.look, config.python_workers or count_cores())
        self.fields: tuple[Field, ...] = ()
        """Of every result, as the first one had them; placed in the slots. Empty before."""
        self.slots: Slots | None = None
        self.wait_s = 0.0
        """Time that take_batch waited for processes while the agent's batch was there."""
        self.busy_s, self.samples = 0.0, 0
        """Time that the function took, on so many samples."""
        self._memory, self._limits_s = config.memory, (config.timeout, config.start_timeout)
        self._begun = False
        """Whether a batch was made: until then processes may still be starting."""
        self._tell_after_s = TELL_AFTER_S
        self._rows = 0
        """Samples that a slot has room for."""
        self._tasks: dict[int, _Task] = {}
        self._ident = 0

    def start_pool(self) -> None:
        """Starts the processes, without waiting for them."""
        self.pool.start_workers()

    def close(self) -> None:
        """Ends the processes; batches handed out stay good."""
        self.pool.close()
        self._let_go()

    def drop_handles(self) -> None:
        """Like close, but takes no lock and waits for nothing; called by finalisers."""
        self.pool.drop_handles()
        self._let_go()

    def _let_go(self) -> None:
        slots, self.slots, self._tasks = self.slots, None, {}
        if slots is not None:
            slots.close()

    # -- batches ------------------------------------------------------------------------------------------------------

    def take_batch(
        self, done: Done, pictures: Sequence[Field], session: Session, ahead: Callable[[], list[Done]]
    ) -> Made:
        """What the function makes of the batch; blocks until it is there. Deals out those ahead meanwhile.

        pictures are the fields of pictures and masks, as the agent leaves them. The slot of done must not be given
        away before the next take_batch.
        Raises PythonError with what the function raised at the first row that it failed on.
        """
        began, waited = time.monotonic(), Waited(TURN_S)
        try:
            self._forget_all_but([done, *ahead()])
            batch = _Source(pictures, session)
            if not self.fields:
                self.fields = self._first_fields(done, batch, waited)
            if self.slots is None or done.step.size > self._rows:
                self._renew_slots(max(session.batch, done.step.size))
            while (task := self._ensure_task(done, batch)) is None or task.left:
                if task is None:
                    self._make_room()
                else:
                    self._deal_all(ahead(), batch)
                self._await_report(waited)
            self._check_task(task, session)
            self._begun = True
            self._deal_all(ahead(), batch)
        finally:
            self.wait_s += time.monotonic() - began - waited.stopped_s
        assert self.slots is not None
        return Made(self.slots, task.slot)

    def _forget_all_but(self, wanted: list[Done]) -> None:
        """Drops what is finished and not to be taken any more."""
        kept = {id(done) for done in wanted}
        self._tasks = {n: task for n, task in self._tasks.items() if task.left or id(task.done) in kept}

    def _make_room(self) -> None:
        """No slot for the batch that is needed now: gives up what is finished and needed last."""
        finished = [ident for ident, task in self._tasks.items() if not task.left]
        if finished:
            del self._tasks[finished[-1]]

    def _first_fields(self, done: Done, batch: _Source, waited: Waited) -> tuple[Field, ...]:
        """Asks one process what the function makes of a sample."""
        rows = _whole_rows(done)
        if not rows:
            raise DataError("python=: no picture of the first batch decodes, so nothing says what results look like")
        self._ident += 1
        task = self._register_task(_Task(done, -1, {0: self._encode_packet(done, rows[:1], batch, None, 0)}))
        while task.left:
            self._deal_rows(task)
            self._await_report(waited)
        self._check_task(task, batch.session)
        return tuple(Field(name, dtype, shape, 0) for name, dtype, shape in task.reports[0].fields)

    def _renew_slots(self, rows: int) -> None:
        """Slots for batches of that many rows; what was made for others is made again."""
        fields, stride = [], 0
        for field in self.fields:
            fields.append(Field(field.name, field.dtype, field.shape, stride))
            stride += align_array(rows * field_bytes(field))
        stride = align_stride(stride)
        limit = memory.slot_allowance(self._memory)
        before, slots = self.slots, Slots(max(FEWEST_SLOTS, min(MOST_SLOTS, limit // stride)), stride)
        self.fields, self._tasks, self._rows, self.slots = tuple(fields), {}, rows, slots
        if before is not None:
            before.close()

    # -- dealing ------------------------------------------------------------------------------------------------------

    def _deal_all(self, ready: list[Done], batch: _Source) -> None:
        for done in ready:
            if self._ensure_task(done, batch) is None:
                return

    def _ensure_task(self, done: Done, batch: _Source) -> _Task | None:
        """The task of the batch, old or new, dealt out; None if there is no slot for it."""
        task = next((task for task in self._tasks.values() if task.done is done), None)
        if task is None:
            task = self._make_task(done, batch)
        if task is not None:
            self._deal_rows(task)
        return task

    def _make_task(self, done: Done, batch: _Source) -> _Task | None:
        assert self.slots is not None
        slot = self.slots.find_free_slot({task.slot for task in self._tasks.values()})
        if slot is None or done.step.size > self._rows:
            return None
        self._ident += 1
        rows, count = _whole_rows(done), self.pool.count
        shares = {place: rows[place::count] for place in range(min(count, len(rows)))}
        packets = {
            place: self._encode_packet(done, share, batch, self.slots, slot * self.slots.stride)
            for place, share in shares.items()
        }
        return self._register_task(_Task(done, slot, packets))

    def _register_task(self, task: _Task) -> _Task:
        self._tasks[self._ident] = task
        return task

    def _deal_rows(self, task: _Task) -> None:
        """Tells the processes that were not told yet and have room for it in their sockets."""
        for member in self.pool.start_workers():
            if member.place not in task.left or task.sent.get(member):
                continue
            packet, backlog = task.packets[member.place], self._count_backlog(member)
            if backlog and backlog + len(packet) > BACKLOG_BYTES:
                continue
            needs = [task.done.slots] if self.slots is None else [task.done.slots, self.slots]
            self.pool.send_job(member, packet, task.sent.setdefault(member, []), *needs)

    def _count_backlog(self, member: Member) -> int:
        place, tasks = member.place, self._tasks.values()
        return sum(len(task.packets[place]) for task in tasks if place in task.left and task.sent.get(member))

    def _encode_packet(self, done: Done, rows: list[int], batch: _Source, target: Slots | None, start: int) -> bytes:
        labels, indices = done.slots.columns["label"][done.slot], indices_of(done)
        job = Job(
            ident=self._ident,
            epoch=done.step.epoch,
            rows=tuple(rows),
            indices=tuple(indices[rows].tolist()),
            repeats=tuple(batch.repeat_of(done.step, row) for row in rows),
            labels=tuple(labels[rows].tolist()),
            source=self.pool.register_slots(done.slots),
            places=tuple(batch.locate_row(done, row) for row in rows),
            target=0 if target is None else self.pool.register_slots(target),
            start=start,
            fields=self.fields,
        )
        return pickle.dumps(job)

    # -- answers ------------------------------------------------------------------------------------------------------

    def _await_report(self, waited: Waited) -> None:
        self.pool.wait_reports(TURN_S, self._note_report)
        if not self._begun:
            self._tell_start(waited)
        limit_s = self._limits_s[not self._begun]
        if waited.end_turn() > limit_s > 0:
            at = ", ".join(map(str, self.pool.at_work_on())) or "none"
            raise StallError(
                f"python= has not finished the batch after {limit_s:g} s; at work on samples of index {at}. "
                "Calling next again goes on waiting"
            )

    def _tell_start(self, waited: Waited) -> None:
        """Says how far processes are, where the first batch takes long, now and then and less and less often."""
        if waited.seconds < self._tell_after_s:
            return
        self._tell_after_s = max(self._tell_after_s, waited.seconds, TURN_S) * 2
        started = self.pool.count_started()
        log.warning(
            "python= works on the first batch since %.0f s: %d of %d processes have started. Each %s. %s",
            waited.seconds,
            started,
            self.pool.count,
            f"runs the program's script up to its guard, as {self.name} is of it: in a module of its own it needs none"
            if self.pool.of_main
            else f"imports the module of {self.name}, and what that imports",
            "All wait for samples to be done" if started == self.pool.count else "python_workers= starts fewer of them",
        )

    def _note_report(self, report: Report) -> None:
        """Notes an answer; harmless when repeated."""
        task = self._tasks.get(report.ident)
        if task is None or report.place not in task.left:
            return
        task.reports.append(report)
        task.left.discard(report.place)
        self.busy_s += report.seconds
        self.samples += report.samples

    def _check_task(self, task: _Task, session: Session) -> None:
        """Raises PythonError if the function failed; the next take_batch calls it again."""
        report = task.first_failure()
        if report is None:
            return
        self._tasks = {ident: other for ident, other in self._tasks.items() if other is not task}
        index = int(indices_of(task.done)[report.row])
        key = keys_of(session, task.done.step.epoch, np.array([index]))[0]
        raise PythonError(
            f"python= failed on {key} (index {index}): {report.error}\n\nIn its process:\n{report.trace}",
            key=key,
            index=index,
        )


class _Source:
    """How the agent leaves batches."""

    def __init__(self, pictures: Sequence[Field], session: Session) -> None:
        assert session.opened is not None
        self.pictures, self.session = pictures, session
        self._samples = session.opened.samples

    def locate_row(self, done: Done, row: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Where in the slots' file a row's pictures and masks begin, and their shapes."""
        return tuple(_locate_picture(field, done, row) for field in self.pictures)

    def repeat_of(self, step: Step, row: int) -> int:
        """Tells the appearances of one sample in one epoch apart, as replay counts them."""
        position = step.position + row
        return position & 0xFFFFFFFF if step.indices is not None else position // self._samples


def _locate_picture(field: Field, done: Done, row: int) -> tuple[int, tuple[int, ...]]:
    start = done.slot * done.slots.stride + done.slots.fields[field.name].offset
    places = done.ragged.get(field.name)
    if places is not None:
        return start + places["offsets"][row], tuple(places["shapes"][row])
    return start + row * field_bytes(field), field.shape


def field_bytes(field: Field) -> int:
    """Bytes of one sample's array."""
    return field.stored_type.itemsize * math.prod(field.shape)


def indices_of(done: Done) -> Indices:
    """The samples of a batch, those that took the place of broken ones included."""
    indices: Indices = done.slots.columns["index"][done.slot, : done.step.size].copy()
    for row, index in done.substitutes.items():
        indices[row] = index
    return indices


def _whole_rows(done: Done) -> list[int]:
    """The rows that hold a picture."""
    holes = set(done.holes)
    return [row for row in range(done.step.size) if row not in holes]


class _MadeRows(Rows):
    """The rows of a batch as the function made them."""

    __slots__ = ("made",)

    def __init__(self, made: dict[str, _Array], labels: _Array, indices: Indices, slots: Slots | None) -> None:
        self.made = made
        super().__init__([], labels, indices, slots)
        self.nbytes = sum(array.nbytes for array in made.values())

    def to_ordinary_memory(self) -> None:
        self.made = {name: array.copy() for name, array in self.made.items()}
        self.crowded = True

    def leave_out(self, holes: Collection[int], *, mask: bool) -> None:
        rows = len(self.labels)
        super().leave_out(holes, mask=mask)
        for name, array in self.made.items():
            if mask:
                array[list(holes)] = 0
            else:
                self.made[name] = np.delete(array, list(holes), axis=0) if len(self.labels) < rows else array

    def pad_rows(self, rows: int) -> None:
        for name, array in self.made.items():
            more = np.zeros((rows - len(array), *array.shape[1:]), array.dtype)
            self.made[name] = np.concatenate([array, more])
        super().pad_rows(rows)


class PythonBuilder(Builder):
    """Makes batches of what the function made. The large fields are leases on the stage's slots."""

    def __init__(self, stage: Stage, feed: Feed, *look: Any) -> None:
        super().__init__(*look)
        self._stage, self._feed = stage, feed

    def build_sample(self, done: Done, feed: Feed) -> dict[str, Any]:
        """The only row of a batch, by our names of the fields."""
        rows = self._rows_of(done, feed, list)
        return join_views({name: array[0] for name, array in rows.made.items()})

    def _received_rows(self, step: Step, done: Done) -> Rows:
        return self._rows_of(done, self._feed, self._feed.list_answered)

    def _rows_of(self, done: Done, feed: Feed, ahead: Callable[[], list[Done]]) -> _MadeRows:
        slots, slot = self._stage.take_batch(done, [look.field for look in self._looks], feed.session, ahead)
        count = done.step.size
        memory = slots.lease_tail(slot, Field("", "uint8", (), 0))
        made: dict[str, _Array] = {}
        for field in self._stage.fields:
            array = np.ndarray((count, *field.shape), field.stored_type, memory, field.offset)
            made[field.name] = array if array.nbytes > SMALL_BYTES else array.copy()
        labels = done.slots.columns["label"][done.slot, :count].copy()
        indices = done.slots.columns["index"][done.slot, :count].copy()
        return _MadeRows(made, labels, indices, slots)

    def _empty_rows(self) -> Rows:
        if not self._stage.fields:
            raise DataError(
                "python=: no sample is left for this rank's first batch, so nothing says what results look "
                "like: pass a smaller batch_size"
            )
        made = {field.name: np.zeros((0, *field.shape), field.stored_type) for field in self._stage.fields}
        return _MadeRows(made, np.zeros(0, np.int64), np.zeros(0, np.int64), None)

    def _build_field(self, name: str, rows: Rows, keys: Callable[[Indices], list[str]]) -> Any:
        assert isinstance(rows, _MadeRows)
        views = [f"{name}.{number}" for number in range(len(rows.made)) if f"{name}.{number}" in rows.made]
        if views:
            return [self._build_field(view, rows, keys) for view in views]
        array = rows.made.get(name)
        if array is None:
            return super()._build_field(name, rows, keys)
        if self.torch is None:
            return array
        tensor = self.torch.from_numpy(array)
        dtype = next(field.dtype for field in self._stage.fields if field.name == name)
        return tensor.view(self.torch.bfloat16) if dtype == "bfloat16" else tensor
