"""relabel=: other labels in place of those of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_photos

import feedwater
from feedwater import transforms

pytestmark = pytest.mark.usefixtures("real")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 pictures of five classes, class0 to class4."""
    return make_photos(tmp_path_factory.mktemp("relabel"), 20)


def labels_of(source: Any, **options: Any) -> list[int]:
    options.setdefault("batch_size", 6)
    with feedwater.Loader(source, transforms.CenterCrop(8), **options) as loader:
        return [int(label) for batch in loader for label in batch[1]]


PLAIN = [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4


def test_labels_by_numbers_and_by_names(data: Path) -> None:
    assert labels_of(data) == PLAIN
    table = {0: 7, 1: -100, 2: 7, 3: 0, 4: 1}
    assert labels_of(data, relabel=table) == [table[label] for label in PLAIN]
    named = {f"class{old}": new for old, new in table.items()}
    assert labels_of(data, relabel=named) == [table[label] for label in PLAIN]
    assert labels_of(data, relabel={**named, np.int64(1): 9} | {1: 9}) == [9 if x == 1 else table[x] for x in PLAIN]


def test_rows_without_a_sample_and_repeats(data: Path) -> None:
    table = {label: label + 10 for label in range(5)}
    options: dict[str, Any] = {"tail": "valid", "fields": ("image", "label", "valid"), "relabel": table}
    with feedwater.Loader(data, transforms.CenterCrop(8), batch_size=6, **options) as loader:
        label, valid = [np.array(field) for field in list(loader)[-1][1:]]
    assert label[valid].tolist() == [14, 14] and label[~valid].tolist() == [0] * 4


def test_a_target_transform_that_is_a_table(data: Path) -> None:
    torchvision = pytest.importorskip("torchvision")
    torch = pytest.importorskip("torch")
    table = {0: 1, 1: 0, 2: 1, 3: 0, 4: 1}
    for held in (table, [1, 0, 1, 0, 1]):
        folder = torchvision.datasets.ImageFolder(str(data), target_transform=held.__getitem__)
        assert labels_of(folder) == [folder[index][1] for index in range(20)]
        assert labels_of(torch.utils.data.Subset(folder, [0, 5])) == [1, 0]
        with pytest.raises(ValueError, match="leave one of them out"):
            labels_of(folder, relabel=table)
    for other in (torch.utils.data.ConcatDataset([folder, folder]), feedwater.Table):
        with pytest.raises(TypeError, match="target_transform"):
            labels_of(other(folder) if other is feedwater.Table else other)


def test_what_is_no_such_table_is_refused(data: Path) -> None:
    for wrong, error, why in (
        ([1, 2], TypeError, r"needs a dict, \{label or name"),
        ({}, ValueError, "names no label"),
        ({0: "one"}, TypeError, "the new label of 0 is 'one', and labels are whole numbers"),
        ({0.5: 1}, TypeError, "a label is 0.5"),
        ({0: True}, TypeError, "is True"),
        ({"cat": 1}, feedwater.DataError, "names 'cat', which is no class of .*'class0'"),
        ({0: 1, "class1": 2}, feedwater.DataError, "no new label for 'class2', 'class3', 'class4'"),
    ):
        with pytest.raises(error, match=why):
            labels_of(data, relabel=wrong)
    with pytest.raises(ValueError, match="return another label from that function"):
        feedwater.Loader(data, batch_size=1, relabel={0: 1}, python=max)
