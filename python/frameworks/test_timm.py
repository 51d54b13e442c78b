"""timm: its transforms from the same drawn numbers, and its create_loader against itself."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import timm.data
import torch
import torchvision.transforms.functional as F
from conftest import make_pictures
from timm.data.auto_augment import (
    LEVEL_TO_ARG,
    NAME_TO_OP,
    AugmentOp,
    AugMixAugment,
    RandAugment,
    augment_and_mix_transform,
    auto_augment_transform,
    rand_augment_transform,
)
from timm.data.random_erasing import RandomErasing
from timm.data.transforms import (
    CenterCropOrPad,
    MaybePILToTensor,
    RandomCropOrPad,
    RandomResizedCropAndInterpolation,
    ResizeKeepRatio,
    ToNumpy,
    TrimBorder,
)
from torchvision.transforms import InterpolationMode, v2

import feedwater
import feedwater.testing
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
    "options",
    [
        {},
        {"crop_pct": 1.0, "interpolation": "bicubic"},
        {"crop_mode": "squash"},
        {"crop_mode": "border"},
        {"crop_border_pixels": 3},
    ],
    ids=str,
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


SIZES = [
    ResizeKeepRatio((20, 14), longest=0.4),
    ResizeKeepRatio(33, longest=1.0, interpolation="bicubic"),
    ResizeKeepRatio(
        19,
        0.3,
        "random",
        random_scale_prob=0.5,
        random_scale_range=(0.4, 1.6),
        random_scale_area=True,
        random_aspect_prob=0.5,
    ),
    CenterCropOrPad((30, 9), fill=(1, 2, 3)),
    CenterCropOrPad((9, 51), padding_mode="reflect"),
    RandomCropOrPad((41, 18), padding_mode="reflect"),
    RandomCropOrPad((17, 35), fill=9),
    TrimBorder(3),
]


def replayed(loader: feedwater.Loader[Any], folder: Path, epochs: int) -> Iterator[tuple[Any, PIL.Image.Image]]:
    """Samples as replay tells them, of all 16 pictures, with their pictures."""
    for epoch in range(epochs):
        for index in range(16):
            sample = loader.replay(index, epoch)
            with PIL.Image.open(folder / sample.key) as file:
                yield sample, file.convert("RGB")


def made_by(step: Any, picture: PIL.Image.Image, draw: dict[str, Any]) -> PIL.Image.Image:
    """What timm's own object makes of a picture, where it draws what was drawn."""
    with pytest.MonkeyPatch.context() as patch:
        if "index" in draw:
            filters = step.interpolation
            patch.setattr(random, "choice", lambda modes: filters[draw["index"]])
            draw_inside = draw["transforms"][0]["size"]
            patch.setattr(type(step), "get_params", staticmethod(lambda *_: draw_inside))
        if isinstance(step, RandomCropOrPad):
            patch.setattr(type(step), "get_params", staticmethod(lambda *_: (draw["top"], draw["left"])))
        return step(picture)


@pytest.mark.parametrize("step", SIZES, ids=lambda step: f"{step}"[:60])
def test_sizes_are_timms(natural: Path, step: Any) -> None:
    drawn, sizes = set(), set()
    with feedwater.Loader(natural, [step, v2.CenterCrop(60)], batch_size=1, **LOCAL) as loader:
        for sample, picture in replayed(loader, natural, 6):
            made = made_by(step, picture, sample.draws[0])
            expected = np.asarray(v2.functional.center_crop(made, [60, 60]))
            assert np.array_equal(sample.image, expected), (sample.key, sample.draws)
            drawn.add(str(sample.draws[0]))
            sizes.add(made.size)
    if isinstance(step, RandomCropOrPad) or getattr(step, "random_scale_prob", 0):
        assert len(drawn) > 40
    if getattr(step, "random_scale_prob", 0):
        assert len(sizes) > 20


