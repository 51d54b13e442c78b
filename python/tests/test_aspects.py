"""Pictures a few pixels wide and very long: what is cut out of a huge one is made, and the huge one is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from feedwater import Loader, SampleError

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")

pytestmark = pytest.mark.usefixtures("real", "reference_arithmetic")

NEAREST, BICUBIC = v2.InterpolationMode.NEAREST, v2.InterpolationMode.BICUBIC
CROP = v2.CenterCrop(224)

CHAINS = {
    "evaluation": [v2.Resize(256), CROP],
    "nearest": [v2.Resize(256, interpolation=NEAREST), CROP],
    "bicubic": [v2.Resize(256, interpolation=BICUBIC), CROP],
    "tensor": [v2.ToImage(), v2.Resize(256, antialias=True), CROP],
    "flipped": [v2.Resize(256), v2.RandomHorizontalFlip(1.0), v2.RandomVerticalFlip(1.0), CROP],
    "padded": [v2.Resize(256), v2.Pad(7), CROP],
    "twice": [v2.Resize(128), v2.Resize(64), v2.CenterCrop(56)],
    "coloured": [v2.Resize(256), v2.ColorJitter(0.5), CROP],
}


@pytest.mark.parametrize("size", [(1, 256), (256, 1), (2, 700), (1000, 1)], ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_a_crop_of_a_picture_that_is_too_long_is_torchvisions(tmp_path: Path, name: str, size: tuple[int, int]) -> None:
    (tmp_path / "a").mkdir()
    rng = np.random.default_rng(size)
    pixels = rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    PIL.Image.fromarray(pixels).save(tmp_path / "a" / "x.png")
    transform = v2.Compose(CHAINS[name])
    if name == "coloured":
        with pytest.raises(SampleError, match=r"Resize: .* at most 65500"):
            next(iter(Loader(tmp_path, transform, batch_size=1)))
        return
    wanted: Any = np.asarray(transform(PIL.Image.fromarray(pixels)))
    if name == "tensor":
        wanted = wanted.transpose(1, 2, 0)
    image, _ = next(iter(Loader(tmp_path, transform, batch_size=1)))
    assert np.array_equal(image[0].permute(1, 2, 0).numpy(), wanted)
