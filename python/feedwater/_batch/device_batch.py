"""From a slot to a batch on the GPU: copied ahead of the loop, made final there.

A slot is copied as the agent left it, each field by one copy. What must be mended on the host first, as rows that are
left out or filled up, is mended there and copied from pinned memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._agent.feed import Feed
from .._agent.plan_info import PlanInfo
from .._agent.session import FEWEST_SLOTS
from .._agent.slots import Field, Slots
from .._agent.want import Done
from .._device.hop import Hop
from .._device.tensors import list_tensors, map_tensors
from .._device.transfer import Transfer, Upload
from .._order.steps import Indices, Step
from .._plan.output import DRAWS, IMAGE, MASK, TARGET
from .batch import Builder, Rows
from .field_view import Images

if TYPE_CHECKING:
    from .._plan.pictures import Picture
    from .relabel import Relabelling

__all__ = ["DeviceBuilder", "MovedBuilder"]

MOST_AHEAD = 2
WHOLE = Field("", "uint8", (), 0)
ERASE = "erase"
_Array = npt.NDArray[Any]


class _SlotRows(Rows):
    """Rows whose slot is copied to the GPU, or was."""

    __slots__ = ("boxes", "upload")

    def __init__(self, *arrays: Any) -> None:
        super().__init__(*arrays)
        self.upload: Upload | None = None
        """Of all fields as they lie in the slot; None where they must be mended first."""
        self.boxes: list[_Array | None] = []
        """Of each field of pictures the rectangles to erase."""

    def leave_out(self, holes: Any, *, mask: bool) -> None:
        super().leave_out(holes, mask=mask)
        if self.places is not None:
            self.boxes = [None if boxes is None else boxes[self.places] for boxes in self.boxes]

    def pad_rows(self, rows: int) -> None:
        self.upload = None
        self.boxes = [None if boxes is None else _pad_boxes(boxes, rows) for boxes in self.boxes]
        super().pad_rows(rows)


class DeviceBuilder(Builder):
    """Makes batches of one look on a GPU."""

    def __init__(
        self,
        transfer: Transfer,
        feed: Feed,
        pictures: Sequence[Picture],
        opened: PlanInfo,
        names: dict[str, str],
        as_dict: bool,
        relabel: Relabelling | None,
    ) -> None:
        super().__init__(pictures, opened, names, as_dict)
        self._transfer, self._feed, self._relabel = transfer, feed, relabel
        """Labels are changed by relabel before they are copied; rows keep those of the data."""
        self._explained = transfer.explained
        with self._explained:
            self._hops = [self._make_hop(picture) for picture in pictures]
        self._hops += [None] * (len(self._looks) - len(pictures))
        """Of each field of pictures or masks."""
        self._boxes: list[Field | None] = []
        """For each of them, the field of the slots that has the rectangles to erase."""
        self._ahead: dict[Done, Rows] = {}
        """Under way to the GPU, or there, before the loop asked."""

    def _make_hop(self, picture: Picture) -> Hop | None:
        hop = picture.device_hop
        if hop is None:
            return None
        return Hop(self._transfer.runtime, self.torch, hop.table, hop.layout, hop.erasures)

    def gather_rows(self, step: Step, done: Done | None, crowded: Callable[[Slots], bool]) -> Rows:
        """As Builder's. The slot is free when the GPU has read it, so live batches never crowd the slots."""
        with self._explained:
            return super().gather_rows(step, done, lambda _: False)

    def forget_slots(self) -> None:
        super().forget_slots()
        self._ahead = {}

    def _empty_rows(self) -> Rows:
        empty = super()._empty_rows()
        rows = _SlotRows(empty.pictures, empty.labels, empty.indices, None)
        rows.boxes, rows.values = [None] * len(self._looks), empty.values
        return rows

    def _received_rows(self, step: Step, done: Done) -> Rows:
        rows = self._ahead.pop(done, None)
        if rows is None:
            slots = done.slots
            self._transfer.make_room(max(1, slots.count - self._feed.count_needed_slots(slots)))
            rows = self._send_rows(step, done)
        return rows

    def send_ahead(self) -> None:
        """Begins to copy the batches that are there and come next. Those that were given up are forgotten."""
        transfer = self._transfer
        with self._explained:
            transfer.release_done()
        ready = self._feed.list_answered()[1:]  # the first is the one that was taken
        self._ahead = {done: self._ahead[done] for done in ready if done in self._ahead}
        for done in ready[:MOST_AHEAD]:
            if done in self._ahead:
                continue
            slots = done.slots
            most = slots.count - self._feed.count_needed_slots(slots)
            if len(self._ahead) >= count_ahead(slots) or transfer.count_under_way() >= most:
                break
            try:
                self._ahead[done] = self._send_rows(done.step, done)
            except RuntimeError:  # it is told when the loop asks for the batch, if it is still so then
                break

    def _send_rows(self, step: Step, done: Done) -> Rows:
        """The rows as they lie in the slot, on their way to the GPU."""
        slots, slot, count = done.slots, done.slot, step.size
        if slots is not self._slots:
            self._note_slots(slots)
        reason = slots.register_slot(slot, self._transfer.runtime)
        if reason:
            self._transfer.warn_refused(reason)
        memory = slots.lease_tail(slot, WHOLE)
        label = slots.fields.get("label")  # none where the data has none, and nobody asked
        labels = np.zeros(count, np.int64) if label is None else _view_field(memory, label, count)
        indices = _view_field(memory, slots.fields["index"], count)
        pictures = [look.view_batch(done, memory[look.field.offset :], count) for look in self._looks]
        rows = _SlotRows(pictures, labels.copy(), indices.copy(), slots)
        rows.boxes = [None if field is None else _view_field(memory, field, count) for field in self._boxes]
        if self._values:
            rows.values = {name: slots.read_values(slot, name, count) for name in self._values}
        if not done.errors and step.rows == step.size:
            self._send_whole(rows, labels, indices, memory)
        return rows

    def _send_whole(self, rows: _SlotRows, labels: _Array, indices: _Array, memory: _Array) -> None:
        """Begins the copies of rows of which none is mended; memory is their slot's lease."""
        sources, held = dict(self._name_sources(rows, labels, indices)), [memory]
        if self._relabel is not None and "label" in sources:
            changed = self._relabel.change_labels(labels, None)
            assert self.torch is not None
            sources["label"] = self._transfer.runtime.pin_copy(self.torch.from_numpy(changed))
            held.append(sources["label"])
        rows.upload = self._transfer.start_upload(sources, held)

    def _note_slots(self, slots: Slots) -> None:
        """Where fields lie in slots that are laid out anew."""
        for look in self._looks:
            look.set_offset(slots.fields[look.field.name].offset)
        self._boxes = [
            None if hop is None else slots.fields.get(look.field.name.replace(IMAGE, ERASE))
            for look, hop in zip(self._looks, self._hops)
        ]
        self._slots = slots
        self._explained.note_ahead(count_ahead(slots), slots.stride, FEWEST_SLOTS * slots.stride)

    def _name_sources(self, rows: Rows, labels: _Array, indices: _Array) -> Iterator[tuple[str, Any]]:
        """What a batch needs on the GPU, as tensors of the host, by names of ours."""
        assert isinstance(rows, _SlotRows) and self.torch is not None
        for look, images, boxes in zip(self._looks, rows.pictures, rows.boxes):
            field = look.field.name
            if isinstance(images, list):
                yield from ((f"{field}/{row}", look.as_tensor(image)) for row, image in enumerate(images))
            else:
                yield field, look.as_tensor(images)
            if boxes is not None:
                yield f"{field}/boxes", self.torch.from_numpy(boxes)
        for name, array in (("label", labels), ("index", indices), ("valid", rows.valid)):
            if array is not None and (name in self._names or name == "valid"):
                yield name, self.torch.from_numpy(array)

    def build_batch(self, rows: Rows, keys: Callable[[Indices], list[str]]) -> Any:
        """What the loop gets: a tuple or a dict of the wanted fields, on the GPU."""
        with self._explained:
            return self._build_batch(rows, keys)

    def _build_batch(self, rows: Rows, keys: Callable[[Indices], list[str]]) -> Any:
        assert isinstance(rows, _SlotRows)
        if rows.upload is None:
            pin = self._transfer.runtime.pin_copy
            sources = self._name_sources(rows, rows.labels, rows.indices)
            pinned = {name: pin(source) for name, source in sources}
            rows.upload = self._transfer.start_upload(pinned, pinned)
        tensors = self._transfer.receive_tensors(rows.upload)
        fields = {user: self._place_field(name, rows, tensors, keys) for name, user in self._names.items()}
        return fields if self._as_dict else tuple(fields.values())

    def _place_field(self, name: str, rows: Rows, tensors: dict[str, Any], keys: Callable[[Indices], list[str]]) -> Any:
        if name == IMAGE:
            made = [self._finish_look(number, rows, tensors) for number in range(self._pictures)]
            return made if self._several else made[0]
        if name == MASK:
            numbers = range(self._pictures, len(self._looks))
            made = [self._cast_masks(self._finish_look(number, rows, tensors)) for number in numbers]
            return made if self._several else made[0]
        if name == "key":
            return keys(rows.indices)
        if name == TARGET and self.targets is not None:
            return self.targets.make_targets(rows.indices, rows.values[DRAWS])
        if name in rows.values:
            return rows.values[name]
        if name == "valid" and "valid" not in tensors:
            assert self.torch is not None
            return self._transfer.make_ones((len(rows.labels),), self.torch.bool)
        return tensors[name]

    def _finish_look(self, number: int, rows: Rows, tensors: dict[str, Any]) -> Images:
        """One field of pictures or masks, in its final form."""
        look, hop = self._looks[number], self._hops[number]
        boxes, valid = tensors.get(f"{look.field.name}/boxes"), tensors.get("valid")
        if not isinstance(rows.pictures[number], list):
            raw = tensors[look.field.name]
            return look.turn_tensor(raw) if hop is None else hop.finish_pictures(raw, boxes, valid)
        made = []
        for row in range(len(rows.pictures[number])):
            raw = tensors[f"{look.field.name}/{row}"]
            if hop is None or not raw.numel():
                made.append(look.turn_tensor(raw))
                continue
            some = None if valid is None else valid[row : row + 1]
            made.append(hop.finish_pictures(raw.unsqueeze(0), None if boxes is None else boxes[row : row + 1], some)[0])
        return made


