"""An ImageFolder that was edited: what a DataLoader would hear and a Loader cannot is an error, never other labels."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedwater
from feedwater import Loader
from feedwater.transforms import CenterCrop

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("torchvision.datasets")
data = pytest.importorskip("torch.utils.data")


@pytest.fixture
def folder(fake: Any) -> Any:
    """An ImageFolder of the fake data set."""
    for c in range(10):
        (fake.data / f"class{c}" / "deep").mkdir(parents=True)
        for i in range(10):
            (fake.data / f"class{c}" / ("deep" if i < 5 else "") / f"{i}.jpg").touch()
    return datasets.ImageFolder(fake.data)


def relabel(folder: Any) -> None:
    folder.samples = [(path, label % 2) for path, label in folder.samples]


def reorder(folder: Any) -> None:
    folder.samples[3], folder.samples[4] = folder.samples[4], folder.samples[3]


def exchange(folder: Any) -> None:
    """As many, but not the same ones."""
    folder.samples = [*folder.samples[:30], *folder.samples[31:], folder.samples[0]]


def elsewhere(folder: Any) -> None:
    folder.samples[7] = ("/somewhere/else.jpg", 0)


EDITS = [
    (relabel, r"sample 20 .* class2/5\.jpg with label 0, of its folder class2/5\.jpg with label 2.*batch_transform"),
    (reorder, r"sample 3 .* class0/9\.jpg with label 0, of its folder class0/8\.jpg with label 0.*Subset.*sampler="),
    (exchange, r"sample 30 .* class3/6\.jpg with label 3, of its folder class3/5\.jpg with label 3"),
    (elsewhere, r"sample 7 .*somewhere/else\.jpg with label 0, of its folder class0/deep/2\.jpg"),
]


@pytest.mark.parametrize(("edit", "said"), EDITS)
def test_edited_samples_are_told(folder: Any, edit: Callable[[Any], None], said: str) -> None:
    edit(folder)
    for source in (folder, data.Subset(folder, [0, 1, 2])):
        loader = Loader(source, CenterCrop(8), batch_size=2)
        for _ in range(2):  # asking again does not get by
            with pytest.raises(feedwater.DataError, match=said):
                next(iter(loader))
        with pytest.raises(feedwater.DataError, match="other samples, labels or order"):
            next(iter(pickle.loads(pickle.dumps(loader))))


def test_a_folder_as_it_was_made_is_taken(folder: Any, fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fake.data.parent)
    for root in (fake.data, "data", "./data/", f"{fake.data}//", Path("data/../data")):
        loader = Loader(datasets.ImageFolder(root), CenterCrop(8), batch_size=2)
        assert next(iter(loader)) is not None
        assert next(iter(pickle.loads(pickle.dumps(loader)))) is not None
    folder.samples = [(os.path.relpath(path), label) for path, label in folder.samples]
    assert next(iter(Loader(folder, CenterCrop(8), batch_size=2))) is not None, "spelled otherwise, the same files"


def test_the_agent_lists_what_torchvision_lists(real: str, tmp_path: Path) -> None:
    import PIL.Image

    for name in ("b/1.jpg", "b/10.JPG", "b/2.png", "a/z/1.jpg", "a/y.jpg", "a/Ä.jpg", "a/z.webp", "empty not/1.bmp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.new("RGB", (9, 9)).save(tmp_path / name)
    folder = datasets.ImageFolder(tmp_path)
    with Loader(folder, CenterCrop(8), batch_size=8) as loader:
        (batch,) = loader
        assert batch[1].tolist() == [label for _, label in folder.samples]
    relabel(folder)
    with pytest.raises(feedwater.DataError, match=r"sample 7 of the ImageFolder is empty not/1\.bmp with label 0"):
        next(iter(Loader(folder, CenterCrop(8), batch_size=8)))


def test_edited_classes_say_which_side_has_which(folder: Any, fake: Any) -> None:
    folder.class_to_idx = {name: label // 5 for name, label in folder.class_to_idx.items()}
    with pytest.raises(feedwater.DataError, match=r"label 1 is 'class1' in .*\.classes, .*class_to_idx has 0 for it"):
        Loader(folder, batch_size=1)
    folder = datasets.ImageFolder(fake.data)
    folder.classes = ["tench", *folder.classes[1:]]
    with pytest.raises(feedwater.DataError, match=r"label 0 is 'tench' in .*class_to_idx has 'class0' for that label"):
        Loader(folder, batch_size=1)
    folder.class_to_idx = {name: label for label, name in enumerate(folder.classes)}
    with pytest.raises(feedwater.DataError, match=r"label 0 is 'tench' in its \.classes, and 'class0' by the folders"):
        next(iter(Loader(folder, batch_size=1)))


def retransform(folder: Any) -> None:
    folder.transform = CenterCrop(6)


def regrow(folder: Any) -> None:
    folder.transform = [*folder.transform, CenterCrop(6)]


def target(folder: Any) -> None:
    folder.target_transform = int


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (retransform, r"ImageFolder's transform was changed .*new\.load_state_dict\(.*strict=False"),
        (regrow, "ImageFolder's transform was changed"),
        (target, "ImageFolder's target_transform was changed"),
        (relabel, "ImageFolder's samples were changed.*batch_transform"),
        (reorder, "ImageFolder's samples were changed.*Subset"),
    ],
)
def test_edits_between_passes_are_told(folder: Any, edit: Callable[[Any], None], said: str) -> None:
    folder.transform = [CenterCrop(8)]
    loader = Loader(data.Subset(folder, range(20)), batch_size=10)
    assert len(list(loader)) == 2
    before = {**vars(folder), "samples": list(folder.samples)}
    edit(folder)
    for attempt in (lambda: next(iter(loader)), loader.peek, lambda: next(iter(loader))):
        with pytest.raises(feedwater.DataError, match=said):
            attempt()
        assert (loader.state_dict()["epoch"], loader.state_dict()["consumed"]) == (1, 0)
    vars(folder).update(before)
    assert len(list(loader)) == 2, "as it was made"
    assert loader.last is not None and loader.last.epoch == 1


def test_a_transform_changed_in_place_is_told(folder: Any) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    resize = v2.Resize((8, 8))
    folder.transform = v2.Compose([resize, v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    theirs, own = Loader(folder, batch_size=50), Loader(folder, folder.transform, batch_size=50)
    others = Loader(folder, v2.Resize((8, 8)), batch_size=50)
    sides = {theirs: "ImageFolder's transform", own: "^the transform"}
    for loader in sides:
        assert len(list(loader)) == 2
    resize.size = [6, 6]
    for loader, said in sides.items():
        with pytest.raises(feedwater.DataError, match=f"{said} was changed .*strict=False"):
            next(iter(loader))
    assert len(list(others)) == 2, "another object, of the same kind"
    resize.size = [8, 8]
    for loader in sides:
        assert len(list(loader)) == 2, "as it was made"
    folder.transform.transforms.pop()
    with pytest.raises(feedwater.DataError, match="ImageFolder's transform was changed"):
        next(iter(theirs))


def test_a_new_loader_goes_on_with_a_new_transform(folder: Any) -> None:
    folder.transform = CenterCrop(8)
    old = Loader(folder, batch_size=10)
    own = Loader(folder, CenterCrop(8), batch_size=10)
    next(iter(old))
    retransform(folder)
    assert next(iter(own)) is not None, "it has a transform of its own"
    assert next(iter(pickle.loads(pickle.dumps(old)))) is not None, "a copy has no ImageFolder"
    with pytest.raises(feedwater.DataError):
        next(iter(old))
    new = Loader(folder, batch_size=10)
    new.load_state_dict(old.state_dict(), strict=False)
    assert next(iter(new))[0].shape[-2:] == (6, 6)
    assert new.last is not None and (new.last.epoch, new.last.position) == (1, 0)


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_edited_indices_are_told(folder: Any, fake: Any, kind: Any) -> None:
    fake.set(window=1)
    subset = data.Subset(folder, kind([3, 1, 4]))
    old = Loader(subset, CenterCrop(8), batch_size=1)
    nested = Loader(data.Subset(subset, [0, 2]), CenterCrop(8), batch_size=1)
    it = iter(old)
    next(it)
    subset.indices[2] = 5
    assert [old.last.indices.tolist() for _ in it if old.last] == [[1], [4]], "a pass is what it was when it began"
    with pytest.raises(feedwater.DataError, match="Subset's indices"):
        next(iter(nested))
    with pytest.raises(feedwater.DataError, match=r"Subset's indices were changed .*new\.set_epoch\("):
        next(iter(old))
    new = Loader(subset, CenterCrop(8), batch_size=2)
    new.set_epoch(old.state_dict()["epoch"])
    assert [new.last.indices.tolist() for _ in new if new.last] == [[3, 1], [5]]
    assert new.last is not None and new.last.epoch == 1
