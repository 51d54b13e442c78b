"""What transforms are: steps that nodes run, and steps on single values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import _value_table

__all__ = ["BehindToImage", "Op", "Pointwise"]


class Op:
    """A step that nodes run."""

    alike: ClassVar[bool] = False
    """Whether it does the same to tensors, as it only moves values, and sets some to paints."""
    paints: ClassVar[tuple[float, ...]] = ()
    """The colour: one number for all channels or three, or none."""
    crops: ClassVar[int] = 1
    """How many pictures it makes of one."""
    same: ClassVar[bool] = False
    """Whether it makes the same of 8-bit tensors."""

    def on_tensor(self) -> Op:
        """The step where pictures are 8-bit tensors."""
        return self if self.same or self.alike else BehindToImage(self)

    def plan(self) -> dict[str, Any]:
        """The step as the plan says it."""
        raise NotImplementedError


@dataclass(frozen=True)
class BehindToImage(Op):
    """A step behind ToImage, where torchvision's arithmetic is another one."""

    op: Op

    def plan(self) -> dict[str, Any]:
        return {**self.op.plan(), "dialect": "tensor"}


@dataclass(frozen=True)
class FillsMasks(Op):
    """A step that puts another value around masks than around pictures."""

    op: Op
    mask_fill: int | None
    """None for what a mask cannot hold: without masks, nobody asks for it."""

    def plan(self) -> dict[str, Any]:
        return self.op.plan() | ({} if self.mask_fill is None else {"mask_fill": self.mask_fill})


class Pointwise:
    """A step on single values, behind the pictures' way through the nodes."""

    def apply(self, pixels: _value_table.Pixels) -> _value_table.Pixels:
        """What it does to values; in the arithmetic of the type they have."""
        raise NotImplementedError
