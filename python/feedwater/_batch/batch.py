"""From a slot to what the loop gets: views where possible, copies where rows are cut, added or must move."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._agent.plan_info import PlanInfo
from .._agent.slots import Slots
from .._agent.want import Done
from .._order.steps import Indices, Step
from .._plan.output import DRAWS, FIELDS, IMAGE, MASK, TARGET
from ..errors import DataError
from .field_view import FieldView, Images, copy_images, keep_rows, pad_images

if TYPE_CHECKING:
    from .._plan.pictures import Picture
    from .targets import Targets

__all__ = ["Builder", "Rows"]

log = logging.getLogger("feedwater")

MOST_RAGGED = 2048
NO_INDEX = -1
_Array = npt.NDArray[Any]


class Rows:
    """The rows of one batch, as numpy arrays in the agent's layout."""

    __slots__ = ("crowded", "indices", "labels", "nbytes", "pictures", "places", "samples", "slots", "valid", "values")

    def __init__(self, pictures: list[Images], labels: _Array, indices: Indices, slots: Slots | None) -> None:
        self.pictures, self.labels, self.indices = pictures, labels, indices
        self.slots = slots
        """Where the pictures lie; None: in ordinary memory."""
        self.places: Indices | None = None
        """Which rows of the step these are; None: all, or the first."""
        self.valid: npt.NDArray[np.bool_] | None = None
        """Which rows hold a sample; None: all."""
        self.values: dict[str, list[bytes]] = {}
        """What the data has besides pictures and labels, by our names of the fields."""
        self.samples = len(labels)
        self.nbytes = 0
        for images in pictures:
            self.nbytes += sum(image.nbytes for image in images) if isinstance(images, list) else images.nbytes
        self.crowded = False
        """Whether it had to be copied to ordinary memory."""

    def to_ordinary_memory(self) -> None:
        """Copies the pictures, so that the slot is free."""
        self.pictures = [copy_images(images) for images in self.pictures]
        self.crowded = True

    def leave_out(self, holes: Collection[int], *, mask: bool) -> None:
        """Broken samples: their rows go, or with a mask become zeros."""
        rows = np.ones(len(self.labels), np.bool_)
        rows[list(holes)] = False
        self.samples = int(rows.sum())
        if mask:
            self.valid = rows
            self.labels[~rows] = 0
            for images in self.pictures:
                for hole in holes:
                    images[hole][...] = 0
            return  # holes have empty values
        self.values = {name: [v for v, row in zip(column, rows) if row] for name, column in self.values.items()}
        self.labels, self.indices = self.labels[rows], self.indices[rows]
        self.places = np.flatnonzero(rows)
        self.pictures = [keep_rows(images, rows) for images in self.pictures]

    def pad_rows(self, rows: int) -> None:
        """Zeros behind the rows, up to that many, and the mask that says so."""
        more = rows - len(self.labels)
        valid = np.ones(len(self.labels), np.bool_) if self.valid is None else self.valid
        self.valid = np.concatenate([valid, np.zeros(more, np.bool_)])
        self.labels = np.concatenate([self.labels, np.zeros(more, np.int64)])
        self.indices = np.concatenate([self.indices, np.full(more, NO_INDEX, np.int64)])
        self.pictures = [pad_images(images, rows) for images in self.pictures]
        self.values = {name: column + [b""] * more for name, column in self.values.items()}


