"""From a slot to what the loop gets: views where possible, copies where rows are cut, added or must move."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from ._opened import Opened
from ._order import Indices, Step
from ._output import Output
from ._slots import Field, Slots
from ._want import Done
from .errors import DataError

__all__ = ["Builder", "Rows"]

MOST_RAGGED = 2048
NO_INDEX = -1
_Array = npt.NDArray[Any]


class Rows:
    """The rows of one batch, as numpy arrays in the agent's layout."""

    __slots__ = ("crowded", "images", "indices", "labels", "nbytes", "samples", "valid")

    def __init__(self, images: Any, labels: _Array, indices: Indices) -> None:
        self.images, self.labels, self.indices = images, labels, indices
        self.valid: npt.NDArray[np.bool_] | None = None
        """Which rows hold a sample; None: all."""
        self.samples = len(labels)
        self.nbytes = sum(image.nbytes for image in images) if isinstance(images, list) else images.nbytes
        self.crowded = False
        """Whether it had to be copied to ordinary memory."""

    def to_ordinary_memory(self) -> None:
        """Copies the pictures, so that the slot is free."""
        self.images = [i.copy() for i in self.images] if isinstance(self.images, list) else self.images.copy()
        self.crowded = True

    def leave_out(self, holes: Collection[int], *, mask: bool) -> None:
        """Broken samples: their rows go, or with a mask become zeros."""
        kept = np.ones(len(self.labels), np.bool_)
        kept[list(holes)] = False
        self.samples = int(kept.sum())
        if mask:
            self.valid = kept
            self.labels[~kept] = 0
            for hole in holes:
                self.images[hole][...] = 0
            return
        self.labels, self.indices = self.labels[kept], self.indices[kept]
        if isinstance(self.images, list):
            self.images = [image for image, keep in zip(self.images, kept) if keep]
        else:
            self.images = self.images[kept]

    def pad(self, rows: int) -> None:
        """Zeros behind the rows, up to that many, and the mask that says so."""
        more = rows - len(self.labels)
        valid = np.ones(len(self.labels), np.bool_) if self.valid is None else self.valid
        self.valid = np.concatenate([valid, np.zeros(more, np.bool_)])
        self.labels = np.concatenate([self.labels, np.zeros(more, np.int64)])
        self.indices = np.concatenate([self.indices, np.full(more, NO_INDEX, np.int64)])
        if isinstance(self.images, list):
            self.images += [np.zeros((0, 0, 0), np.uint8)] * more
            return
        images = np.zeros((rows, *self.images.shape[1:]), self.images.dtype)
        images[: len(self.images)] = self.images
        self.images = images


class Builder:
    """Makes batches of one look. A batch in a slot is a lease on it; see _slots."""

    def __init__(self, output: Output, opened: Opened, names: dict[str, str], as_dict: bool) -> None:
        height, width, channels = next(field for field in opened.fields if field.name == "image").shape
        height, crops = height // output.crops, (output.crops,) if output.crops > 1 else ()
        self._shape = (*crops, *((height, width, channels) if output.layout == "hwc" else (channels, height, width)))
        self.ragged = 0 in self._shape
        self._output, self._names, self._as_dict = output, names, as_dict
        self._mask = "valid" in names
        self._turn = output.channels_first and output.layout == "hwc"
        self._torch = importlib.import_module("torch") if output.torch else None
        self._slots: Slots | None = None

    def forget(self) -> None:
        """Lets go of the slots it saw last."""
        self._slots = None

    def rows(self, step: Step, done: Done | None, crowded: Callable[[Slots], bool]) -> Rows:
        """The rows of a step's batch; done is None where the step leaves nothing for this rank.

        crowded says whether live batches hold so many slots that this one must go to ordinary memory.
        """
        rows = self._empty() if done is None else self._received(step, done)
        if done is not None:
            if crowded(self.held(done)):
                rows.to_ordinary_memory()
            if done.errors:
                self._mend(rows, done.errors)
        if step.rows > step.size:
            rows.pad(step.rows)
        return rows

    def held(self, done: Done) -> Slots:
        """The slots that a batch's pictures lie in."""
        return done.slots

    def batch(self, rows: Rows, keys: Callable[[Indices], list[str]]) -> Any:
        """What the loop gets: a tuple or a dict of the wanted fields."""
        made = {user: self._field(name, rows, keys) for name, user in self._names.items()}
        return made if self._as_dict else tuple(made.values())

    def _field(self, name: str, rows: Rows, keys: Callable[[Indices], list[str]]) -> Any:
        if name == "image":
            return self._images(rows.images)
        if name == "key":
            return keys(rows.indices)
        if name == "valid":
            array: _Array = np.ones(len(rows.labels), np.bool_) if rows.valid is None else rows.valid
        else:
            array = rows.labels if name == "label" else rows.indices
        return array if self._torch is None else self._torch.from_numpy(array)

    def _images(self, images: Any) -> Any:
        if isinstance(images, list):
            return [self._shown(image, (2, 0, 1)) for image in images]
        return self._shown(images, (0, 3, 1, 2) if images.ndim == 4 else (0, 1, 4, 2, 3))

    def _shown(self, array: _Array, turned: tuple[int, ...]) -> Any:
        if self._turn:
            array = array.transpose(turned)  # cheaper than Tensor.permute
        if self._torch is None:
            return array
        tensor = self._torch.from_numpy(array)
        return tensor.view(self._torch.bfloat16) if self._output.dtype == "bfloat16" else tensor

    def _empty(self) -> Rows:
        stored = Field("image", self._output.dtype, self._shape, 0).stored
        images: Any = [] if self.ragged else np.zeros((0, *self._shape), stored)
        return Rows(images, np.zeros(0, np.int64), np.zeros(0, np.int64))

    def _received(self, step: Step, done: Done) -> Rows:
        slots, slot, count = done.slots, done.slot, step.size
        if slots is not self._slots:
            self._image = Field("image", self._output.dtype, self._shape, slots.fields["image"].offset)
            self._slots = slots
        labels = slots.column(slot, "label", count).copy()
        indices = slots.column(slot, "index", count).copy()
        images = self._cut(done, count) if self.ragged else slots.lease(slot, self._image, count)
        return Rows(images, labels, indices)

    def _cut(self, done: Done, count: int) -> list[_Array]:
        """Samples of different sizes: views of one lease."""
        memory = done.slots.tail(done.slot, self._image)
        places = done.ragged["image"]
        offsets, shapes, stored = places["offsets"], places["shapes"], self._image.stored
        return [np.ndarray(tuple(shapes[i]), stored, memory[offsets[i] : offsets[i + 1]]) for i in range(count)]

    def _mend(self, rows: Rows, errors: list[dict[str, Any]]) -> None:
        holes = []
        for error in errors:
            if error.get("substitute") is not None:
                rows.indices[error["offset"]] = error["substitute"]
            else:
                holes.append(error["offset"])
        if holes:
            rows.leave_out(holes, mask=self._mask)


def check_ragged(batch: int, opened: Opened) -> None:
    """Raises DataError if samples of different sizes come in batches that the agent cannot describe."""
    image = next(field for field in opened.fields if field.name == "image")
    if image.ragged and batch > MOST_RAGGED:
        raise DataError(
            f"pictures come out in different sizes, which goes up to {MOST_RAGGED} in a batch, not {batch}: "
            "add CenterCrop(size) or Resize((h, w))"
        )
