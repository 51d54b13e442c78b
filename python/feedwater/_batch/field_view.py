"""One field of pictures: from a slot's bytes to what the loop gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._agent.plan_info import PlanInfo
from .._agent.slots import Field
from .._agent.want import Done

if TYPE_CHECKING:
    from .._plan.pictures import Picture

__all__ = ["FieldView", "copy_images", "keep_rows", "pad_images"]

TURNS = {3: (0, 3, 1, 2), 4: (0, 1, 4, 2, 3)}
"""By the dimensions of a sample: a picture's, several crops'."""

_Array = npt.NDArray[Any]
Images = Any
"""An array, or a list of arrays where samples differ in size."""


class FieldView:
    """How a field lies in slots and is shown."""

    def __init__(self, field: Field, turn: bool, torch: Any) -> None:
        self.field = field
        self._tensor: Callable[[_Array], Any] | None = None if torch is None else torch.from_numpy
        """Makes a tensor of an array; None where arrays are wanted."""
        if torch is not None and field.dtype == "bfloat16":
            self._tensor = lambda array: torch.from_numpy(array).view(torch.bfloat16)
        self._turn = TURNS[len(field.shape)] if turn else None
        """How the dimensions of an array are put: channels before the sides."""

    @classmethod
    def for_picture(cls, picture: Picture, opened: PlanInfo, torch: Any) -> FieldView:
        """That of pictures."""
        output = picture.output
        height, width, channels = opened.find_field(picture.field).shape
        height, crops = height // output.crops, (output.crops,) if output.crops > 1 else ()
        sides = (height, width, channels) if output.layout == "hwc" else (channels, height, width)
        field = Field(picture.field, output.dtype, (*crops, *sides), 0)
        return cls(field, output.channels_first and output.layout == "hwc", torch)

    def set_offset(self, offset: int) -> None:
        """Where the agent puts it in each slot."""
        self.field = Field(self.field.name, self.field.dtype, self.field.shape, offset)

    def make_empty(self) -> Images:
        """No sample."""
        return [] if self.field.ragged else np.zeros((0, *self.field.shape), self.field.stored_type)

    def view_batch(self, done: Done, memory: _Array, count: int) -> Images:
        """Those that begin memory, which is of one lease."""
        shape, stored = self.field.shape, self.field.stored_type
        if not self.field.ragged:
            return np.ndarray((count, *shape), stored, memory[: count * stored.itemsize * int(np.prod(shape))])
        places = done.ragged[self.field.name]
        offsets, shapes = places["offsets"], places["shapes"]
        return [np.ndarray(tuple(shapes[i]), stored, memory[offsets[i] : offsets[i + 1]]) for i in range(count)]

    def as_tensor(self, array: _Array) -> Any:
        """The array as a tensor of the host, its dimensions where they are."""
        assert self._tensor is not None
        return self._tensor(array)

    def turn_tensor(self, tensor: Any) -> Any:
        """A batch, or one picture, as the loop gets it."""
        if self._turn is None:
            return tensor
        return tensor.permute(self._turn) if tensor.ndim == len(self._turn) else tensor.permute(2, 0, 1)

    def convert_images(self, images: Images) -> Any:
        """As the loop gets them."""
        if isinstance(images, list):
            turned = images if self._turn is None else [image.transpose(2, 0, 1) for image in images]
            return turned if self._tensor is None else [self._tensor(image) for image in turned]
        if self._turn is not None:
            images = images.transpose(self._turn)  # cheaper than Tensor.permute
        return images if self._tensor is None else self._tensor(images)


def copy_images(images: Images) -> Images:
    """The same in ordinary memory."""
    return [image.copy() for image in images] if isinstance(images, list) else images.copy()


def keep_rows(images: Images, rows: npt.NDArray[np.bool_]) -> Images:
    """Without some rows."""
    return [image for image, keep in zip(images, rows) if keep] if isinstance(images, list) else images[rows]


def pad_images(images: Images, rows: int) -> Images:
    """Zeros behind the rows, up to that many."""
    if isinstance(images, list):
        return images + [np.zeros((0, 0, 0), np.uint8)] * (rows - len(images))
    more = np.zeros((rows, *images.shape[1:]), images.dtype)
    more[: len(images)] = images
    return more
