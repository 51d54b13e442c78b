"""timm's classes that resize, crop and pad: which op of ours each means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import transforms
from .._common.numbers import to_whole
from ..transforms._checks import check_number, to_positive
from ..transforms._op import Op
from ..transforms._sizes import SIDE, check_filter, check_look, plan_look
from .timm_op import TimmOp

__all__ = ["SIZES"]


@dataclass(frozen=True)
class TimmResize(TimmOp):
    """ResizeKeepRatio: the picture covers `size` or fits in it, with a random scale and aspect beside that."""

    size: tuple[int, int]
    longest: float
    interpolation: Any
    random_scale_prob: float
    random_scale_range: tuple[float, float]
    random_scale_area: bool
    random_aspect_prob: float
    random_aspect_range: tuple[float, float]

    name = "ResizeKeepRatio"

    def __post_init__(self) -> None:
        check_filter(self)
        for argument in ("longest", "random_scale_prob", "random_aspect_prob"):
            check_number(self, argument, 0, 1)


@dataclass(frozen=True)
class TimmCrop(TimmOp):
    """CenterCropOrPad, or RandomCropOrPad."""

    size: tuple[int, int]
    random: bool
    fill: Any
    padding_mode: str

    def __post_init__(self) -> None:
        check_look(self)

    @property
    def name(self) -> str:
        return "RandomCropOrPad" if self.random else "CenterCropOrPad"

    @property
    def paints(self) -> tuple[float, ...]:  # type: ignore[override]
        return self.fill if self.padding_mode == "constant" else ()

    def plan(self) -> dict[str, Any]:
        return {**super().plan(), **plan_look(self)}


@dataclass(frozen=True)
class TimmTrim(TimmOp):
    """TrimBorder."""

    border_size: int

    name = "TrimBorder"


def _resize(leaf: Any) -> Op:
    """With several filters timm draws one of them for each picture."""
    modes = leaf.interpolation
    resizes = [
        TimmResize(
            _sides(leaf.size),
            leaf.longest,
            mode,
            leaf.random_scale_prob,
            _ends("random_scale_range", leaf.random_scale_range, leaf.random_scale_prob),
            bool(leaf.random_scale_area),
            leaf.random_aspect_prob,
            _ends("random_aspect_range", leaf.random_aspect_range, leaf.random_aspect_prob),
        )
        for mode in (modes if isinstance(modes, (tuple, list)) else (modes,))
    ]
    return resizes[0] if len(resizes) == 1 else transforms.RandomChoice(resizes)


def _crop(leaf: Any) -> Op:
    random = type(leaf).__name__ == "RandomCropOrPad"
    numbers = leaf.fill if isinstance(leaf.fill, (tuple, list)) else (leaf.fill,)
    if leaf.padding_mode == "constant" and not all(type(number) in (int, float) for number in numbers):
        raise LookupError(f"fill={leaf.fill!r} is not of Python's own numbers, which Pillow takes for another colour")
    return TimmCrop(_sides(leaf.size), random, leaf.fill, leaf.padding_mode)


def _trim(leaf: Any) -> Op:
    border = to_whole(leaf.border_size)
    if border is None or not 0 <= border < SIDE:
        raise LookupError(f"border_size={leaf.border_size!r} is not a whole number from 0 on")
    return TimmTrim(border)


def _sides(size: Any) -> tuple[int, int]:
    """Height and width. timm counts with fractions too, which no picture has."""
    sides = tuple(map(to_positive, size))
    if len(sides) != 2 or not all(side and side < SIDE for side in sides):
        raise LookupError(f"size={size!r} is not of two whole numbers from 1 on")
    return sides  # type: ignore[return-value]


def _ends(argument: str, values: Any, probability: float) -> tuple[float, float]:
    """The ends of a range, in order. Without a probability nobody asks for them."""
    ends = tuple(sorted(map(float, values))) if probability else (1.0, 1.0)
    if len(ends) != 2 or not 1 / 1024 <= ends[0] <= ends[1] <= SIDE:
        raise LookupError(f"{argument}={values!r} is not of two positive numbers")
    return ends


SIZES: dict[str, Callable[[Any], Op]] = {
    "CenterCropOrPad": _crop,
    "RandomCropOrPad": _crop,
    "ResizeKeepRatio": _resize,
    "TrimBorder": _trim,
}
"""What makes an op of ours of each class."""