class MovedBuilder:
    """Makes batches in the CPU's memory as another Builder does, and moves all tensors in them to the GPU."""

    def __init__(self, transfer: Transfer, inner: Builder) -> None:
        self._transfer, self._inner, self.torch = transfer, inner, inner.torch
        self._explained = transfer.explained
        self.gather_rows, self.forget_slots = inner.gather_rows, inner.forget_slots

    def send_ahead(self) -> None:
        """Lets go of what the GPU has read. Nothing is there before the loop asks."""
        with self._explained:
            self._transfer.release_done()

    def build_batch(self, rows: Rows, keys: Callable[[Indices], list[str]]) -> Any:
        """As the inner one's, on the GPU."""
        batch = self._inner.build_batch(rows, keys)
        found = list_tensors(self.torch, batch)
        with self._explained:
            pinned = {str(place): self._transfer.runtime.pin_copy(tensor) for place, tensor in enumerate(found)}
            moved = self._transfer.receive_tensors(self._transfer.start_upload(pinned, pinned))
        there = iter(moved.values())
        return map_tensors(self.torch, batch, lambda _: next(there))


def count_ahead(slots: Slots) -> int:
    """How many batches are copied before the loop asks: a share of the slots, as memory= allows them."""
    return max(1, min(MOST_AHEAD, slots.count // FEWEST_SLOTS))


def _pad_boxes(boxes: _Array, rows: int) -> _Array:
    """No rectangles behind the rows, up to that many."""
    return np.concatenate([boxes, np.zeros((rows - len(boxes), *boxes.shape[1:]), boxes.dtype)])


def _view_field(memory: _Array, field: Field, count: int) -> _Array:
    """The field's rows in a slot, of the slot's lease."""
    view: _Array = np.ndarray((count, *field.shape), field.stored_type, memory, field.offset)
    return view
