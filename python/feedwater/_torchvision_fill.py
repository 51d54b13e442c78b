"""torchvision's fill by type of input, like {tv_tensors.Image: 127, tv_tensors.Mask: 255, "others": 0}."""

from __future__ import annotations

from typing import Any

from .errors import UnsupportedTransformError

__all__ = ["of_masks", "of_pictures"]


def of_pictures(fill: Any, *, on_tensor: bool = False) -> Any:
    """What pictures get: PIL images, or those that ToImage makes."""
    if not isinstance(fill, dict):
        return fill
    home = "torchvision" if on_tensor else "PIL"
    for kind, value in fill.items():
        if isinstance(kind, type) and kind.__name__ == "Image" and kind.__module__.split(".")[0] == home:
            return value
    return fill.get("others")


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
    value = 0 if value is None else value
    if not isinstance(value, (int, float)) or not 0 <= value <= 255 or value != int(value):
        raise UnsupportedTransformError(f"fill={value!r} for masks: needs a whole number from 0 to 255")
    return int(value)
