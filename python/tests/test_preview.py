"""preview(): the sheet shows what batches get."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feedwater import Error, Loader, transforms
from feedwater._agent import binary
from feedwater.errors import DataError

PIL = pytest.importorskip("PIL.Image")
GAP, TITLE = 12, 22

pytestmark = pytest.mark.usefixtures("real")


def test_cells_are_what_replay_gives(photos: Path, tmp_path: Path) -> None:
    steps = [transforms.RandomResizedCrop(64), transforms.RandomHorizontalFlip()]
    with Loader(photos, steps, batch_size=4, seed=5) as loader:
        sheet = loader.preview(samples=1, epochs=3, width=64)
        image = np.asarray(PIL.open(io.BytesIO(sheet.png)).convert("RGB"))
        top = GAP + TITLE
        for epoch in range(3):
            left = GAP + (epoch + 1) * (64 + GAP)
            assert np.array_equal(image[top : top + 64, left : left + 64], loader.replay(0, epoch).image)
    assert sheet._repr_png_() == sheet.png
    assert sheet.save(tmp_path / "sheet.png").read_bytes() == sheet.png
    assert "save(path)" in repr(sheet)
    with pytest.raises(ValueError, match=r"is a PNG, call it sheet\.png"):
        sheet.save(tmp_path / "sheet.jpg")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"samples": 0}, ValueError, "^samples=0: needs to be 1 to 1000$"),
        ({"samples": 2.5}, TypeError, "^samples=2.5: needs a whole number$"),
        ({"epochs": True}, TypeError, "^epochs=True: needs a whole number$"),
        ({"epochs": 101}, ValueError, "^epochs=101: needs to be 1 to 100$"),
        ({"width": 31}, ValueError, "^width=31: needs to be 32 to 2048$"),
        ({"seed": -1}, ValueError, "^seed=-1: needs a whole number from 0 to "),
    ],
)
def test_arguments_are_checked_before_the_program_runs(
    photos: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    monkeypatch.delattr(binary, "find_program")
    with Loader(photos, batch_size=4) as loader, pytest.raises(error, match=words):
        loader.preview(**arguments)


def test_numbers_at_the_limits_are_the_programs_too(photos: Path) -> None:
    with Loader(photos, batch_size=4) as loader:
        assert loader.preview(samples=np.int64(1), epochs=1, width=32, seed=2**64 - 1).png
        assert loader.preview(samples=1, epochs=100, width=32).png


def test_what_is_wrong_is_said(photos: Path) -> None:
    with Loader(photos, batch_size=4) as loader, pytest.raises(Error, match="sheet"):
        loader.preview(samples=1000, epochs=100, width=2048)
    loader = Loader("photos", batch_size=4, nodes="127.0.0.1:1")
    with pytest.raises(DataError, match="photos is on the nodes"):
        loader.preview()
    loader.close()