def test_drawn_sizes_are_spread_as_timms(natural: Path) -> None:
    """Of random scales and aspects: Kolmogorov and Smirnov's distance of both sides to 20,000 of timm's."""
    step = ResizeKeepRatio(
        160, random_scale_prob=0.6, random_scale_range=(0.3, 1.2), random_scale_area=True, random_aspect_prob=0.7
    )
    with feedwater.Loader(natural, [step, v2.CenterCrop(16)], batch_size=1, **LOCAL) as loader:
        with PIL.Image.open(natural / loader.replay(0).key) as file:
            picture = file.convert("RGB")
        ours = np.array([loader.replay(0, epoch).draws[0]["size"] for epoch in range(800)])
    random.seed(0)
    how = step.random_scale_prob, step.random_scale_range, True, step.random_aspect_prob, step.random_aspect_range
    theirs = np.array([step.get_params(picture, step.size, step.longest, *how) for _ in range(20_000)])
    for side in (0, 1):
        steps = np.unique(theirs[:, side])
        below = [np.searchsorted(np.sort(sizes[:, side]), steps, "right") / len(sizes) for sizes in (ours, theirs)]
        assert np.abs(below[0] - below[1]).max() < 0.07


def test_arrays_of_to_numpy(natural: Path) -> None:
    with feedwater.Loader(natural, [CenterCropOrPad(16), ToNumpy()], batch_size=4, shuffle=False, **LOCAL) as loader:
        image, _ = next(iter(loader))
        with PIL.Image.open(natural / loader.replay(0).key) as file:
            assert np.array_equal(image[0].numpy(), ToNumpy()(CenterCropOrPad(16)(file.convert("RGB"))))


CONFIGS = [
    "rand-m9-mstd0.5-inc1",
    "rand-m7-n4-p1",
    "rand-m15-mmax20-mstd101-n3-inc1",
    "rand-m9-n3-p1-tweights",
    "original-mstd0.5",
    "originalr",
    "v0",
    "v0r-mstd0.5",
    "3a",
    "rand-m9-mstd0.5-t3aw",
]


def applied(image: PIL.Image.Image, ops: list[dict[str, Any]], fill: Any) -> PIL.Image.Image:
    """What timm's own functions make of a picture, with what was drawn."""
    for op in ops:
        # Of a random radius it is told which one it was.
        name = op["name"].replace("GaussianBlurRand", "GaussianBlur")
        function, level = NAME_TO_OP[name], LEVEL_TO_ARG[name]
        values = [] if level is None else [op["magnitude"]]
        kinds = ("Posterize", "Solarize")
        values = [int(value) if op["name"].startswith(kinds) else value for value in values]
        code = {"nearest": 0, "bilinear": 2, "bicubic": 3}[op["interpolation"]]
        if op["name"].startswith("Posterize") and values[0] < 1:  # no bit is left, which Pillow 13 refuses
            image = PIL.Image.new("RGB", image.size)
            continue
        image = function(image, *values, fillcolor=fill, resample=code)
    return image


def arguments_of(op: Any) -> set[float]:
    """What timm's function may be given for an op whose magnitude is its own: with either sign."""
    values = set()
    for coin in (0.0, 1.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(random, "random", lambda coin=coin: coin)
            magnitude = max(0.0, min(op.magnitude, op.magnitude_max or 10))
            values.add(LEVEL_TO_ARG[op.name](magnitude, op.hparams)[0] if LEVEL_TO_ARG[op.name] else 0)
    return values


@pytest.mark.parametrize("config", CONFIGS)
def test_policies_of_config_strings_are_timms(natural: Path, config: str) -> None:
    """Each op that replay tells, done again by timm's function with that argument."""
    hparams = {"translate_const": 7, "img_mean": (124, 116, 104)}
    if config == "v0":
        hparams["interpolation"] = PIL.Image.Resampling.BICUBIC
    make = rand_augment_transform if config.startswith("rand") else auto_augment_transform
    policy = make(config, dict(hparams))
    whole = [op for group in getattr(policy, "policy", None) or [policy.ops] for op in group if op.prob]
    known: dict[str, set[float]] = {op.name: set() for op in whole}
    for op in whole:
        known[op.name] |= arguments_of(op)
    names: Counter[str] = Counter()
    with feedwater.Loader(natural, [policy], batch_size=1, **LOCAL) as loader:
        for sample, picture in replayed(loader, natural, 12):
            ops = sample.draws[0].get("ops", [])
            expected = np.asarray(applied(picture, ops, (124, 116, 104)))
            assert np.array_equal(sample.image, expected), (sample.key, ops)
            assert "tweights" not in config or len({op["name"] for op in ops}) == len(ops) == 3
            for op in ops:
                if op["name"] == "GaussianBlurRand":
                    assert 0.1 <= op["magnitude"] <= 2, op
                else:
                    assert "mstd" in config or op["magnitude"] in known[op["name"]], op
            names.update(op["name"] for op in ops)
            names.update(op["interpolation"] for op in ops)
    assert set(names) - {"bilinear", "bicubic"} == known.keys(), "each op was met"
    assert ("bilinear" in names) == (config != "v0") and "bicubic" in names


def mixed(policy: Any, picture: PIL.Image.Image, draw: dict[str, Any], fill: Any) -> PIL.Image.Image:
    """What timm's own AugMix makes of a picture, where numpy chooses what was drawn."""
    chains = iter(draw["chains"])

    def choose(ops: list[Any], depth: int, replace: bool) -> list[Any]:
        return [lambda image, op=op: applied(image, [op], fill) for op in next(chains)["ops"]]

    apply = policy._apply_blended if policy.blended else policy._apply_basic
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "choice", choose)
        return apply(picture, np.float32([chain["weight"] for chain in draw["chains"]]), np.float32(draw["weight"]))


