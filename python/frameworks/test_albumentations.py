"""A transform of albumentations as python=: its own result from the sample's seed, in any number of processes."""

from __future__ import annotations

import copy
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
from feedwater._plan.albumentations import split_transform

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


NORMALIZE = albumentations.Normalize((0.4, 0.5, 0.3), (0.2, 0.3, 0.25))


def redone(sample: Any, steps: list[Any], picture: Any) -> Any:
    """What albumentations makes of a picture from what nodes drew."""
    for step, draw in zip(steps, sample.draws, strict=True):
        if isinstance(step, albumentations.RandomCrop):
            y, x = draw["top"], draw["left"]
            step = albumentations.Crop(x, y, x + step.width, y + step.height)
        elif draw["applied"]:
            step = copy.deepcopy(step)
            step.p = 1
        else:
            continue
        picture = albumentations.Compose([step])(image=picture)["image"]
    return picture


@pytest.mark.parametrize(
    "pad",
    [
        albumentations.Pad((3, 5), fill=(9, 8, 7)),
        albumentations.Pad(4, border_mode=4),
        albumentations.Pad([1, 2, 3, 4], border_mode=1),
    ],
)
def test_twins_are_albumentations_own_from_the_same_numbers(pictures: Path, pad: Any) -> None:
    steps = [
        pad,
        albumentations.HorizontalFlip(),
        albumentations.VerticalFlip(p=0.3),
        albumentations.RandomCrop(18, 16),
    ]
    whole = albumentations.Compose([*steps, NORMALIZE, ToTensorV2()])
    flips: set[tuple[bool, bool]] = set()
    with feedwater.Loader(pictures, whole, batch_size=6, shuffle=True, local_workers=1) as loader:
        said = loader.explain()
        assert "cut       albumentations: all of it on nodes and at the last hop: Pad, HorizontalFlip" in said
        for images, _ in loader:
            assert images.shape == (6, 3, 18, 16) and images.dtype == torch.float32
            for image, index in zip(images, loader.last.indices, strict=True):
                sample = loader.replay(int(index))
                with PIL.Image.open(pictures / sample.key) as file:
                    made = redone(sample, steps, np.asarray(file.convert("RGB")))
                assert np.array_equal(sample.image, made)
                wanted = albumentations.Compose([NORMALIZE, ToTensorV2()])(image=made)["image"]
                assert torch.equal(image, wanted)
                flips.add((sample.draws[1]["applied"], sample.draws[2]["applied"]))
    assert len(flips) == 4


def test_the_rest_is_called_in_processes(pictures: Path) -> None:
    """What comes behind the cut is what it is as python=, of the pictures that nodes made."""
    first, last = (
        [albumentations.RandomCrop(16, 16), albumentations.HorizontalFlip()],
        [albumentations.GaussNoise(), ToTensorV2()],
    )
    options: dict[str, Any] = {"batch_size": 6, "shuffle": True, "local_workers": 1, "python_workers": 1}
    with feedwater.Loader(pictures, albumentations.Compose([*first, *last]), **options) as loader:
        said, one = loader.explain(), [image.clone() for image, _ in loader]
    assert "cut       albumentations: RandomCrop, HorizontalFlip on nodes, from GaussNoise on by python=" in said
    plain = [v2.RandomCrop(16), v2.RandomHorizontalFlip()]
    with feedwater.Loader(pictures, plain, python=albumentations.Compose(last), **options) as loader:
        two = [image.clone() for image, _ in loader]
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    resized = [v2.Resize((20, 20)), albumentations.Compose([albumentations.Resize(10, 10), *first])]
    with feedwater.Loader(pictures, resized, **{**options, "batch_size": 2}) as loader:
        assert "all of it by python=, from Resize on" in loader.explain()


@pytest.mark.parametrize(
    "steps",
    [
        [albumentations.CenterCrop(15, 15), albumentations.HorizontalFlip()],
        [albumentations.Transpose(), albumentations.HorizontalFlip()],
        [albumentations.OneOf([albumentations.HorizontalFlip()])],
        [albumentations.RandomCrop(15, 15, pad_if_needed=True)],
        [NORMALIZE, albumentations.HorizontalFlip(), ToTensorV2()],
    ],
    ids=str,
)
def test_what_has_no_twin_is_left_whole(steps: list[Any]) -> None:
    cut = split_transform(albumentations.Compose(steps), False)
    assert cut.transform == [] and len(cut.rest.transforms) == len(steps) and "all of it by python=" in cut.told
    odd = albumentations.Compose([albumentations.HorizontalFlip()], p=0.5)
    boxes = albumentations.Compose([albumentations.HorizontalFlip()], bbox_params=albumentations.BboxParams("coco"))
    for whole in (odd, boxes):
        assert split_transform(whole, False).rest is whole


def test_where_it_does_not_belong(pictures: Path) -> None:
    with pytest.raises(ValueError, match="python= beside a transform of albumentations"):
        feedwater.Loader(pictures, AUGMENT, batch_size=2, python=AUGMENT)
    with pytest.raises(feedwater.UnsupportedTransformError, match="ToImage behind a transform of albumentations"):
        feedwater.Loader(pictures, [AUGMENT, v2.ToImage()], batch_size=2)
    steps = [v2.CenterCrop(16), v2.ToImage()]
    with (
        feedwater.Loader(pictures, steps, python=AUGMENT, python_workers=1, batch_size=2) as loader,
        pytest.raises(feedwater.PythonError, match="leave ToImage and what follows out"),
    ):
        next(iter(loader))
