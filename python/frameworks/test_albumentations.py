"""A transform of albumentations as python=: its own result from the sample's seed, in any number of processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import albumentations
import numpy as np
import PIL.Image
import pytest
import torch
from albumentations.pytorch import ToTensorV2
from torchvision.transforms import v2

import feedwater

AUGMENT = albumentations.Compose(
    [
        albumentations.HorizontalFlip(),
        albumentations.GaussNoise((0.01, 0.02)),
        albumentations.ToFloat(255),
        ToTensorV2(),
    ]
)


def batches(pictures: Path, workers: int, **options: Any) -> list[Any]:
    given = {"batch_size": 6, "shuffle": True, "fields": ("image", "index"), "python_workers": workers} | options
    with feedwater.Loader(pictures, v2.CenterCrop(16), python=AUGMENT, local_workers=1, **given) as loader:
        made = [[torch.as_tensor(field).clone() for field in batch] for batch in loader]
        again = loader.replay(int(made[-1][1][0])).result
        assert again is not None and np.array_equal(again["image"], made[-1][0][0].numpy())
    return made


def test_the_same_in_any_number_of_processes(pictures: Path) -> None:
    one, two = batches(pictures, 1), batches(pictures, 2)
    for (image, index), (other, same) in zip(one, two, strict=True):
        assert image.dtype == torch.float32 and image.shape[1:] == (3, 16, 16)
        assert torch.equal(image, other) and torch.equal(index, same)
    plain = feedwater.Loader(pictures, v2.CenterCrop(16), batch_size=6, shuffle=True, local_workers=1)
    apart = [(image - before.float() / 255).abs().mean() for (image, _), (before, _) in zip(one, plain)]
    assert all(0 < float(value) < 1 for value in apart), "something was done to the pictures"
    assert len({image[0].numpy().tobytes() for image, _ in one}) == len(one)


def test_masks_move_with_pictures(tmp_path: Path) -> None:
    """Pictures that are their own masks stay so, of each view by itself."""
    for number in range(6):
        values = np.random.default_rng(number).integers(0, 256, (40, 44), dtype=np.uint8)
        PIL.Image.fromarray(values).save(tmp_path / f"{number}.png")
    moves = albumentations.Compose([albumentations.D4(p=1), albumentations.RandomCrop(16, 12)])
    views = feedwater.Views([v2.CenterCrop(32), v2.CenterCrop(32)])
    for transform in (v2.CenterCrop(32), views):
        loader = feedwater.Loader(tmp_path, transform, masks=tmp_path, python=moves, python_workers=1, batch_size=6)
        with loader:
            images, masks = next(iter(loader))
        several = isinstance(images, list)
        for image, mask in zip(images, masks, strict=True) if several else [(images, masks)]:
            assert image.shape == (6, 16, 12, 3) and torch.equal(image[..., 0], mask)
        assert not several or not torch.equal(images[0], images[1])


def test_where_it_does_not_belong(pictures: Path) -> None:
    with pytest.raises(
        feedwater.UnsupportedTransformError,
        match=r"transform Compose: pass it as python=, which calls it on each sample",
    ):
        feedwater.Loader(pictures, AUGMENT, batch_size=2)
    steps = [v2.CenterCrop(16), v2.ToImage()]
    with (
        feedwater.Loader(pictures, steps, python=AUGMENT, python_workers=1, batch_size=2) as loader,
        pytest.raises(feedwater.PythonError, match="leave ToImage and what follows out"),
    ):
        next(iter(loader))
