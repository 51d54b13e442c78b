"""What transforms are: steps that nodes run, and steps on single values."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _table

__all__ = ["Op", "Pointwise"]


class Op:
    """A step that nodes run."""

    fixed_size: ClassVar[bool] = False
    alike: ClassVar[bool] = False
    """Whether it does the same to tensors, as it only moves values, and sets some to paints."""
    paints: ClassVar[tuple[int, ...]] = ()

    def plan(self) -> dict[str, Any]:
        """The step as the plan says it."""
        raise NotImplementedError


class Pointwise:
    """A step on single values, behind the pictures' way through the nodes."""

    def apply(self, pixels: _table.Pixels) -> _table.Pixels:
        """What it does to values; in the arithmetic of the type they have."""
        raise NotImplementedError
