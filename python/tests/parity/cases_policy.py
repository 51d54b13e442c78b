"""Policies. Replay shows what they applied, with magnitudes; torchvision's own method applies it here."""

from __future__ import annotations

from typing import Any

import torch
from case import Case, Draws, Picture
from torchvision.transforms import v2

torch.set_num_threads(1)  # torch's mean grey of a large tensor, in adjust_contrast, depends on how many there are


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


def _tensor(kind: str, **arguments: Any) -> Case:
    """The same behind ToImage."""
    case, op = _case(kind, **arguments), getattr(v2, kind)(**arguments)

    def expect(picture: Picture, draws: Draws) -> Any:
        image = v2.functional.to_image(picture)
        for tweak in draws[0]["ops"]:
            image = op._apply_image_or_video_transform(
                image, tweak["name"], tweak["magnitude"], interpolation=op.interpolation, fill=op._fill
            )
        return image.permute(1, 2, 0).numpy()

    return Case(f"ToImage(), {case.name}", lambda: v2.Compose([v2.ToImage(), op]), expect, "tensor")


def _mix(**arguments: Any) -> Case:
    """The same for AugMix, whose sums are those of its forward."""
    op = v2.AugMix(**arguments)

    def expect(picture: Picture, draws: Draws) -> Any:
        batch = v2.functional.pil_to_tensor(picture)
        total = torch.tensor([draws[0]["weight"]]) * batch
        for chain in draws[0]["chains"]:
            aug = batch
            for tweak in chain["ops"]:
                aug = op._apply_image_or_video_transform(
                    aug, tweak["name"], tweak["magnitude"], interpolation=op.interpolation, fill=op._fill
                )
            total.add_(torch.tensor([chain["weight"]]) * aug)
        return v2.functional.to_pil_image(total.to(torch.uint8))

    return Case(f"AugMix({', '.join(f'{k}={v!r}' for k, v in arguments.items())})", lambda: op, expect, "tensor")


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
    _mix(),
    _mix(severity=10, mixture_width=2, chain_depth=4),
    _mix(severity=10, mixture_width=5, chain_depth=2, alpha=0.3, interpolation="nearest", fill=(10, 20.7, 255)),
    _mix(severity=8, mixture_width=4, alpha=8.0, all_ops=False, fill=127),
    *(_mix(severity=10, mixture_width=1, chain_depth=1, interpolation=name) for name in ("nearest", "bilinear")),
    _tensor("RandAugment"),
    _tensor("RandAugment", num_ops=3, magnitude=14, interpolation="bilinear", fill=(124, 116.5, 104)),
    _tensor("TrivialAugmentWide"),
    _tensor("TrivialAugmentWide", num_magnitude_bins=4, interpolation="bilinear"),
    *(_tensor("AutoAugment", policy=policy, fill=7) for policy in v2.AutoAugmentPolicy),
]
