"""Which transforms masks cannot follow: what nodes would refuse with the first batch is refused at construction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .._torchvision.timm_op import TimmOp
from ..errors import UnsupportedTransformError
from ..transforms._checks import name_of
from ..transforms._containers import Container
from ..transforms._learnt import CTAugment
from ..transforms._op import BehindToImage, FillsMasks, Op
from ..transforms._policies import Policy
from ..transforms._views import FiveCrop
from ..transforms._warp import RandomRotation

__all__ = ["check_followed"]


def check_followed(ops: Iterable[Op]) -> None:
    """Raises UnsupportedTransformError for an op that does not work on masks."""
    for op, filled in _walk_ops(ops, False):
        name = name_of(op)
        if isinstance(op, (Policy, CTAugment, FiveCrop, TimmOp)):
            raise UnsupportedTransformError(f"{name} does not work on masks: leave it out")
        if isinstance(op, RandomRotation) and op.expand:
            raise UnsupportedTransformError(
                "RandomRotation(expand=True): expand makes masks of another size than pictures, in torchvision too: "
                "leave it out"
            )
        fill = getattr(op, "fill", None)
        if not filled and isinstance(fill, Iterable) and len(set(fill)) > 1:
            raise UnsupportedTransformError(
                f"{name}: fill has three numbers, and masks have one: say what they get, like "
                'fill={tv_tensors.Mask: 255, "others": (1, 2, 3)}'
            )


def _walk_ops(ops: Iterable[Op], filled: bool) -> Iterator[tuple[Op, bool]]:
    """The ops, and those inside others; and whether a number is said that goes around masks."""
    for op in ops:
        if isinstance(op, Container):
            yield from _walk_ops(op.transforms, filled)
        elif isinstance(op, (BehindToImage, FillsMasks)):
            yield from _walk_ops((op.op,), filled or isinstance(op, FillsMasks))
        else:
            yield op, filled
