"""Pillow's switches for a whole process are heard, or the error of a sample that they concern says they are not."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageFile
import pytest

import feedwater
from feedwater import Loader

pytestmark = pytest.mark.usefixtures("real")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    PIL.Image.fromarray(noise).save(tmp_path / "a" / "x.png")
    return tmp_path


def refused(folder: Path, **options: Any) -> str:
    with pytest.raises(feedwater.SampleError) as caught:
        next(iter(Loader(folder, feedwater.transforms.CenterCrop(8), batch_size=1, **options)))
    return str(caught.value)


def made(folder: Path) -> None:
    next(iter(Loader(folder, feedwater.transforms.CenterCrop(8), batch_size=1)))


@pytest.mark.parametrize(("most", "taken"), [(1000, True), (999, False), (999.9, False), (50, False)])
def test_a_lower_limit_of_pixels_is_heard_as_pillow_hears_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, most: float, taken: bool
) -> None:
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", most)
    if taken:
        PIL.Image.open(folder / "a" / "x.png")
        made(folder)
        return
    with pytest.raises(PIL.Image.DecompressionBombError):
        PIL.Image.open(folder / "a" / "x.png")
    told = refused(folder)
    assert "over the limit" in told and "not heard" not in told
    assert f"twice PIL.Image.MAX_IMAGE_PIXELS, which was {int(2 * most) // 2} when" in told and "89,478,485" in told


def test_the_limit_that_a_loader_was_made_with_is_named_whatever_it_is_now(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 700)
    loader = Loader(folder, feedwater.transforms.CenterCrop(8), batch_size=1)
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", None)
    with pytest.raises(feedwater.SampleError, match=r"MAX_IMAGE_PIXELS, which was 700 when the Loader was made"):
        next(iter(loader))


@pytest.mark.parametrize("most", [None, 1 << 40])
def test_no_limit_of_pixels_is_named_where_a_picture_passes_that_of_nodes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, most: int | None
) -> None:
    plain = Loader(folder, feedwater.transforms.CenterCrop(8), batch_size=1)._config.to_plan()
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", most)
    assert Loader(folder, feedwater.transforms.CenterCrop(8), batch_size=1)._config.to_plan() == plain
    made(folder)
    huge = io.BytesIO()
    PIL.Image.new("1", (20_000, 9_000)).save(huge, "PNG")
    (folder / "a" / "x.png").write_bytes(huge.getvalue())
    said = refused(folder)
    assert f"PIL.Image.MAX_IMAGE_PIXELS = {most} is not heard" in said and "178,956,970" in said and "on_error" in said


def test_that_truncated_pictures_are_not_taken_is_said_where_pillow_was_told_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "a" / "x.png"
    path.write_bytes(path.read_bytes()[:3000])
    assert "LOAD_TRUNCATED_IMAGES" not in refused(folder)
    monkeypatch.setattr(PIL.ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    assert "LOAD_TRUNCATED_IMAGES = True is not heard" in refused(folder)
    path.write_bytes(b"no picture")
    assert "on_error" in refused(folder)
