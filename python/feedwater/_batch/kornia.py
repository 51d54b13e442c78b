"""Kornia's modules as batch_transform=: they get the pictures, and masks where they say so. Nothing here imports it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from .._plan.output import IMAGE, MASK

__all__ = ["apply_kornia", "check_kornia", "is_kornia"]

PICTURES = ("input", "image")
"""What kornia's data_keys call pictures."""
MIXES = "kornia.augmentation._2d.mix"
"""Where those are that mix labels too."""


def is_kornia(transform: Any) -> bool:
    """Whether it is a module of kornia, or of a class derived from one."""
    return any(base.__module__.startswith("kornia.") for base in type(transform).__mro__)


def _keys_of(transform: Any) -> list[str]:
    """What an AugmentationSequential is told that its arguments are; pictures alone for anything else."""
    keys = getattr(transform, "data_keys", None) or ["input"]
    return [str(getattr(key, "name", key)).lower() for key in keys]


def check_kornia(transform: Any, names: Mapping[str, str], masks: bool) -> None:
    """Raises ValueError where it needs what batches have not, or would leave masks where they are."""
    kind = type(transform).__name__
    if IMAGE not in names:
        raise ValueError(f"batch_transform={kind} works on pictures: fields needs image")
    keys = _keys_of(transform)
    other = next((key for key in keys if key not in (*PICTURES, MASK)), None)
    if other is not None or any(base.__module__.startswith(MIXES) for base in type(transform).__mro__):
        raise ValueError(
            f"batch_transform={kind} works on {other or 'labels'} too: call it in a function (batch, rng) -> batch"
        )
    if masks != (MASK in keys) and (masks or MASK in keys):
        raise ValueError(
            f"batch_transform={kind}: masks= moves with it only in AugmentationSequential(…, data_keys="
            '["input", "mask"]), and that needs masks='
        )


def apply_kornia(transform: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """What it makes of pictures and masks, by our names; views are given to it one by one."""
    torch = importlib.import_module("torch")
    images, masks = fields[IMAGE], fields.get(MASK)
    several = isinstance(images, list)
    for image in images if several else [images]:
        if image.ndim != 4:
            raise TypeError(
                f"batch_transform={type(transform).__name__} cannot work on pictures of different sizes: end the "
                "transform with CenterCrop(size) or Resize((h, w))"
            )
        if not image.dtype.is_floating_point:
            raise TypeError(
                f"batch_transform={type(transform).__name__} cannot work on images of {image.dtype}: put "
                "ToDtype(torch.float32, scale=True) into the transform"
            )
    keys = _keys_of(transform)
    with torch.no_grad():
        if several:
            pairs = zip(images, [None] * len(images) if masks is None else masks)
            made = [_call(transform, keys, image, mask) for image, mask in pairs]
            moved = {**fields, IMAGE: [image for image, _ in made]}
            return moved if masks is None else {**moved, MASK: [mask for _, mask in made]}
        image, mask = _call(transform, keys, images, masks)
    return {**fields, IMAGE: image} if mask is None else {**fields, IMAGE: image, MASK: mask}


def _call(transform: Any, keys: list[str], image: Any, mask: Any) -> tuple[Any, Any]:
    given = [mask.unsqueeze(1).to(image.dtype) if key == MASK else image for key in keys]
    made = transform(*given)
    values = dict(zip(keys, made if isinstance(made, (list, tuple)) else [made], strict=True))
    moved = next(values[key] for key in keys if key in PICTURES)
    if MASK not in values:
        return moved, None
    return moved, values[MASK].squeeze(1).round().to(mask.dtype)