@pytest.mark.parametrize("config", ["augmix-m3", "augmix-m9-w4-d2-mstd0.5", "augmix-m7-w1-a0.5", "augmix-m5-w3-b1"])
def test_augmix_of_config_strings_is_timms(natural: Path, config: str) -> None:
    policy = augment_and_mix_transform(config, {"translate_pct": 0.3, "img_mean": (124, 116, 104)})
    names: Counter[str] = Counter()
    depths, shares, changed = Counter[int](), [], 0
    with feedwater.Loader(natural, [policy], batch_size=1, **LOCAL) as loader:
        for sample, picture in replayed(loader, natural, 12):
            draw = sample.draws[0]
            assert len(draw["chains"]) == policy.width
            assert sum(chain["weight"] for chain in draw["chains"]) == pytest.approx(1, abs=1e-6)
            expected = np.asarray(mixed(policy, picture, draw, (124, 116, 104)))
            assert np.array_equal(sample.image, expected), (sample.key, draw)
            changed += not np.array_equal(sample.image, np.asarray(picture))
            shares.append(draw["weight"])
            depths.update(len(chain["ops"]) for chain in draw["chains"])
            names.update(op["name"] for chain in draw["chains"] for op in chain["ops"])
    assert changed > 180 and names.keys() == {op.name for op in policy.ops}
    assert depths.keys() == ({policy.depth} if policy.depth > 0 else {1, 2, 3})
    assert max(names.values()) < 2 * min(names.values())
    assert abs(np.mean(shares) - 0.5) < 0.1  # of Beta(a, a), whose deviation is at most 0.35: 4 deviations of the mean


def test_magnitudes_are_spread_as_timms(natural: Path) -> None:
    """Of one op with magnitude 5 and a deviation of 2: Kolmogorov and Smirnov's distance to 20,000 of timm's."""
    for config in ("rand-m5-n8-p1-mstd2", "rand-m5-n8-p1-mstd101"):
        policy = rand_augment_transform(config, {}, transforms=["Color"])
        with feedwater.Loader(natural, [policy], batch_size=1, **LOCAL) as loader:
            ours = [op["magnitude"] for e in range(30) for i in range(16) for op in loader.replay(i, e).draws[0]["ops"]]
        assert len(ours) == 30 * 16 * 8
        rng = np.random.default_rng(0)
        magnitudes = rng.normal(5, 2, 20_000) if "mstd2" in config else rng.uniform(0, 5, 20_000)
        theirs = np.sort(magnitudes.clip(0, 10) / 10 * 1.8 + 0.1)
        places = np.sort(np.array(ours))
        steps = np.concatenate([places, theirs])
        apart = np.searchsorted(places, steps, "right") / len(places) - np.searchsorted(theirs, steps, "right") / len(
            theirs
        )
        assert np.abs(apart).max() < 0.035


