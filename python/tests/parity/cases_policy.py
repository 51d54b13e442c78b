"""Policies. Replay shows what they applied, with magnitudes; torchvision's own method applies it here."""

from __future__ import annotations

from typing import Any

from case import Case, Draws, Picture
from torchvision.transforms import v2


def _case(kind: str, **arguments: Any) -> Case:
    spelled = ", ".join(f"{name}={getattr(value, 'value', value)!r}" for name, value in arguments.items())
    op = getattr(v2, kind)(**arguments)

    def expect(picture: Picture, draws: Draws) -> Any:
        for tweak in draws[0]["ops"]:
            picture = op._apply_image_or_video_transform(
                picture, tweak["name"], tweak["magnitude"], interpolation=op.interpolation, fill=op._fill
            )
        return picture

    return Case(f"{kind}({spelled})", lambda: op, expect)


CASES = [
    _case("RandAugment"),
    _case("RandAugment", num_ops=4, magnitude=0),
    _case("RandAugment", num_ops=3, magnitude=30, fill=128),
    _case("RandAugment", num_ops=3, magnitude=14, interpolation="bilinear", fill=(124, 116, 104)),
    _case("RandAugment", num_ops=3, magnitude=5, num_magnitude_bins=10, interpolation="bicubic"),
    _case("TrivialAugmentWide"),
    _case("TrivialAugmentWide", num_magnitude_bins=7, interpolation="bilinear", fill=255),
    *(_case("AutoAugment", policy=policy) for policy in v2.AutoAugmentPolicy),
    _case("AutoAugment", policy=v2.AutoAugmentPolicy.SVHN, interpolation="bilinear", fill=[127]),
]
