"""What a notebook shows of a Loader."""

from __future__ import annotations

import base64
import io
import pydoc
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import PIL.Image
import pytest
from conftest import make_photos

import feedwater
from feedwater import _html, transforms


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10 pictures in a folder whose name is no HTML."""
    return make_photos(tmp_path_factory.mktemp("a<b>&c"), 10)


def parsed(page: str) -> tuple[dict[str, str], list[Any]]:
    """The table, and the pictures as arrays. It is well-formed."""
    tree = ET.fromstring(re.sub(r"(<img [^>]*)>", r"\1/>", page))
    rows = {row[0].text or "": row[1].text or "" for row in tree.iter("tr")}
    files = [base64.b64decode((image.get("src") or "").partition("base64,")[2]) for image in tree.iter("img")]
    return rows, [np.array(PIL.Image.open(io.BytesIO(file))) for file in files]


@pytest.mark.usefixtures("real")
def test_a_notebook_shows_plan_place_and_pictures(data: Path) -> None:
    with feedwater.Loader(data, [transforms.RandomCrop(16)], batch_size=4, shuffle=True) as loader:
        rows, pictures = parsed(loader._repr_html_())
        assert loader._engine.feed.session.opened is None, "nothing was started"
        assert rows["data"] == str(data) and rows["transform"] == "RandomCrop: uint8" and not pictures
        assert rows["next batch"] == "epoch 0, position 0"
        next(iter(loader))
        rows, pictures = parsed(loader._repr_html_())
        assert rows["data"].startswith(f"{data}: 10 samples") and rows["next batch"] == "epoch 0, position 4"
        assert len(pictures) == 4
        for picture, index in zip(pictures, loader.last.indices, strict=True):
            assert np.array_equal(picture, loader.replay(int(index)).image)
        assert loader.state_dict()["consumed"] == 4, "looking consumes nothing"
    parsed(loader._repr_html_())


@pytest.mark.usefixtures("real")
def test_each_view_is_shown(data: Path) -> None:
    views = feedwater.Views([[transforms.CenterCrop(16)], [transforms.CenterCrop(12)]])
    with feedwater.Loader(data, views, batch_size=2) as loader:
        next(iter(loader))
        rows, pictures = parsed(loader._repr_html_())
    assert {"view 0", "view 1"} <= rows.keys()
    assert [picture.shape[0] for picture in pictures] == [16, 12, 16, 12]


def test_large_pictures_are_made_small() -> None:
    picture = np.arange(300 * 500 * 3, dtype=np.uint32).reshape(300, 500, 3).astype(np.uint8)
    made = np.array(PIL.Image.open(io.BytesIO(_html.encode_png(picture))))
    assert np.array_equal(made, picture[::3, ::3])


def test_help_begins_with_an_example() -> None:
    text = pydoc.plain(pydoc.render_doc(feedwater.Loader))
    lines = [line.strip(" |") for line in text.splitlines()]
    assert any(line.startswith("for images, labels in ") for line in lines[:14]), lines[:14]