def test_train_py_s_recipe(natural: Path) -> None:
    """create_loader with timm's usual arguments for ImageNet."""
    given: dict[str, Any] = {
        "is_training": True,
        "auto_augment": "rand-m9-mstd0.5-inc1",
        "re_prob": 0.25,
        "re_mode": "pixel",
    }
    dataset = timm.data.create_dataset("", root=str(natural))
    ours = create_loader(dataset, 16, 4, **given, interpolation="random", device=torch.device("cpu"), options=LOCAL)
    images = [image for image, _ in ours]
    assert len(images) == 4 and all(image.shape == (4, 3, 16, 16) and image.isfinite().all() for image in images)
    assert "TimmPolicy" in ours.loader.explain()


def test_a_policy_whose_functions_are_not_timms(natural: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = rand_augment_transform("rand-m9", {})
    policy.ops[2].aug_fn = lambda image, **_: image
    with pytest.raises(feedwater.UnsupportedTransformError, match=r"a function of its op Invert, or .* was replaced"):
        feedwater.Loader(natural, policy, batch_size=1)
    with pytest.raises(feedwater.UnsupportedTransformError, match="put it before ToImage"):
        feedwater.Loader(natural, [v2.ToImage(), rand_augment_transform("rand-m9", {})], batch_size=1)


def _with(op: Any, **changed: Any) -> Any:
    for name, value in changed.items():
        setattr(op, name, value)
    return op


def _op(name: str, **hparams: Any) -> Any:
    return AugmentOp(name, 1, 5, hparams or None)


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: ResizeKeepRatio(224 / 0.9), "ResizeKeepRatio.*whole numbers"),
        (lambda: ResizeKeepRatio((20, 30, 40)), "whole numbers"),
        (lambda: ResizeKeepRatio(20, longest=1.5), r"ResizeKeepRatio\(longest=1.5\): needs a number from 0 to 1"),
        (lambda: ResizeKeepRatio(20, random_scale_prob=0.5, random_scale_range=(0, 1)), "random_scale_range"),
        (lambda: TrimBorder(2.5), "border_size=2.5"),
        (lambda: CenterCropOrPad((30.7, 20)), "whole numbers"),
        (lambda: CenterCropOrPad(20, fill=np.int64(7)), "fill="),
        (lambda: CenterCropOrPad(20, padding_mode="wrap"), r"CenterCropOrPad\(padding_mode='wrap'\)"),
        (lambda: RandAugment([_op("Rotate", img_mean=128)], 1), "img_mean, 128"),
        (lambda: RandAugment([_op("Rotate", img_mean=(1.0, 2.0, 3.0))], 1), "img_mean"),
        (lambda: RandAugment([_op("Invert"), _with(_op("Rotate"), magnitude_max=3)], 1), "other hparams"),
        (lambda: RandAugment([_op("Invert"), _with(_op("Rotate"), magnitude_std=3)], 1), "other hparams"),
        (lambda: RandAugment([_with(_op("Invert"), aug_fn=NAME_TO_OP["Equalize"])], 1), "Invert.*was replaced"),
        (lambda: RandAugment([_with(_op("Rotate"), level_fn=LEVEL_TO_ARG["ShearX"])], 1), "Rotate.*was replaced"),
        (
            lambda: RandAugment(
                [
                    _with(
                        _op("GaussianBlur"),
                        level_fn=partial(LEVEL_TO_ARG["GaussianBlur"].func, min_val=0.1, max_val=9.0),
                    )
                ],
                1,
            ),
            "GaussianBlur.*was replaced",
        ),
        (lambda: RandAugment([lambda x: x], 1), "function among its ops is not timm's AugmentOp"),
        (lambda: RandAugment([_with(_op("Rotate"), magnitude=math.nan)], 1), "the magnitude of Rotate"),
        (lambda: RandAugment([_op("Rotate")], 2.5), "num_layers"),
        (lambda: RandAugment([_op("Rotate")], 65), "num_layers is not a whole number from 0 to 64"),
        (lambda: RandAugment([_op("Rotate"), _op("Invert")], 1, [7, 3]), "weights"),
        (lambda: AugMixAugment([], 1.0), "the number of its ops"),
        (lambda: AugMixAugment([_op("Rotate")], width=33), "width is not a whole number from 1 to 32"),
        (lambda: AugMixAugment([_op("Rotate")], depth=2.5), "depth"),
        (lambda: AugMixAugment([_op("Rotate")], alpha=0), "alpha"),
        (lambda: AugMixAugment([_op("Rotate")], alpha=[1]), "an argument of it"),
        (lambda: augment_and_mix_transform("augmix-m40-mstd1", {"magnitude_max": 40}), "magnitude_max"),
        (lambda: [CenterCropOrPad(16), ToNumpy(), v2.RandomHorizontalFlip()], "RandomHorizontalFlip after ToNumpy"),
        (lambda: [CenterCropOrPad(16), ToNumpy(), v2.ToDtype(torch.float32)], "ToDtype after ToNumpy"),
        (lambda: [CenterCropOrPad(16), v2.ToImage(), ToNumpy()], "ToNumpy after ToImage"),
    ],
)
def test_arguments_that_timm_takes_and_nodes_do_not(natural: Path, build: Any, why: str) -> None:
    """Each is refused before anything starts, not made another way."""
    with pytest.raises(feedwater.UnsupportedTransformError, match=why):
        feedwater.Loader(natural, build(), batch_size=1)