class Builder:
    """Makes batches of one look. A batch in a slot is a lease on it; see _slots."""

    def __init__(self, pictures: Sequence[Picture], opened: PlanInfo, names: dict[str, str], as_dict: bool) -> None:
        self.torch = importlib.import_module("torch") if pictures[0].output.torch else None
        """What makes the batches tensors; None: they are arrays."""
        self._looks = [FieldView.for_picture(picture, opened, self.torch) for picture in pictures]
        self._several = pictures[0].field != IMAGE
        self._pictures = len(pictures)
        masks = [picture.field.replace(IMAGE, MASK) for picture in pictures]
        if any(field.name == masks[0] for field in opened.fields):
            self._looks += [FieldView(opened.find_field(mask), False, self.torch) for mask in masks]
        self._mask_dtype = pictures[0].compiled.mask_dtype
        """The type that masks get; None: they stay uint8."""
        self._plain = len(self._looks) == 1 and not self._looks[0].field.ragged
        """Whether the pictures of a batch are one array."""
        self._names, self._as_dict = names, as_dict
        self._mask = "valid" in names
        there = {field.name for field in opened.fields}
        self._values = [name for name in (*names, DRAWS) if name not in FIELDS and name in there]
        self.targets: Targets | None = None
        """What the field target is made by; None: there is none, but of the data's own."""
        self._slots: Slots | None = None

    def forget_slots(self) -> None:
        """Lets go of the slots it saw last."""
        self._slots = None

    def send_ahead(self) -> None:
        """Copies what comes next ahead of the loop, where batches go to a GPU."""

    def gather_rows(self, step: Step, done: Done | None, crowded: Callable[[Slots], bool]) -> Rows:
        """The rows of a step's batch; done is None where the step leaves nothing for this rank.

        crowded says whether live batches hold so many slots that this one must go to ordinary memory.
        """
        rows = self._empty_rows() if done is None else self._received_rows(step, done)
        if rows.slots is not None and crowded(rows.slots):
            rows.to_ordinary_memory()
        if done is not None and done.errors:
            self._mend(rows, done)
        if step.rows > step.size:
            rows.pad_rows(step.rows)
        return rows

    def build_batch(self, rows: Rows, keys: Callable[[Indices], list[str]]) -> Any:
        """What the loop gets: a tuple or a dict of the wanted fields."""
        made = {}
        for name, user in self._names.items():
            made[user] = self._build_field(name, rows, keys)
        return made if self._as_dict else tuple(made.values())

    def _build_field(self, name: str, rows: Rows, keys: Callable[[Indices], list[str]]) -> Any:
        if name == IMAGE:
            if not self._several:
                return self._looks[0].convert_images(rows.pictures[0])
            return [self._looks[at].convert_images(rows.pictures[at]) for at in range(self._pictures)]
        if name == MASK:
            numbers = range(self._pictures, len(self._looks))
            masks = [self._cast_masks(self._looks[at].convert_images(rows.pictures[at])) for at in numbers]
            return masks if self._several else masks[0]
        if name == "key":
            return keys(rows.indices)
        if name == TARGET and self.targets is not None:
            return self.targets.make_targets(rows.indices, rows.values[DRAWS])
        if name in rows.values:
            return rows.values[name]
        if name == "valid":
            array: _Array = np.ones(len(rows.labels), np.bool_) if rows.valid is None else rows.valid
        else:
            array = rows.labels if name == "label" else rows.indices.copy()  # the Loader looks at its own later
        return array if self.torch is None else self.torch.from_numpy(array)

    def _cast_masks(self, masks: Any) -> Any:
        """Masks as the transform's ToDtype has them. Only torchvision's object says so, so they are tensors."""
        return masks if self._mask_dtype is None else masks.to(getattr(self.torch, self._mask_dtype))

    def _empty_rows(self) -> Rows:
        rows = Rows([look.make_empty() for look in self._looks], np.zeros(0, np.int64), np.zeros(0, np.int64), None)
        rows.values = {name: [] for name in self._values}
        return rows

    def _received_rows(self, step: Step, done: Done) -> Rows:
        slots, slot, count = done.slots, done.slot, step.size
        if slots is not self._slots:
            for look in self._looks:
                look.set_offset(slots.fields[look.field.name].offset)
            self._slots = slots
        column = slots.columns.get("label")  # none where the data has none, and nobody asked
        labels = np.zeros(count, np.int64) if column is None else column[slot, :count].copy()
        indices = slots.columns["index"][slot, :count].copy()
        pictures = (
            [slots.lease_array(slot, self._looks[0].field, count)] if self._plain else self._view_pictures(done, count)
        )
        rows = Rows(pictures, labels, indices, slots)
        if self._values:
            rows.values = {name: slots.read_values(slot, name, count) for name in self._values}
        return rows

    def _view_pictures(self, done: Done, count: int) -> list[Images]:
        """Pictures of several fields, or of different sizes, in a slot: all of one lease."""
        first = self._looks[0]
        memory = done.slots.lease_tail(done.slot, first.field)
        return [look.view_batch(done, memory[look.field.offset - first.field.offset :], count) for look in self._looks]

    def _mend(self, rows: Rows, done: Done) -> None:
        for row, index in done.substitutes.items():
            rows.indices[row] = index
        if holes := done.holes:
            rows.leave_out(holes, mask=self._mask)


def check_ragged(batch: int, opened: PlanInfo, *, expected: bool) -> None:
    """Raises DataError if samples of different sizes come in batches that the agent cannot describe.

    Warns that images are a list, which most programs do not expect, unless something is there to make one of them.
    """
    if not any(field.ragged for field in opened.fields):
        return
    if not expected and batch > 1:
        log.warning(
            "pictures come out in different sizes, so the images of a batch are a list, one for each sample. If that "
            "is not meant: add CenterCrop(size) or Resize((h, w)) to the transform; Resize(n) keeps proportions"
        )
    if batch > MOST_RAGGED:
        raise DataError(
            f"pictures come out in different sizes, which goes up to {MOST_RAGGED} in a batch, not {batch}: "
            "add CenterCrop(size) or Resize((h, w))"
        )
