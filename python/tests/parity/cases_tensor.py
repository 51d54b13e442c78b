"""Colours and warps behind ToImage."""

from __future__ import annotations

from typing import Any

import torch
from case import Case
from cases_size import Make, _make, _on_tensor
from cases_warp import ALL
from torchvision.transforms import v2

torch.set_num_threads(1)  # torch's mean grey of a large tensor, in adjust_contrast, depends on how many there are


def _case(kind: type[Any], *values: Any, **named: Any) -> Case:
    return _on_tensor(*_make(kind, *values, **named))


def _chain() -> tuple[str, Make]:
    """What is trained with: a crop, a flip, colours in a container, all on tensors."""
    return (
        "RandomResizedCrop(224), RandomHorizontalFlip(), ColorJitter(0.4, 0.4, 0.4, 0.1), RandomGrayscale(0.2)",
        lambda: [
            v2.RandomResizedCrop(224),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
            v2.RandomGrayscale(0.2),
        ],
    )


FILTERS = ("nearest", "bilinear")

CASES = [
    _case(v2.ColorJitter, 0.4, 0.4, 0.4, 0.1),
    _case(v2.ColorJitter, 0.8, 0.8, 0.8, 0.2),
    _case(v2.ColorJitter, brightness=0.4),
    _case(v2.ColorJitter, brightness=[0, 0]),
    _case(v2.ColorJitter, brightness=[0, 6]),
    _case(v2.ColorJitter, contrast=0.4),
    _case(v2.ColorJitter, contrast=[0, 0]),
    _case(v2.ColorJitter, contrast=[1.5, 8]),
    _case(v2.ColorJitter, saturation=0.4),
    _case(v2.ColorJitter, saturation=[0, 0]),
    _case(v2.ColorJitter, saturation=[1.5, 12]),
    _case(v2.ColorJitter, hue=0.1),
    _case(v2.ColorJitter, hue=0.5),
    _case(v2.ColorJitter, hue=[-0.5, -0.5]),
    _case(v2.ColorJitter, hue=[0.0005, 0.001]),
    _case(v2.ColorJitter, contrast=0.9, hue=[0.5, 0.5]),
    _case(v2.Grayscale, 3),
    _case(v2.RandomGrayscale, 0.6),
    *(_case(v2.RandomSolarize, threshold, p=1) for threshold in (0.0, 128, 169.99999, 254.5, 255)),
    *(_case(v2.RandomPosterize, bits, p=1) for bits in (1, 2, 4, 7, 8)),
    _case(v2.RandomInvert),
    _case(v2.RandomEqualize, p=1),
    _case(v2.RandomAutocontrast, p=1),
    *(_case(v2.RandomAdjustSharpness, factor, p=1) for factor in (0, 0.3, 1, 1.7, 10)),
    _case(v2.RandomPhotometricDistort),
    _case(v2.RandomPhotometricDistort, p=1),
    _case(v2.RandomChannelPermutation),
    _case(v2.GaussianBlur, 5, sigma=(0.1, 2.0)),
    _case(v2.GaussianBlur, (7, 23)),
    _case(v2.JPEG, (1, 100)),
    _on_tensor(*_chain()),
    *(_case(v2.RandomRotation, 180, interpolation=name) for name in FILTERS),
    _case(v2.RandomRotation, 15, fill=None, interpolation="bilinear"),
    _case(v2.RandomRotation, (30, 30), fill=200),
    _case(v2.RandomRotation, (-400, 1000), expand=True, fill=(10, 20.7, 255)),
    _case(v2.RandomRotation, 45, expand=True, interpolation="bilinear", fill=(255, 0, 127)),
    _case(v2.RandomRotation, 45, center=(0, 0), interpolation="bilinear", fill=None),
    _case(v2.RandomRotation, 45, center=(100.3, -20.8)),
    _case(v2.RandomRotation, 45, center=(100.3, 20.8), expand=True, interpolation="bilinear"),
    *(_case(v2.RandomRotation, (angle, angle)) for angle in (0, 90, 180, -90)),
    *(_case(v2.RandomRotation, (angle, angle), expand=True) for angle in (90, 180, 270)),
    _case(v2.RandomRotation, (90, 90), center=(80, 60), interpolation="bilinear"),
    *(_case(v2.RandomAffine, 30, interpolation=name, **ALL) for name in FILTERS),
    _case(v2.RandomAffine, 0),
    _case(v2.RandomAffine, 0, translate=(1, 1)),
    _case(v2.RandomAffine, 0, translate=(0.1, 0.1), interpolation="bilinear", fill=99),
    _case(v2.RandomAffine, 0, scale=(0.5, 2)),
    _case(v2.RandomAffine, 0, scale=(2, 2), interpolation="bilinear", fill=None),
    _case(v2.RandomAffine, 30, scale=(0.001, 0.01), fill=7),
    _case(v2.RandomAffine, 0, shear=30),
    _case(v2.RandomAffine, 0, shear=(0, 0, -30, 30), fill=(1, 2, 3)),
    _case(v2.RandomAffine, (-180, 180), center=(30, 40), fill=(255, 254.9, 0), **ALL),
    _case(v2.RandomPerspective),
    *(_case(v2.RandomPerspective, 0.8, p=1, interpolation=name, fill=(1, 90, 255)) for name in FILTERS),
    _case(v2.RandomPerspective, 0.02, p=1, fill=None),
    _case(v2.RandomPerspective, 1, p=1),
]
