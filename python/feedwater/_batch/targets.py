"""Boxes, keypoints and masks of instances, moved as their pictures were: torchvision's own objects with what was drawn.

Nodes tell what they drew for each sample. The arithmetic is torchvision's, on this machine, for it is a few numbers.
"""

from __future__ import annotations

import copy
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from .._common.torch_modes import on_cpu
from .._order.steps import Indices
from .._plan.drawn import parameters_of, walk_drawn
from .._plan.target_steps import MOVING, TargetStep
from ..errors import DataError

__all__ = ["Targets"]

KINDS = ("BoundingBoxes", "KeyPoints", "Mask")
"""torchvision's types of what moves."""
_ROTATED = ("XYWHR", "CXCYWHR", "XYXYXYXY")


class Targets:
    """The targets of a data set, a dict for each sample, and what a transform does to them."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], steps: tuple[TargetStep, ...]) -> None:
        if isinstance(rows, (str, bytes, Mapping)) or not hasattr(rows, "__getitem__") or not hasattr(rows, "__len__"):
            raise TypeError(
                f"targets={type(rows).__name__}: pass a sequence with a dict for each sample, in the data set's order: "
                '[{"boxes": …, "labels": …}, …]'
            )
        if "torch" not in sys.modules:
            raise TypeError("targets= needs torch and torchvision, whose tensors they are: import torch before")
        self._rows, self._steps = rows, steps

    def check_count(self, samples: int) -> None:
        """Raises DataError unless there is one for each sample of the data set."""
        if len(self._rows) != samples:
            raise DataError(f"targets= has {len(self._rows):,} dicts, and the data {samples:,} samples: each needs one")

    def make_targets(self, indices: Indices, drawn: Sequence[bytes]) -> list[dict[str, Any]]:
        """The targets of a batch's samples, by what was drawn for each; empty where a row holds no sample."""
        return on_cpu(partial(self._make_all, indices, drawn))

    def _make_all(self, indices: Indices, drawn: Sequence[bytes]) -> list[dict[str, Any]]:
        return [self._make_one(int(at), text) if text else {} for at, text in zip(indices, drawn, strict=True)]

    def _make_one(self, index: int, text: bytes) -> dict[str, Any]:
        told = json.loads(text)
        height, width = told["size"]
        row = self._rows[index]
        if not isinstance(row, Mapping):
            raise DataError(f"targets[{index}] is {row!r:.60}: needs a dict")
        target = {name: _read_value(f"targets[{index}]", name, value, (height, width)) for name, value in row.items()}
        for step in self._steps:
            if step.place is None:
                target = _call_leaf(step.leaf, target)
            else:
                for leaf, draw in walk_drawn(step.leaf, told["draws"][step.place]):
                    target = _move_target(leaf, draw, target)
        return target


def _read_value(where: str, name: str, value: Any, size: tuple[int, int]) -> Any:
    """A value of a target, the program's own left alone: boxes as torchvision has them."""
    torch, kinds = sys.modules["torch"], importlib.import_module("torchvision.tv_tensors")
    kind = type(value).__name__
    if kind in KINDS and isinstance(value, torch.Tensor):
        own = tuple(getattr(value, "canvas_size", None) or value.shape[-2:])
        if own != size:
            raise DataError(f"{where}[{name!r}] is for a picture of {own}, height and width, and that has {size}")
        if kind == "BoundingBoxes" and value.format.name in _ROTATED:
            raise DataError(f"{where}[{name!r}]: rotated boxes, {value.format.name}, are not there")
        return kinds.wrap(value.clone(), like=value)
    if isinstance(value, torch.Tensor) and name != "boxes":
        return value.clone()
    if name == "boxes":
        boxes = torch.as_tensor(value, dtype=torch.float32).reshape(-1, 4).clone()
        return kinds.BoundingBoxes(boxes, format="XYXY", canvas_size=size)
    return copy.copy(value)


def _move_target(leaf: Any, draw: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    """What moves, moved as the picture was; the rest as it is."""
    if type(leaf).__name__ not in MOVING:
        return target
    drawn = parameters_of(draw)
    return {
        name: leaf.transform(value, drawn) if type(value).__name__ in KINDS else value for name, value in target.items()
    }


def _call_leaf(leaf: Any, target: dict[str, Any]) -> dict[str, Any]:
    """What a transform that draws nothing makes of a target: as scripts call it, beside a picture."""
    torch, kinds = sys.modules["torch"], importlib.import_module("torchvision.tv_tensors")
    if not any(type(value).__name__ in KINDS for value in target.values()):
        return target
    picture = kinds.Image(torch.empty(3, 1, 1, dtype=torch.uint8))
    made: dict[str, Any] = leaf(picture, target)[1]
    return made