@pytest.mark.parametrize("name", ["center_crop_or_pad", "crop_or_pad"])
def test_replaced_functions_of_sizes(natural: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"timm.data.transforms.{name}", lambda img, *_, **__: img)
    with pytest.raises(feedwater.UnsupportedTransformError, match=f"{name} was replaced"):
        feedwater.Loader(natural, CenterCropOrPad(16), batch_size=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AugmentOp.__call__", lambda self, img: img),
        ("_check_args_tf", lambda kwargs: None),
        ("_randomly_negate", lambda v: v),
        ("_LEVEL_DENOM", 30.0),
        ("NAME_TO_OP", {**NAME_TO_OP, "Rotate": NAME_TO_OP["Equalize"]}),
        ("LEVEL_TO_ARG", {**LEVEL_TO_ARG, "Rotate": LEVEL_TO_ARG["ShearX"]}),
    ],
)
def test_replaced_functions_of_policies(natural: Path, name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"timm.data.auto_augment.{name}", value)
    for config, make in (("rand-m9", rand_augment_transform), ("augmix-m3", augment_and_mix_transform)):
        with pytest.raises(feedwater.UnsupportedTransformError, match="was replaced"):
            feedwater.Loader(natural, make(config, {}), batch_size=1)


def test_what_is_as_good_as_nothing_is_taken(natural: Path) -> None:
    """Arguments that timm never asks for, or that change nothing."""
    for step in (
        TrimBorder(0),
        ResizeKeepRatio(20, random_scale_range=(0, 0), random_aspect_range=None),
        ResizeKeepRatio(20, random_scale_prob=1.0, random_scale_range=(1.2, 0.8)),
        AugMixAugment([_op("Rotate")], depth=-7),
        augment_and_mix_transform("augmix-m5", {"magnitude_max": 30}),
    ):
        with feedwater.Loader(natural, [step, v2.CenterCrop(8)], batch_size=1, **LOCAL) as loader:
            next(iter(loader))


def test_parity_of_what_torchvision_has_not(natural: Path) -> None:
    with pytest.raises(feedwater.UnsupportedTransformError, match=r"TrimBorder cannot be repeated.*leave it out"):
        feedwater.testing.assert_parity([TrimBorder(1), v2.CenterCrop(8)], natural)


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
        ({"is_training": True, "num_aug_splits": 2}, "num_aug_splits=2"),
        ({"collate_fn": max}, "collate_fn=.*--no-prefetcher"),
        ({"img_dtype": torch.float16}, "in float32"),
        ({"input_size": (1, 16, 16)}, "three channels"),
    ],
)
def test_what_cannot_be_run_is_named(natural: Path, given: dict[str, Any], why: str) -> None:
    dataset = timm.data.create_dataset("", root=str(natural))
    with pytest.raises(feedwater.UnsupportedTransformError, match=why):
        create_loader(dataset, **{"input_size": 16, "batch_size": 4, **given})


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
