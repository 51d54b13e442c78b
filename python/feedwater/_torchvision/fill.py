"""torchvision's fill by type of input, like {tv_tensors.Image: 127, tv_tensors.Mask: 255, "others": 0}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._common.numbers import to_number
from ..errors import UnsupportedTransformError

__all__ = ["PIL_IMAGE", "TENSOR", "by_kind", "kind_behind", "of_masks", "of_pictures"]


PIL_IMAGE, TV_IMAGE, TENSOR = ("PIL", "Image"), ("torchvision", "Image"), ("torch", "Tensor")
"""What pictures are on their way, by package and name: at first, behind ToImage, behind PILToTensor or ToTensor."""
MADE = {"ToImage": TV_IMAGE, "PILToTensor": TENSOR, "ToTensor": TENSOR, "ToPureTensor": TENSOR}


def kind_behind(tail: Sequence[Any]) -> tuple[str, str]:
    """What a picture is behind steps on values."""
    made = [MADE[type(leaf).__name__] for leaf in tail if type(leaf).__name__ in MADE]
    return made[-1] if made else PIL_IMAGE


def by_kind(values: Any, kind: tuple[str, str]) -> Any:
    """What values, by type of input, say of one; what is said of the others if nothing is said of it."""
    for named, value in values.items():
        if isinstance(named, type) and (named.__module__.split(".")[0], named.__name__) == kind:
            return value
    return values.get("others")


def of_pictures(fill: Any, kind: tuple[str, str] = PIL_IMAGE) -> Any:
    """What pictures get."""
    return by_kind(fill, kind) if isinstance(fill, dict) else fill


def of_masks(fill: Any, pictures: Any) -> int | None:
    """What masks get; None: the same as pictures."""
    if not isinstance(fill, dict):
        return None
    named = {getattr(kind, "__name__", kind): value for kind, value in fill.items()}
    value = named.get("Mask", named.get("others"))
    if value == pictures:
        return None
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    plain = 0 if value is None else to_number(value)
    if plain is None or not 0 <= plain <= 255 or plain != int(plain):
        raise UnsupportedTransformError(f"fill={value!r} for masks: needs a whole number from 0 to 255")
    return int(plain)
