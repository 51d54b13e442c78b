"""Files that changed between runs, behind a listing that the first run kept."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from conftest import stop_agent

import feedwater
from feedwater.transforms import CenterCrop

FOLDERS = 8
TRUSTED_S = 2.5
"""How old a folder has to be for its listing to be kept."""


def write_pictures(root: Path, value: int, side: int = 8) -> None:
    """20 pictures of one value; their names and sizes are the same each time, their times are not."""
    (root / "a").mkdir(parents=True, exist_ok=True)
    for number in range(20):
        file = root / "a" / f"{number:02}.bmp"
        PIL.Image.fromarray(np.full((side, side, 3), value, np.uint8)).save(file)
        os.utime(file, (1_500_000_000 + value, 1_500_000_000 + value))


def read_values(loader: Any) -> list[int]:
    return [int(value) for batch, _ in loader for value in np.asarray(batch)[:, 0, 0, 0]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One for each test, all old enough."""
    roots = [tmp_path_factory.mktemp("data") for _ in range(FOLDERS)]
    for root in roots:
        write_pictures(root, 1)
    while time.time() < (roots[-1] / "a").stat().st_ctime + TRUSTED_S:
        os.sched_yield()
    return iter(roots)


@pytest.fixture
def data(real: str, folders: Iterator[Path]) -> Path:
    """A data set that an earlier run listed and read."""
    root = next(folders)
    with feedwater.Loader(root, CenterCrop(4), batch_size=3) as first:
        assert read_values(first) == [1] * 20
    stop_agent()
    return root


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"rank": 1, "num_replicas": 2}])
def test_a_run_that_begins_takes_them_as_they_are(data: Path, caplog: Any, options: dict[str, Any]) -> None:
    write_pictures(data, 2)
    with feedwater.Loader(data, CenterCrop(4), batch_size=3, **options) as loader:
        for _ in range(2):
            assert set(read_values(loader)) == {2}
        assert loader.stats().agent_restarts == 0
    told = [record.message for record in caplog.records if "listed anew, as no name" in record.message]
    assert len(told) == 1 and "it changed after" in told[0]


def test_so_does_peek(data: Path) -> None:
    write_pictures(data, 2)
    with feedwater.Loader(data, CenterCrop(4), batch_size=3) as loader:
        assert np.asarray(loader.peek()[0])[0, 0, 0, 0] == 2
        assert read_values(loader) == [2] * 20


def test_a_run_that_goes_on_is_told(data: Path) -> None:
    with feedwater.Loader(data, CenterCrop(4), batch_size=3) as before:
        next(iter(before))
        state = before.state_dict()
    stop_agent()
    write_pictures(data, 2)
    with feedwater.Loader(data, CenterCrop(4), batch_size=3) as loader:
        loader.load_state_dict(state)
        with pytest.raises(feedwater.DataError, match="it changed after"):
            next(iter(loader))


def test_a_run_amid_its_epoch_is_told(data: Path) -> None:
    with feedwater.Loader(data, CenterCrop(4), batch_size=3) as loader:
        assert read_values(loader) == [1] * 20
        write_pictures(data, 2)
        with pytest.raises(feedwater.DataError, match="it changed after"):
            read_values(loader)


def test_files_of_other_sizes_are_told(data: Path) -> None:
    write_pictures(data, 2, side=9)
    loader = feedwater.Loader(data, CenterCrop(4), batch_size=3)
    with loader, pytest.raises(feedwater.DataError, match=r"bytes, had .* it changed after"):
        next(iter(loader))
    with feedwater.Loader(data, CenterCrop(4), batch_size=3) as loader:
        assert read_values(loader) == [2] * 20
