"""Crops, flips and sizes."""

from __future__ import annotations

from typing import Any

from case import Case, Draws, Picture
from torchvision.transforms import v2

F = v2.functional


def _resized_crop(picture: Picture, draws: Draws) -> Any:
    box = [draws[0][name] for name in ("top", "left", "height", "width")]
    return F.resized_crop(picture, *box, [224, 224], antialias=True)


def _flip(picture: Picture, draws: Draws) -> Any:
    return F.horizontal_flip(picture) if draws[0]["applied"] else picture


CASES = [
    Case("RandomResizedCrop(224)", lambda: v2.RandomResizedCrop(224), _resized_crop),
    Case("RandomHorizontalFlip()", lambda: v2.RandomHorizontalFlip(), _flip),
    Case("Resize(256)", lambda: v2.Resize(256), lambda picture, _: F.resize(picture, [256], antialias=True)),
    Case("CenterCrop(224)", lambda: v2.CenterCrop(224), lambda picture, _: F.center_crop(picture, [224, 224])),
]
