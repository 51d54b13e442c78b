"""torchvision's transforms of colour to ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..transforms import _colour, _lossy
from ..transforms._op import Op

__all__ = ["BUILDERS"]

BUILDERS: dict[str, Callable[[Any], Op]] = {
    "ColorJitter": lambda leaf: _colour.ColorJitter(leaf.brightness, leaf.contrast, leaf.saturation, leaf.hue),
    "GaussianBlur": lambda leaf: _lossy.GaussianBlur(tuple(leaf.kernel_size), tuple(leaf.sigma)),
    "GaussianNoise": lambda leaf: _lossy.GaussianNoise(leaf.mean, leaf.sigma, leaf.clip),
    "Grayscale": lambda leaf: _colour.Grayscale(leaf.num_output_channels),
    "JPEG": lambda leaf: _lossy.JPEG(tuple(leaf.quality)),
    "RandomAdjustSharpness": lambda leaf: _colour.RandomAdjustSharpness(leaf.sharpness_factor, leaf.p),
    "RandomAutocontrast": lambda leaf: _colour.RandomAutocontrast(leaf.p),
    "RandomChannelPermutation": lambda leaf: _colour.RandomChannelPermutation(),
    "RandomEqualize": lambda leaf: _colour.RandomEqualize(leaf.p),
    "RandomGrayscale": lambda leaf: _colour.RandomGrayscale(leaf.p),
    "RandomInvert": lambda leaf: _colour.RandomInvert(leaf.p),
    "RandomPhotometricDistort": lambda leaf: _colour.RandomPhotometricDistort(
        leaf.brightness, leaf.contrast, leaf.saturation, leaf.hue, leaf.p
    ),
    "RandomPosterize": lambda leaf: _colour.RandomPosterize(leaf.bits, leaf.p),
    "RandomSolarize": lambda leaf: _colour.RandomSolarize(leaf.threshold, leaf.p),
}
