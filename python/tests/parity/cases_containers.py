"""Transforms with transforms inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from case import Case, Draws, Picture
from cases_colour import jitter
from torchvision.transforms import v2

F = v2.functional

OPS: dict[str, Callable[[Picture, dict[str, Any]], Any]] = {
    "ColorJitter": lambda picture, draw: jitter(picture, [draw]),
    "RandomGrayscale": lambda picture, _: F.rgb_to_grayscale(picture, num_output_channels=3),
    "RandomInvert": lambda picture, _: F.invert(picture),
    "RandomHorizontalFlip": lambda picture, _: F.horizontal_flip(picture),
    "RandomSolarize": lambda picture, _: F.solarize(picture, 128),
    "RandomEqualize": lambda picture, _: F.equalize(picture),
    "GaussianBlur": lambda picture, draw: F.gaussian_blur(picture, [23, 23], draw["sigma"]),
    "Identity": lambda picture, _: picture,
    "RandomResizedCrop": lambda picture, draw: F.resized_crop(
        picture, *(draw[name] for name in ("top", "left", "height", "width")), [224, 224], antialias=True
    ),
}
"""What one draw of an op does; arguments that are not drawn are those of the cases."""


def replayed(picture: Picture, draws: Draws) -> Any:
    """What all draws do, those inside others too."""
    for draw in draws:
        if "transforms" in draw:
            picture = replayed(picture, draw["transforms"])
        elif draw["applied"]:
            picture = OPS[draw["op"]](picture, draw)
    return picture


def _simclr() -> Any:
    """The ops of contrastive training."""
    return v2.Compose(
        [
            v2.RandomResizedCrop(224),
            v2.RandomHorizontalFlip(),
            v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
            v2.RandomGrayscale(0.2),
            v2.RandomApply([v2.GaussianBlur(23)]),
            v2.RandomSolarize(128, 0.2),
        ]
    )


CASES = [
    Case("RandomApply([ColorJitter(0.4, 0.4)], p=0.5)", lambda: v2.RandomApply([v2.ColorJitter(0.4, 0.4)]), replayed),
    Case(
        "RandomChoice([RandomInvert(1), Identity(), Compose([RandomSolarize(128, 1), RandomHorizontalFlip(1)])])",
        lambda: v2.RandomChoice(
            [
                v2.RandomInvert(1),
                v2.Identity(),
                v2.Compose([v2.RandomSolarize(128, 1), v2.RandomHorizontalFlip(1)]),
            ]
        ),
        replayed,
    ),
    Case(
        "RandomOrder([ColorJitter(contrast=0.5), RandomEqualize(), RandomApply([RandomGrayscale(0.5)])])",
        lambda: v2.RandomOrder(
            [v2.ColorJitter(contrast=0.5), v2.RandomEqualize(), v2.RandomApply([v2.RandomGrayscale(0.5)])]
        ),
        replayed,
    ),
    Case("the views of SimCLR and BYOL", _simclr, replayed),
]
