"""The ops of timm's classes, against Pillow: what they do with what was drawn. python/frameworks has timm itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_photos

import feedwater
from feedwater import transforms
from feedwater._torchvision.timm_policies import TimmMix, TimmPolicy
from feedwater._torchvision.timm_sizes import TimmCrop, TimmResize, TimmTrim

Image = pytest.importorskip("PIL.Image")
ImageFilter = pytest.importorskip("PIL.ImageFilter")

SPACE: dict[str, Any] = {
    "std": None,
    "most_magnitude": 10.0,
    "translate_const": 250.0,
    "translate_pct": 0.45,
    "interpolation": ("bilinear", "bicubic"),
    "fill": (124.0, 116.0, 104.0),
}
WARPS = {
    "ShearX": lambda x: (1, x, 0, 0, 1, 0),
    "TranslateY": lambda x: (1, 0, 0, 0, 1, x),
}
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs of several sizes."""
    return make_photos(tmp_path_factory.mktemp("small"), 12)


def replays(folder: Path, *steps: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Original, what became of it, and what was drawn for the first step, of several epochs."""
    with feedwater.Loader(folder, list(steps), batch_size=1, local_workers=1) as loader:
        for epoch in range(3):
            for index in range(12):
                sample = loader.replay(index, epoch)
                with Image.open(folder / sample.key) as file:
                    yield file.convert("RGB"), sample.image, sample.draws[0]


def applied(image: Any, op: dict[str, Any]) -> Any:
    """What Pillow makes of it."""
    name, value = op["name"], op["magnitude"]
    if name.startswith("GaussianBlur"):
        return image.filter(ImageFilter.GaussianBlur(value))
    fill, how = tuple(map(int, SPACE["fill"])), FILTERS[op["interpolation"]]
    if name == "Rotate":
        return image.rotate(value, resample=how, fillcolor=fill)
    return image.transform(image.size, Image.AFFINE, WARPS[name](value), resample=how, fillcolor=fill)


OPS = (
    ("GaussianBlurRand", 1.0, 10.0),
    ("GaussianBlur", 1.0, 10.0),
    ("Rotate", 1.0, 10.0),
    ("ShearX", 0.5, 10.0),
    ("TranslateY", 1.0, 0.5),
)


def test_policy(small: Path) -> None:
    policy = TimmPolicy(layers=3, groups=tuple((op,) for op in OPS), weights=None, **SPACE)
    radii = []
    for image, made, draw in replays(small, policy):
        for op in draw.get("ops", ()):
            image = applied(image, op)
            radii += [op["magnitude"]] if op["name"] == "GaussianBlurRand" else []
        assert np.array_equal(made, np.asarray(image)), draw
    assert 0 < min(radii) < 0.3 and 1.3 < max(radii) <= 2


@pytest.mark.parametrize("blended", [False, True])
def test_mix(small: Path, blended: bool) -> None:
    """timm's AugMix in numpy: of float32 sums, or of blends one after the other."""
    mix = TimmMix(ops=OPS, mixture_width=3, chain_depth=-1, alpha=1.0, blended=blended, **SPACE)
    depths = set()
    for image, made, draw in replays(small, mix):
        share, chains = np.float32(draw["weight"]), []
        for chain in draw["chains"]:
            chains.append(image)
            for op in chain["ops"]:
                chains[-1] = applied(chains[-1], op)
            depths.add(len(chain["ops"]))
        weights = np.array([chain["weight"] for chain in draw["chains"]], np.float32)
        if blended:
            left, shares = np.float32(1), []
            for weight in weights[::-1] * share:
                shares.insert(0, weight / left)
                left *= 1 - shares[0]
            for part, chain in zip(shares, chains, strict=True):
                image = Image.blend(image, chain, part)
        else:
            total = np.zeros_like(made, np.float32)
            for weight, chain in zip(weights, chains, strict=True):
                total += weight * np.asarray(chain, np.float32)
            image = Image.blend(image, Image.fromarray(total.clip(0, 255).astype(np.uint8)), share)
        assert np.array_equal(made, np.asarray(image)), draw
    assert depths >= {1, 2, 3}


RESIZE = TimmResize((70, 50), 0.25, "bicubic", 0.5, (0.5, 1.5), True, 0.5, (0.8, 1.3))


def test_sizes(small: Path) -> None:
    """A border is trimmed, the rest resized; what is missing is mirrored."""
    crop = TimmCrop((80, 40), True, 0, "reflect")
    drawn = []
    with feedwater.Loader(small, [TimmTrim(4), RESIZE, crop], batch_size=4, local_workers=1) as loader:
        for index in range(12):
            sample = loader.replay(index, 1)
            with Image.open(small / sample.key) as file:
                whole = file.convert("RGB")
            inner = whole.crop((4, 4, whole.width - 4, whole.height - 4))
            _, size, place = sample.draws
            resized = np.asarray(inner.resize(size["size"][::-1], Image.BICUBIC))
            padded = np.pad(resized, ((80, 80), (40, 40), (0, 0)), "reflect")
            top, left = place["top"] + 80, place["left"] + 40
            assert np.array_equal(sample.image, padded[top : top + 80, left : left + 40]), sample.draws
            drawn.append((*size["size"], place["top"], place["left"]))
    assert len(set(drawn)) == 12 and any(top < 0 for _, _, top, _ in drawn) and any(left > 0 for *_, left in drawn)


def test_what_is_not_drawn(small: Path) -> None:
    """timm's own numbers: a picture of 300×200 fits in 90×60, of 60×60 of its height and width two thirds."""
    exact = replace(RESIZE, random_scale_prob=0.0, random_aspect_prob=0.0, longest=1.0, size=(60, 60))
    middle = TimmCrop((64, 64), False, (1, 2, 3), "constant")
    for image, made, _ in replays(small, exact, middle):
        ratio = max(image.size) / 60
        size = [round(side / ratio) for side in image.size]
        canvas = Image.new("RGB", (64, 64), (1, 2, 3))
        canvas.paste(image.resize(size, Image.BICUBIC), [(64 - side) // 2 for side in size])
        assert np.array_equal(made, np.asarray(canvas))


@pytest.mark.parametrize("op", [RESIZE, TimmCrop((8, 8), False, 0, "constant"), TimmTrim(2)], ids=lambda op: op.name)
def test_tensors_and_masks_are_refused(op: Any) -> None:
    with pytest.raises(feedwater.UnsupportedTransformError, match=f"timm's {op.name} works on PIL images"):
        op.on_tensor()


def test_masks_are_refused(small: Path) -> None:
    with pytest.raises(feedwater.UnsupportedTransformError, match="TrimBorder does not work on masks"):
        feedwater.Loader(small, [TimmTrim(2), transforms.Resize((8, 8))], batch_size=1, masks=str(small))
