"""What a transform does to boxes, keypoints and masks of instances: a step for each of torchvision's objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._torchvision.convert import TARGET_ONLY
from .._torchvision.origin import is_v2
from ..errors import UnsupportedTransformError
from ..transforms._erasing import RandomErasing
from ..transforms._op import Op
from .compiler import recognise_leaf, walk_leaves
from .drawn import CONTAINERS

__all__ = ["MOVING", "TargetStep", "list_target_steps", "name_target_only"]

MOVING = (
    "CenterCrop",
    "Pad",
    "RandomAffine",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomPerspective",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShortestSize",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "ScaleJitter",
)
"""Classes of torchvision that move pictures, and boxes with them."""
STILL = (
    "ColorJitter",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "JPEG",
    "RandomAdjustSharpness",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomInvert",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomSolarize",
)
"""Those that leave boxes where they are."""


@dataclass(frozen=True)
class TargetStep:
    """One of them."""

    leaf: Any
    """torchvision's object."""
    place: int | None
    """Which of a sample's draws is its own; None: it draws nothing, and is called itself."""


def name_target_only(transform: Any) -> str | None:
    """The first transform in it, or inside of those, that does nothing to pictures, by its class."""
    inner = (part for leaf in walk_leaves(transform) for part in _walk_inside(leaf))
    return next((type(part).__name__ for part in inner if _is_target_only(part)), None)


def _is_target_only(leaf: Any) -> bool:
    return is_v2(leaf) and type(leaf).__name__ in TARGET_ONLY


def list_target_steps(transform: Any) -> tuple[TargetStep, ...]:
    """The steps, in order. Raises UnsupportedTransformError for what boxes cannot follow, by name."""
    steps: list[TargetStep] = []
    drawn = 0
    for leaf in walk_leaves(transform):
        if _is_target_only(leaf):
            steps.append(TargetStep(leaf, None))
            continue
        ours = recognise_leaf(leaf)
        if not isinstance(ours, (Op, RandomErasing)):
            continue
        for part in _walk_inside(leaf):
            _check_leaf(part)
        if type(leaf).__name__ in (*MOVING, *CONTAINERS):
            steps.append(TargetStep(leaf, drawn))
        drawn += not isinstance(ours, RandomErasing)  # whose draws are behind all others
    return tuple(steps)


def _walk_inside(leaf: Any) -> Iterator[Any]:
    """A transform, or those inside of it, however deep."""
    if type(leaf).__name__ not in CONTAINERS:
        yield leaf
        return
    for part in leaf.transforms:
        for inner in walk_leaves(part):
            yield from _walk_inside(inner)


def _check_leaf(leaf: Any) -> None:
    name = type(leaf).__name__
    if recognise_leaf(leaf) is None and not _is_target_only(leaf):
        return
    if not is_v2(leaf):
        raise UnsupportedTransformError(
            f"{type(leaf).__module__}.{name}: boxes are moved by torchvision's own objects: write "
            f"torchvision.transforms.v2.{name}"
        )
    if name in TARGET_ONLY:
        raise UnsupportedTransformError(f"{name} inside another transform: put it behind, as it works on boxes alone")
    if name not in (*MOVING, *STILL):
        raise UnsupportedTransformError(f"{name}: boxes and keypoints cannot follow it here: leave it out")
