"""transform= of albumentations: what nodes do of it, and the rest, which python= does. Nothing here imports it.

docs/decisions/0028-albumentations.md says which of its transforms are compiled, and why others are not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import transforms
from .._value_table import CHANNELS, VALUES, Pixels
from ..errors import UnsupportedTransformError
from ..transforms._op import Op, Pointwise

__all__ = ["Split", "split_transform"]

PACKAGE = "albumentations."
BORDERS = {0: "constant", 1: "edge", 2: "symmetric", 4: "reflect"}
"""OpenCV's numbers, and what torchvision calls the same."""


class Split(NamedTuple):
    """A transform in two."""

    transform: Any
    """What nodes do."""
    rest: Any
    """What python= does; None: nothing is left."""
    told: str
    """For explain; empty: the transform is none of albumentations."""


class _Table(Pointwise):
    """A step of albumentations on single values, as it is: called on a picture that has each of them."""

    def __init__(self, step: Any) -> None:
        self.step = step

    def __repr__(self) -> str:
        return repr(self.step)

    def apply(self, pixels: Pixels) -> Pixels:
        every = np.repeat(np.arange(VALUES, dtype=np.uint8)[None, :, None], CHANNELS, 2)
        made = self.step.apply(every)[0].T
        return Pixels(np.ascontiguousarray(made, np.float32), "float32")


def split_transform(transform: Any, masks: bool) -> Split:
    """Cuts off what nodes do of a transform of albumentations; any other transform stays whole.

    Raises UnsupportedTransformError where others follow it.
    """
    before, whole = _find_last(transform)
    if whole is None:
        return Split(transform, None, "")
    steps = _list_steps(whole)
    if steps is None:
        return Split(
            before, whole, "albumentations: all of it by python=, as it is no plain Compose of pictures and masks"
        )
    tail = [] if masks else _compile_tail(steps)
    made, count = _compile_steps(steps[: len(steps) - len(tail)], masks)
    if count + len(tail) == len(steps):
        return Split(
            [*before, *made, *tail], None, f"albumentations: all of it on nodes and at the last hop: {_names(steps)}"
        )
    if not count:
        return Split(before, whole, f"albumentations: all of it by python=, from {_names(steps[:1])} on")
    told = f"albumentations: {_names(steps[:count])} on nodes, from {_names(steps[count : count + 1])} on by python="
    rest = type(whole)(copy.deepcopy(steps[count:]))
    return Split([*before, *made], rest, told)


def _find_last(transform: Any) -> tuple[list[Any], Any]:
    """What comes before a transform of albumentations, and that; None where there is none."""
    parts = list(transform) if isinstance(transform, (list, tuple)) else [transform]
    places = [at for at, part in enumerate(parts) if type(part).__module__.startswith(PACKAGE)]
    if not places:
        return [], None
    if places != [len(parts) - 1]:
        other = parts[places[0] + 1]
        raise UnsupportedTransformError(
            f"{type(other).__name__} behind a transform of albumentations, which is done last: put it before"
        )
    return parts[:-1], parts[-1]


def _list_steps(whole: Any) -> list[Any] | None:
    """The transforms of a Compose that says nothing else; None for any other."""
    if type(whole).__name__ != "Compose" or not hasattr(whole, "transforms"):
        return [whole] if _p_of(whole) is not None and not hasattr(whole, "transforms") else None
    processors = getattr(whole, "processors", None)
    if whole.p != 1 or processors or getattr(whole, "_additional_targets", None) or getattr(whole, "save_key", None):
        return None
    return list(whole.transforms)


def _compile_tail(steps: list[Any]) -> list[Pointwise]:
    """Normalize and ToTensorV2 at the end."""
    if not steps or type(steps[-1]).__name__ != "ToTensorV2" or _p_of(steps[-1]) != 1:
        return []
    before = steps[-2] if len(steps) > 1 else None
    standard = type(before).__name__ == "Normalize" and getattr(before, "normalization", "") == "standard"
    plain = standard and _p_of(before) == 1
    return [transforms.ToImage(), _Table(before)] if plain else [transforms.ToImage()]


def _compile_steps(steps: list[Any], masks: bool) -> tuple[list[Op], int]:
    """What nodes do of the first ones, and how many these are."""
    made: list[Op] = []
    for count, step in enumerate(steps):
        build = _BUILDERS.get(type(step).__name__)
        op = build(step, masks) if build is not None and type(step).__module__.startswith(PACKAGE) else None
        if op is None:
            return made, count
        made.append(op)
    return made, len(steps)


def _p_of(step: Any) -> float | None:
    p = getattr(step, "p", None)
    return float(p) if isinstance(p, (int, float)) else None


def _names(steps: list[Any]) -> str:
    return ", ".join(type(step).__name__ for step in steps)


def _pad(step: Any, masks: bool) -> Op | None:
    padding, mode = step.padding, BORDERS.get(int(step.border_mode))
    sides = [padding] * 4 if isinstance(padding, int) else [*padding, *padding] if len(padding) == 2 else list(padding)
    given = step.fill if isinstance(step.fill, (list, tuple)) else [step.fill]
    fill = [int(value) for value in given if float(value).is_integer() and 0 <= value <= 255]
    same = step.fill_mask == step.fill or mode != "constant" or not masks
    if mode is None or len(fill) != len(given) or len(fill) not in (1, 3) or not same or _p_of(step) != 1:
        return None
    return transforms.Pad(sides, fill[0] if len(fill) == 1 else tuple(fill), mode)


def _crop(step: Any, masks: bool) -> Op | None:
    if step.pad_if_needed or _p_of(step) != 1:
        return None
    return transforms.RandomCrop((step.height, step.width))


_BUILDERS: dict[str, Callable[[Any, bool], Op | None]] = {
    "HorizontalFlip": lambda step, masks: transforms.RandomHorizontalFlip(step.p),
    "VerticalFlip": lambda step, masks: transforms.RandomVerticalFlip(step.p),
    "Pad": _pad,
    "RandomCrop": _crop,
    "NoOp": lambda step, masks: transforms.Identity(),
}
