"""preview(): the sheet shows what batches get."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from feedwater import Error, Loader, transforms
from feedwater.errors import DataError

PIL = pytest.importorskip("PIL.Image")
GAP = 12

pytestmark = pytest.mark.usefixtures("real")


def test_cells_are_what_replay_gives(photos: Path, tmp_path: Path) -> None:
    steps = [transforms.RandomResizedCrop(64), transforms.RandomHorizontalFlip()]
    with Loader(photos, steps, batch_size=4, seed=5) as loader:
        sheet = loader.preview(samples=1, epochs=3, width=64)
        image = np.asarray(PIL.open(io.BytesIO(sheet.png)).convert("RGB"))
        for epoch in range(3):
            left = GAP + (epoch + 1) * (64 + GAP)
            assert np.array_equal(image[GAP : GAP + 64, left : left + 64], loader.replay(0, epoch).image)
    assert sheet._repr_png_() == sheet.png
    assert sheet.save(tmp_path / "sheet.png").read_bytes() == sheet.png
    assert "save(path)" in repr(sheet)
    with pytest.raises(ValueError, match=r"is a PNG, call it sheet\.png"):
        sheet.save(tmp_path / "sheet.jpg")


def test_what_is_wrong_is_said(photos: Path) -> None:
    with Loader(photos, batch_size=4) as loader, pytest.raises(Error, match="--samples 0 is not within"):
        loader.preview(samples=0)
    loader = Loader("photos", batch_size=4, nodes="127.0.0.1:1")
    with pytest.raises(DataError, match="photos is on the nodes"):
        loader.preview()
    loader.close()
