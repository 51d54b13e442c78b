"""The first generation, torchvision.transforms: its own functions on PIL images."""

from __future__ import annotations

from typing import Any

from case import Case, Draws, Picture
from cases_warp import ALL
from torchvision import transforms
from torchvision.transforms import autoaugment

F = transforms.functional


def _case(kind: str, function: str, **arguments: Any) -> Case:
    op = getattr(transforms, kind)(**arguments)
    fixed = {name: getattr(op, name) for name in ("expand", "center", "fill") if hasattr(op, name)}

    def expect(picture: Picture, draws: Draws) -> Any:
        drawn = {name: value for name, value in draws[0].items() if name not in ("op", "applied")}
        return getattr(F, function)(picture, **drawn, **fixed, interpolation=op.interpolation)

    spelled = ", ".join(f"{name}={getattr(value, 'value', value)!r}" for name, value in arguments.items())
    # the matrix of an affine warp sums in another order
    most = 1 if function == "affine" and op.interpolation is transforms.InterpolationMode.BILINEAR else 0
    return Case(f"transforms.{kind}({spelled})", lambda: op, expect, most=most)


def _jitter(picture: Picture, draws: Draws) -> Any:
    names = ("brightness", "contrast", "saturation", "hue")
    for index in draws[0]["fn_idx"]:
        picture = getattr(F, f"adjust_{names[index]}")(picture, draws[0][f"{names[index]}_factor"])
    return picture


def _policy(op: Any) -> Any:
    """What the first generation's own function makes of the ops that were drawn."""

    def expect(picture: Picture, draws: Draws) -> Any:
        for tweak in draws[0]["ops"]:
            fill = None if op.fill is None else list(op.fill)
            picture = autoaugment._apply_op(picture, tweak["name"], tweak["magnitude"], op.interpolation, fill)
        return picture

    return expect


def _policies(*ops: Any) -> list[Case]:
    return [Case(f"transforms.{op}", lambda op=op: op, _policy(op)) for op in ops]


FILTERS = (transforms.InterpolationMode.NEAREST, transforms.InterpolationMode.BILINEAR)

CASES = [
    *(_case("RandomAffine", "affine", degrees=30, interpolation=name, **ALL) for name in FILTERS),
    _case("RandomAffine", "affine", degrees=(-180, 180), center=(30, 40), fill=(255, 254, 0), **ALL),
    _case("RandomAffine", "affine", degrees=0, translate=(0.1, 0.1), fill=7),
    *(_case("RandomRotation", "rotate", degrees=180, interpolation=name) for name in FILTERS),
    _case("RandomRotation", "rotate", degrees=45, expand=True, fill=(255, 0, 127)),
    Case("transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)", lambda: transforms.ColorJitter(0.4, 0.4, 0.4, 0.1), _jitter),
    *_policies(
        transforms.RandAugment(magnitude=8),
        transforms.RandAugment(num_ops=3, magnitude=20),
        transforms.RandAugment(magnitude=3, num_magnitude_bins=10),
        transforms.TrivialAugmentWide(),
        *(transforms.AutoAugment(policy) for policy in autoaugment.AutoAugmentPolicy),
    ),
]
