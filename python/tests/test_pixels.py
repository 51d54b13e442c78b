"""Every picture's pixels, through the whole product: byte for byte those of torchvision on PIL images.

What was drawn comes from replay_batch(); torchvision's own functions do the same again on what Pillow decodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feedwater import Loader

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
PIL = pytest.importorskip("PIL.Image")
F = v2.functional

pytestmark = pytest.mark.usefixtures("real")

BATCH = 20
EPOCH = 3


def as_it_is(picture: Any, draws: list[dict[str, Any]]) -> Any:
    assert draws == []
    return picture


def for_training(picture: Any, draws: list[dict[str, Any]]) -> Any:
    crop, flip = draws
    assert (crop["op"], crop["applied"], flip["op"]) == ("RandomResizedCrop", True, "RandomHorizontalFlip")
    box = [crop[name] for name in ("top", "left", "height", "width")]
    picture = F.resized_crop(picture, *box, [224, 224], antialias=True)
    return F.horizontal_flip(picture) if flip["applied"] else picture


def for_evaluation(picture: Any, draws: list[dict[str, Any]]) -> Any:
    assert [draw["op"] for draw in draws] == ["Resize", "CenterCrop"]
    return F.center_crop(F.resize(picture, [256], antialias=True), [224, 224])


Expect = Callable[[Any, list[dict[str, Any]]], Any]
WAYS: dict[Expect, Any] = {
    as_it_is: None,
    for_training: v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip()]),
    for_evaluation: v2.Compose([v2.Resize(256), v2.CenterCrop(224)]),
}


def rows(folder: Path, transform: Any) -> Iterator[tuple[Any, Any]]:
    """All samples of an epoch: what the batch holds, and what replay says of it."""
    loader = Loader(folder, transform, batch_size=BATCH, seed=17)
    loader.set_epoch(EPOCH)
    for images, labels in loader:
        samples = loader.replay_batch(loader.last.position)
        assert [sample.index for sample in samples] == loader.last.indices.tolist()
        assert [sample.label for sample in samples] == labels.tolist()
        yield from zip(images, samples, strict=True)
    loader.close()


def test_every_picture_is_torchvisions(photos: Path) -> None:
    seen, flips = 0, 0
    for each in zip(*(rows(photos, transform) for transform in WAYS.values()), strict=True):
        key = each[0][1].key
        picture = PIL.open(photos / key).convert("RGB")
        for (image, sample), expect in zip(each, WAYS):
            assert sample.key == key
            expected = np.asarray(expect(picture, sample.draws))
            assert np.array_equal(image.permute(1, 2, 0).numpy(), expected), (key, expect.__name__, sample.draws)
            assert np.array_equal(sample.image, expected), key
        flips += each[1][1].draws[1]["applied"]
        seen += 1
    assert seen == sum(1 for _ in photos.rglob("*.*"))
    assert 0.3 * seen < flips < 0.7 * seen
