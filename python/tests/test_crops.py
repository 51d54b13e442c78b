"""FiveCrop and TenCrop: what a batch of stacks looks like, with the real agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_photos

from feedwater import Loader

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
PIL = pytest.importorskip("PIL.Image")

pytestmark = pytest.mark.usefixtures("real")

FLOATS = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_photos(tmp_path_factory.mktemp("few"), 10)


@pytest.mark.parametrize("tail", [[], FLOATS], ids=["bytes", "floats"])
@pytest.mark.parametrize("crop", [v2.FiveCrop(32), v2.TenCrop((30, 40), vertical_flip=True)], ids=["five", "ten"])
@pytest.mark.parametrize("memory_format", [None, torch.contiguous_format, torch.channels_last], ids=str)
def test_crops_are_stacked(few: Path, crop: Any, tail: list[Any], memory_format: Any) -> None:
    theirs = v2.Compose([v2.Resize((48, 64)), crop, v2.ToImage(), *tail])
    loader = Loader(few, v2.Compose([v2.Resize((48, 64)), crop, *tail]), batch_size=4, memory_format=memory_format)
    for images, _ in loader:
        for stack, key in zip(images, loader.last.keys, strict=True):
            expected = torch.stack(theirs(PIL.open(few / key).convert("RGB")))
            assert torch.equal(stack, expected.as_subclass(torch.Tensor))
        if (tail and memory_format is None) or memory_format is torch.contiguous_format:
            images.view(-1, *images.shape[2:])  # what training code does
    sample = loader.replay(3, 0)
    assert sample.image is not None
    assert sample.image.shape == (len(expected) * expected.shape[2], expected.shape[3], 3)  # below each other
    loader.close()


def test_crops_as_arrays(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "torch")
    from feedwater import transforms

    with Loader(few, [transforms.Resize((48, 64)), transforms.FiveCrop(40)], batch_size=5) as loader:
        images, _ = next(iter(loader))
    assert isinstance(images, np.ndarray)
    assert images.shape == (5, 5, 40, 40, 3)
