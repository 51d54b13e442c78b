"""File names that are not UTF-8: os.fsdecode's names in every place that shows one, whoever makes the batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import feedwater
from feedwater import Loader
from feedwater._common.filenames import escape_name

torch = pytest.importorskip("torch")
folder_module = pytest.importorskip("torchvision.datasets.folder")

pytestmark = pytest.mark.usefixtures("real")

CLASSES = (
    b"\xe9",
    b"a",
    "\u00e9".encode(),
    "\ue000".encode(),
    b"\x80",
    "\u4e00".encode(),
    b"\xed\xb3\xa9",
    b"q\xf0\x9f",
)
FILES = (b"x\xe9.jpg", b"y.JPG", b"\xff\xfe.png", "\u00fc.png".encode(), b"z\xc3.jpg")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Pictures in folders of such names, in a folder of such a name."""
    root = tmp_path / os.fsdecode(b"r\xe9")
    rng = np.random.default_rng(1)
    for name in CLASSES:
        place = root / os.fsdecode(name)
        place.mkdir(parents=True)
        for file in FILES:
            PIL.Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).save(place / os.fsdecode(file))
    return root


def make(source: Any, **options: Any) -> Loader[Any]:
    return Loader(source, feedwater.transforms.CenterCrop(8), **{"batch_size": 7, "shuffle": False, **options})


def expected(data: Path) -> tuple[list[str], list[str], list[int]]:
    """Classes, keys and labels as torchvision has them."""
    folder = folder_module.ImageFolder(str(data))
    keys = [os.path.relpath(path, data) for path, _ in folder.samples]
    return folder.classes, keys, [label for _, label in folder.samples]


def seen(loader: Loader[Any]) -> tuple[list[str], list[str], list[int]]:
    keys, labels = [], []
    for _, label in loader:
        keys += loader.last.keys
        labels += label.tolist()
    return loader.classes, keys, labels


@pytest.mark.parametrize("place", ["path", "object", "node", "local"])
def test_classes_and_keys_are_those_of_an_image_folder(data: Path, nodes: Any, place: str) -> None:
    source: Any = folder_module.ImageFolder(str(data)) if place == "object" else data
    options: dict[str, Any] = {}
    if place == "node":
        source, options = f"mine/{data.name}", {"nodes": nodes.start(data.parent, name="mine")}
    if place == "local":
        options = {"nodes": nodes.start(data, name="other")}
    loader = make(source, **options)
    assert seen(loader) == expected(data)
    assert [loader.replay(index).key for index in (0, 7)] == [expected(data)[1][index] for index in (0, 7)]


@pytest.mark.parametrize("remote", [False, True])
def test_errors_name_the_file_that_is_there(data: Path, nodes: Any, remote: bool, capfd: Any) -> None:
    keys = expected(data)[1]
    broken = data / keys[8]
    broken.write_bytes(b"broken")
    options = {"nodes": nodes.start(data, name="mine")} if remote else {}
    with pytest.raises(feedwater.SampleError) as caught:
        seen(make("mine" if remote else data, **options))
    assert caught.value.key == keys[8] and (data / caught.value.key).read_bytes() == b"broken"
    print(caught.value)  # a terminal or a log takes the message
    assert escape_name(keys[8]) in capfd.readouterr().out
    skipping = make("mine" if remote else data, on_error="skip", **options)
    assert skipping.classes == expected(data)[0]
    for _ in skipping:
        pass
    assert skipping.replay(8).error.key == keys[8]
    with pytest.raises(feedwater.DataError) as counted:
        seen(make("mine" if remote else data, on_error="skip", max_errors=0, **options))
    assert escape_name(keys[8]) in str(counted.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(feedwater.DataError, match=r"none\\udce9: no such folder"):
        make(tmp_path / os.fsdecode(b"none\xe9"))
    empty = tmp_path / os.fsdecode(b"empty\xe9")
    (empty / os.fsdecode(b"c\xe9")).mkdir(parents=True)
    with pytest.raises(feedwater.DataError, match=r"no picture .* in the folder c\\udce9"):
        seen(make(empty))


def test_masks_in_such_folders(data: Path, tmp_path: Path) -> None:
    masks = tmp_path / os.fsdecode(b"masks\xe9")
    for key in expected(data)[1]:
        at = (masks / key).with_suffix(".png")
        at.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(np.full((12, 12), 3, np.uint8)).save(at)
    loader = make(data, masks=masks)
    assert all((mask == 3).all() for _, mask in loader)
    assert [sample for _ in loader for sample in loader.last.keys] == expected(data)[1]


def test_a_state_and_a_plan_with_such_names_are_json(data: Path) -> None:
    loader = make(data, shuffle=True)
    batches = iter(loader)
    next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    again = make(data, shuffle=True)
    again.load_state_dict(state)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(batches, again, strict=True))


def test_a_locale_of_another_encoding(data: Path, binary: str) -> None:
    """In it os.fsdecode gives other text of the same bytes, and the agent reads the same files."""
    script = (
        "import sys, os, feedwater, torchvision.datasets\n"
        "assert sys.getfilesystemencoding() != 'utf-8', sys.getfilesystemencoding()\n"
        "folder = torchvision.datasets.ImageFolder(sys.argv[1])\n"
        "loader = feedwater.Loader(sys.argv[1], feedwater.transforms.CenterCrop(8), batch_size=7)\n"
        "keys = [key for _ in loader for key in loader.last.keys]\n"
        "assert sorted(loader.classes) == sorted(folder.classes), (loader.classes, folder.classes)\n"
        "assert sorted(keys) == sorted(os.path.relpath(path, sys.argv[1]) for path, _ in folder.samples), keys\n"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = [sys.executable, "-c", script, os.fsencode(data)]
    assert subprocess.run(run, env=environment, check=False).returncode == 0
