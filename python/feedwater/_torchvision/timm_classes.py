"""timm's own transforms: which of ours each means. They are recognised by their exact class, as torchvision's are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import transforms
from ..transforms._op import Op, Pointwise
from . import timm_policies
from .timm_sizes import SIZES

__all__ = ["convert_timm", "is_timm"]

_HOMES = ("timm.data.transforms", "timm.data.random_erasing", timm_policies.HOME)
_Step = Op | Pointwise


def is_timm(kind: type) -> bool:
    """Whether a class is of timm's transforms."""
    return kind.__module__ in _HOMES


def convert_timm(leaf: Any) -> _Step:
    """The same transform of ours. Raises LookupError with the reason if there is none."""
    name = type(leaf).__name__
    build = timm_policies.POLICIES.get(name) if type(leaf).__module__ == timm_policies.HOME else _BUILDERS.get(name)
    if build is None:
        raise LookupError("not there yet")
    try:
        return build(leaf)
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise LookupError(f"an argument of it is none that timm's own strings and factories give ({error})") from None


def _resized_crop(leaf: Any) -> _Step:
    """With several filters timm draws one of them for each picture; it resizes PIL images, which are antialiased."""
    modes = leaf.interpolation
    crops = [
        transforms.RandomResizedCrop(tuple(leaf.size), tuple(leaf.scale), tuple(leaf.ratio), mode, True)
        for mode in (modes if isinstance(modes, (tuple, list)) else (modes,))
    ]
    return crops[0] if len(crops) == 1 else transforms.RandomChoice(crops)


def _erasing(leaf: Any) -> _Step:
    if leaf.rand_color:
        raise LookupError("mode='rand', one random colour for a rectangle, is not there; 'const' and 'pixel' are")
    if (leaf.min_count, leaf.max_count) != (1, 1):
        raise LookupError(f"several rectangles (max_count={leaf.max_count}) are not there; one is")
    if leaf.num_splits > 1:
        raise LookupError(f"num_splits={leaf.num_splits} leaves out a part of each batch, which is not there")
    ratio = tuple(math.exp(value) for value in leaf.log_aspect_ratio)
    value = "random" if leaf.per_pixel else 0
    return transforms.RandomErasing(leaf.probability, (leaf.min_area, leaf.max_area), ratio, value)


_BUILDERS: dict[str, Callable[[Any], _Step]] = {
    "MaybeToTensor": lambda leaf: transforms.ToTensor(),
    "MaybePILToTensor": lambda leaf: transforms.PILToTensor(),
    "ToNumpy": lambda leaf: transforms.PILToTensor(),
    "RandomResizedCropAndInterpolation": _resized_crop,
    "RandomErasing": _erasing,
    **SIZES,
}
