"""Modules of kornia as batch_transform=: what they make of the same pictures from the same seed, masks with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kornia.augmentation as K
import numpy as np
import PIL.Image
import pytest
import torch
from torchvision.transforms import v2

import feedwater

FLOATS = [v2.Resize((16, 16)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
JITTER = K.ColorJiggle(0.4, 0.4, 0.4, 0.1, p=1.0)
MOVES = [K.RandomHorizontalFlip(p=0.5), K.RandomAffine(20.0, p=1.0)]


def batches(folder: Path, transform: Any, **options: Any) -> list[Any]:
    given = {"batch_size": 6, "shuffle": True} | options
    with feedwater.Loader(folder, FLOATS, batch_transform=transform, local_workers=1, **given) as loader:
        return [[field.clone() for field in batch] for _ in range(2) for batch in loader]


def test_the_same_again_and_its_own(pictures: Path) -> None:
    torch.manual_seed(1)
    one = batches(pictures, JITTER)
    torch.manual_seed(2)
    two, plain = batches(pictures, JITTER), batches(pictures, None)
    for (image, label), (again, same), (before, _) in zip(one, two, plain, strict=True):
        assert torch.equal(image, again) and torch.equal(label, same) and not torch.equal(image, before)


def test_masks_move_where_it_says_so(tmp_path: Path) -> None:
    for kind in ("images", "masks"):
        (tmp_path / kind).mkdir()
    for number in range(8):
        mask = np.kron(np.random.default_rng(number).integers(0, 9, (4, 4)), np.ones((4, 4))).astype(np.uint8)
        PIL.Image.fromarray(np.stack([20 * mask] * 3, 2)).save(tmp_path / "images" / f"{number}.png")
        PIL.Image.fromarray(mask).save(tmp_path / "masks" / f"{number}.png")
    moving = K.AugmentationSequential(*MOVES, data_keys=["input", "mask"])
    options = {"masks": tmp_path / "masks", "batch_size": 5, "tail": "valid", "fields": ("image", "mask", "valid")}
    plain = batches(tmp_path / "images", None, **options)
    moved = batches(tmp_path / "images", moving, **options)
    for (image, mask, valid), (_, was, _) in zip(moved, plain, strict=True):
        assert mask.dtype == torch.uint8 and mask.shape == was.shape and not torch.equal(mask, was)
        inside = (image[:, 0] * 255 / 20 - mask.float()).abs()[valid] < 1.5
        assert inside.float().mean() > 0.7, "masks lie where their pictures do"
        assert not mask[~valid].any() and not image[~valid].any()
    with pytest.raises(ValueError, match=r'data_keys=\["input", "mask"\]'):
        batches(tmp_path / "images", MOVES[0], **options)


def test_views_are_moved_one_by_one(pictures: Path) -> None:
    views = feedwater.Views([FLOATS, FLOATS])
    with feedwater.Loader(pictures, views, batch_size=4, batch_transform=JITTER) as loader:
        (one, two), _ = next(iter(loader))
    assert one.shape == two.shape and not torch.equal(one, two)


@pytest.mark.parametrize(
    ("transform", "steps", "error", "why"),
    [
        (JITTER, FLOATS[:2], TypeError, r"put ToDtype\(torch.float32, scale=True\)"),
        (JITTER, FLOATS[1:], TypeError, "pictures of different sizes"),
        (K.RandomMixUpV2(data_keys=["input", "class"]), FLOATS, ValueError, "call it in a function"),
        (K.AugmentationSequential(*MOVES, data_keys=["input", "bbox"]), FLOATS, ValueError, "works on bbox.* too"),
    ],
)
def test_what_it_cannot_do(pictures: Path, transform: Any, steps: Any, error: type[Exception], why: str) -> None:
    with (
        pytest.raises(error, match=why),
        feedwater.Loader(pictures, steps, batch_size=4, batch_transform=transform) as loader,
    ):
        next(iter(loader))
