"""timm: its transforms from the same drawn numbers, and its create_loader against itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import timm.data
import torch
import torchvision.transforms.functional as F
from conftest import make_pictures
from timm.data.random_erasing import RandomErasing
from timm.data.transforms import MaybePILToTensor, RandomResizedCropAndInterpolation
from torchvision.transforms import InterpolationMode

import feedwater
from feedwater.timm import create_loader

LOCAL = {"local_workers": 1}


@pytest.fixture(scope="module")
def natural(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Classes 0, 1, 2, 10: timm sorts them as numbers, ImageFolder as text."""
    root = tmp_path_factory.mktemp("natural")
    for place, name in enumerate(("1", "10", "2", "0")):
        make_pictures(root / "made", 16, 4)
        (root / "made" / f"class{place}").rename(root / name)
    (root / "made").rename(root.parent / "rest")
    return root


@pytest.mark.parametrize("prefetch", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"crop_pct": 1.0, "interpolation": "bicubic"}, {"crop_mode": "squash"}], ids=str
)
def test_evaluation_has_the_same_batches(natural: Path, prefetch: bool, options: dict[str, Any]) -> None:
    arguments = {"input_size": (3, 16, 16), "batch_size": 5, "use_prefetcher": prefetch, "device": torch.device("cpu")}
    theirs = timm.data.create_loader(
        timm.data.create_dataset("", root=str(natural)), num_workers=0, **arguments, **options
    )
    dataset = timm.data.create_dataset("", root=str(natural))
    ours = create_loader(dataset, **arguments, **options, options=LOCAL)
    assert len(ours) == len(theirs) and ours.dataset is dataset
    batches = 0
    for (image, label), (other, wanted) in zip(ours, theirs, strict=True):
        assert image.dtype == other.dtype and torch.equal(image, other)
        assert torch.equal(label, wanted)
        batches += 1
    assert batches == 4


def test_training_is_what_timm_makes_of_the_same_numbers(natural: Path) -> None:
    """Crop, filter and flip, as replay tells them, done again by timm's and torchvision's functions."""
    dataset = timm.data.create_dataset("", root=str(natural))
    given: dict[str, Any] = {"is_training": True, "color_jitter": None, "interpolation": "random", "re_prob": 0.0}
    ours = create_loader(dataset, 16, 4, **given, device=torch.device("cpu"), options=LOCAL)
    means = timm.data.IMAGENET_DEFAULT_MEAN, timm.data.IMAGENET_DEFAULT_STD
    mean, std = (torch.tensor([x * 255 for x in values]).view(3, 1, 1) for values in means)
    assert len(ours) == 4, "whole batches only"
    ours.sampler.set_epoch(3)
    filters, seen = set(), 0
    for image, label in ours:
        for row, index in enumerate(ours.loader.last.indices):
            sample = ours.loader.replay(int(index))
            path, target = dataset.reader.samples[index]
            assert label[row] == target == sample.label
            choice, flip = sample.draws
            crop, bicubic = choice["transforms"][0], choice["index"] == 1
            filters.add(bicubic)
            mode = InterpolationMode.BICUBIC if bicubic else InterpolationMode.BILINEAR
            box = [crop[name] for name in ("top", "left", "height", "width")]
            made = F.resized_crop(PIL.Image.open(path).convert("RGB"), *box, (16, 16), mode)
            made = F.hflip(made) if flip["applied"] else made
            values = torch.from_numpy(np.array(made)).permute(2, 0, 1)
            assert torch.equal(image[row], values.to(torch.float32).sub_(mean).div_(std))
            seen += 1
    assert seen == 16 and filters == {False, True}


def test_erasing(natural: Path) -> None:
    given: dict[str, Any] = {"is_training": True, "re_prob": 1.0, "device": torch.device("cpu"), "options": LOCAL}
    for mode in ("const", "pixel"):
        dataset = timm.data.create_dataset("", root=str(natural))
        for image, _ in create_loader(dataset, 16, 4, **given, re_mode=mode):
            zeros = (image == 0).all(1).flatten(1).sum(1)
            assert (zeros >= 1).all() if mode == "const" else image.isfinite().all()
    step = feedwater._plan.compiler.recognise_leaf(RandomErasing(0.3, max_area=0.4, device="cpu"))
    assert (step.p, step.scale, step.value) == (0.3, (0.02, 0.4), (0.0,))
    assert step.ratio == pytest.approx((0.3, 1 / 0.3))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"is_training": True, "re_prob": 0.5, "re_mode": "rand"}, "mode='rand'"),
        ({"is_training": True, "re_prob": 0.5, "re_count": 3}, "max_count=3"),
        ({"is_training": True, "auto_augment": "rand-m9-mstd0.5-inc1"}, "RandAugment"),
        ({"is_training": True, "train_crop_mode": "rkrc"}, "ResizeKeepRatio"),
        ({"is_training": True, "num_aug_splits": 2}, "num_aug_splits=2"),
        ({"collate_fn": max}, "collate_fn=.*--no-prefetcher"),
        ({"img_dtype": torch.float16}, "in float32"),
        ({"crop_border_pixels": 2}, "TrimBorder"),
    ],
)
def test_what_cannot_be_run_is_named(natural: Path, given: dict[str, Any], why: str) -> None:
    dataset = timm.data.create_dataset("", root=str(natural))
    with pytest.raises(feedwater.UnsupportedTransformError, match=why):
        create_loader(dataset, 16, 4, **given)


def test_other_data_sets_and_replaced_methods(natural: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = timm.data.create_dataset("", root=str(natural))
    dataset.target_transform = int
    with pytest.raises(TypeError, match="target_transform"):
        create_loader(dataset, 16, 4)
    with pytest.raises(TypeError, match="a folder of class folders is read"):
        create_loader(type("X", (), {"__module__": "timm.data.dataset"})(), 16, 4)
    monkeypatch.setattr(MaybePILToTensor, "__call__", lambda self, pic: pic)
    with pytest.raises(feedwater.UnsupportedTransformError, match="was replaced"):
        feedwater.Loader(natural, MaybePILToTensor(), batch_size=1)
    monkeypatch.undo()
    monkeypatch.setattr(RandomResizedCropAndInterpolation, "get_params", staticmethod(lambda *_: (0, 0, 1, 1)))
    with pytest.raises(feedwater.UnsupportedTransformError, match="get_params was replaced"):
        feedwater.Loader(natural, RandomResizedCropAndInterpolation(16), batch_size=1)
