"""What a script is told that passes what a Loader does not take: the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import feedwater
from feedwater import Loader

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("torchvision.datasets")
v2 = pytest.importorskip("torchvision.transforms.v2")
from torch.utils.data import ConcatDataset, DataLoader, Subset  # noqa: E402


def test_files_that_a_row_of_data_sets_has_twice(folder: Any) -> None:
    for row in (ConcatDataset([folder, folder]), ConcatDataset([folder, Subset(folder, [7])])):
        with pytest.raises(feedwater.DataError, match=r"\.jpg is in this ConcatDataset twice.*sampler=\[\*range"):
            Loader(row, feedwater.transforms.CenterCrop(8), batch_size=2)
    twice = Loader(folder, feedwater.transforms.CenterCrop(8), batch_size=50, sampler=[*range(100), *range(100)])
    drawn = [index for _ in twice for index in twice.last.indices.tolist()]  # type: ignore[union-attr]
    assert drawn == [*range(100)] * 2


def test_a_path_of_bytes(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"pass a str or a Path, os\.fsdecode\(source\)"):
        Loader(bytes(tmp_path), batch_size=2)


def test_a_mode_under_which_tensors_have_no_values(fake: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    loader = fake.loader(transform=v2.Compose([v2.CenterCrop(8), v2.ToImage()]))
    with FakeTensorMode(), pytest.raises(feedwater.UnsupportedTransformError, match=r"FakeTensorMode is on.* outside"):
        next(iter(loader))
    assert next(iter(loader)) is not None
    with pytest.raises(feedwater.UnsupportedTransformError) as caught:
        fake.loader(transform=v2.Compose([v2.CenterCrop(8), v2.ToImage(), v2.Normalize([0.5], [0.5])]))
    assert "is on" not in str(caught.value)


def test_batches_are_tuples_and_dicts_can_be_changed(fake: Any) -> None:
    assert isinstance(next(iter(fake.loader())), tuple)
    assert isinstance(next(iter(DataLoader([(1, 2)], 1))), list), "what docs/migrating.md says of a DataLoader"
    batch = next(iter(fake.loader(fields={"image": "image", "label": "label"})))
    batch["image"] = None
