"""Colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from case import Case, Draws, Picture
from torchvision.transforms import v2

F = v2.functional


def when_applied(change: Callable[[Picture], Any]) -> Callable[[Picture, Draws], Any]:
    """What a function makes of the picture if the draw says so."""
    return lambda picture, draws: change(picture) if draws[0]["applied"] else picture


def jitter(picture: Picture, draws: Draws) -> Any:
    """ColorJitter, with what was drawn."""
    changes = {0: "brightness", 1: "contrast", 2: "saturation", 3: "hue"}
    for index in draws[0]["fn_idx"]:
        factor = draws[0][f"{changes[index]}_factor"]
        if factor is not None:
            picture = getattr(F, f"adjust_{changes[index]}")(picture, factor)
    return picture


def distorted(picture: Picture, draws: Draws) -> Any:
    """RandomPhotometricDistort, with what was drawn."""
    draw = draws[0]
    names = ["brightness", "contrast", "saturation", "hue"]
    if not draw["contrast_before"]:
        names = ["brightness", "saturation", "hue", "contrast"]
    for name in names:
        if draw[f"{name}_factor"] is not None:
            picture = getattr(F, f"adjust_{name}")(picture, draw[f"{name}_factor"])
    permutation = draw["channel_permutation"]
    return picture if permutation is None else F.permute_channels(picture, permutation)


def _jitter(spelled: str, **arguments: Any) -> Case:
    return Case(f"ColorJitter({spelled})", lambda: v2.ColorJitter(**arguments), jitter)


def _random(name: str, change: Callable[..., Any], *arguments: Any, **named: Any) -> Case:
    spelled = ", ".join([*map(str, arguments), *(f"{key}={value}" for key, value in named.items())])
    return Case(
        f"{name}({spelled})",
        lambda: getattr(v2, name)(*arguments, **named),
        when_applied(lambda picture: change(picture, *arguments)),
    )


def _blur(spelled: str, kernel: Any, **arguments: Any) -> Case:
    sizes = [kernel, kernel] if isinstance(kernel, int) else list(kernel)
    return Case(
        f"GaussianBlur({spelled})",
        lambda: v2.GaussianBlur(kernel, **arguments),
        lambda picture, draws: F.gaussian_blur(picture, sizes, draws[0]["sigma"]),
    )


def _jpeg(picture: Picture, draws: Draws) -> Any:
    return F.jpeg(picture, draws[0]["quality"])


def _grey(picture: Picture) -> Any:
    return F.rgb_to_grayscale(picture, num_output_channels=3)


CASES = [
    _jitter("0.4, 0.4, 0.4, 0.1", brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1),
    _jitter("0.8, 0.8, 0.8, 0.2", brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2),
    _jitter("brightness=0.4", brightness=0.4),
    _jitter("brightness=[0, 0]", brightness=[0, 0]),
    _jitter("brightness=[0, 6]", brightness=[0, 6]),
    _jitter("contrast=0.4", contrast=0.4),
    _jitter("contrast=[0, 0]", contrast=[0, 0]),
    _jitter("contrast=[1.5, 8]", contrast=[1.5, 8]),
    _jitter("saturation=0.4", saturation=0.4),
    _jitter("saturation=[0, 0]", saturation=[0, 0]),
    _jitter("saturation=[1.5, 12]", saturation=[1.5, 12]),
    _jitter("hue=0.1", hue=0.1),
    _jitter("hue=0.5", hue=0.5),
    _jitter("hue=[-0.5, -0.5]", hue=[-0.5, -0.5]),
    _jitter("hue=[0.0005, 0.001]", hue=[0.0005, 0.001]),
    _jitter("contrast=0.9, hue=[0.5, 0.5]", contrast=0.9, hue=[0.5, 0.5]),
    Case("Grayscale(3)", lambda: v2.Grayscale(3), lambda picture, _: _grey(picture)),
    _random("RandomGrayscale", _grey),
    _random("RandomGrayscale", _grey, p=0.6),
    _random("RandomSolarize", F.solarize, 128),
    _random("RandomSolarize", F.solarize, 0, p=1),
    _random("RandomSolarize", F.solarize, 254.5, p=1),
    _random("RandomSolarize", F.solarize, 300, p=1),
    *(_random("RandomPosterize", F.posterize, bits, p=1) for bits in (1, 2, 4, 7, 8)),
    _random("RandomPosterize", F.posterize, 3),
    _random("RandomInvert", F.invert),
    _random("RandomEqualize", F.equalize),
    _random("RandomEqualize", F.equalize, p=1),
    _random("RandomAutocontrast", F.autocontrast),
    _random("RandomAutocontrast", F.autocontrast, p=1),
    _random("RandomAdjustSharpness", F.adjust_sharpness, 2),
    _blur("3", 3),
    _blur("5, sigma=(0.1, 2)", 5, sigma=(0.1, 2.0)),
    _blur("9, sigma=(0.1, 5)", 9, sigma=(0.1, 5.0)),
    _blur("(7, 3)", (7, 3)),
    _blur("23", 23),
    *(
        Case(f"JPEG({quality})", lambda quality=quality: v2.JPEG(quality), _jpeg)
        for quality in (1, 10, 50, 75, 95, 100, (1, 100))
    ),
    Case("RandomPhotometricDistort()", lambda: v2.RandomPhotometricDistort(), distorted),
    Case("RandomPhotometricDistort(p=1)", lambda: v2.RandomPhotometricDistort(p=1), distorted),
    Case(
        "RandomChannelPermutation()",
        lambda: v2.RandomChannelPermutation(),
        lambda picture, draws: F.permute_channels(picture, draws[0]["permutation"]),
    ),
    *(_random("RandomAdjustSharpness", F.adjust_sharpness, factor, p=1) for factor in (0, 0.3, 1, 1.7, 10)),
]
