"""Views: several pictures of one, with the real agent."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_photos

import feedwater
from feedwater import Loader, Views, testing, transforms
from feedwater.errors import PlanError, UnsupportedTransformError

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")

pytestmark = pytest.mark.usefixtures("real")

FLOATS = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])]
JITTER = v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8)
LARGE = v2.Compose([v2.RandomResizedCrop(64, (0.4, 1), interpolation=3), v2.RandomHorizontalFlip(), JITTER])
SMALL = v2.Compose([v2.RandomResizedCrop(32, (0.05, 0.4)), v2.RandomGrayscale(0.2), v2.GaussianBlur(5)])
DINO = Views([LARGE, LARGE, SMALL, SMALL, v2.Compose([v2.ToImage(), v2.RandomResizedCrop(48), v2.RandomSolarize(128)])])


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_photos(tmp_path_factory.mktemp("few"), 12)


def test_each_view_is_torchvisions(photos: Path) -> None:
    assert testing.assert_parity(DINO, photos, samples=5, epochs=2) == 10


def test_batches_hold_what_replay_says(few: Path) -> None:
    with Loader(few, DINO, batch_size=5, shuffle=True) as loader:
        for images, labels in loader:
            assert isinstance(images, list)
            assert [tuple(view.shape[1:]) for view in images] == [(3, s, s) for s in (64, 64, 32, 32, 48)]
            samples = loader.replay_batch(loader.last.position)
            assert [sample.label for sample in samples] == labels.tolist()
            for row, sample in enumerate(samples):
                for view, seen in zip(images, sample.views, strict=True):
                    assert np.array_equal(view[row].permute(1, 2, 0), seen.image)
            assert sample.views[0].draws != sample.views[1].draws  # the same transform, drawn anew


def test_last_hop_of_each_view(few: Path) -> None:
    """Its own type, values and rectangles, in memory that is one lease."""
    normalised = v2.Compose([LARGE, *FLOATS, v2.RandomErasing(p=1.0, value=7.0)])
    half = v2.Compose([SMALL, v2.ToImage(), v2.ToDtype(torch.float16, scale=True)])
    with Loader(few, Views([normalised, SMALL, half, normalised]), batch_size=4, seed=3) as loader:
        kept = list(loader)
        for position, (images, _) in zip(range(0, 12, 4), kept, strict=True):
            assert [view.dtype for view in images] == [torch.float32, torch.uint8, torch.float16, torch.float32]
            for row, sample in enumerate(loader.replay_batch(position, 0)):
                pictures = [torch.from_numpy(view.image).permute(2, 0, 1) for view in sample.views]
                floats = [v2.Compose(FLOATS[1:])(picture) for picture in pictures]
                for view in (0, 3):
                    box = sample.views[view].draws[-1]
                    floats[view] = v2.functional.erase(
                        floats[view], box["i"], box["j"], box["h"], box["w"], torch.full((1, 1, 1), 7.0)
                    )
                    assert torch.equal(images[view][row], floats[view])
                assert torch.equal(images[1][row], pictures[1])
                assert torch.equal(images[2][row], v2.functional.to_dtype(pictures[2], torch.float16, scale=True))


def test_smaller_last_batch_and_small_ones_moved(few: Path) -> None:
    """Fields lie elsewhere in a small batch than in a whole one; all pixels are those of replay."""
    for options in ({}, {"memory_format": torch.contiguous_format}):
        with Loader(few, DINO, batch_size=7, **options) as loader:
            for images, _ in loader:
                for row, sample in enumerate(loader.replay_batch(loader.last.position)[: len(images[0])]):
                    for view, seen in zip(images, sample.views, strict=True):
                        assert np.array_equal(view[row].permute(1, 2, 0), seen.image)


def _sum(batch: Any) -> list[int]:
    images, labels = batch
    return [int(view.long().sum()) for view in images] + [int(labels.sum())]


def test_nodes_and_resume(few: Path, nodes: Any) -> None:
    address = nodes.start(few)
    with Loader(few, DINO, batch_size=5, shuffle=True) as loader:
        expected = [_sum(batch) for _ in range(2) for batch in loader]
    with Loader("photos", DINO, batch_size=5, shuffle=True, nodes=address) as loader:
        got = []
        for batch in loader:
            got.append(_sum(batch))
            if len(got) == 2:
                break
        state = json.loads(json.dumps(loader.state_dict()))
        again = pickle.loads(pickle.dumps(loader))
    with Loader("photos", DINO, batch_size=5, shuffle=True, nodes=address) as loader:
        loader.load_state_dict(state)
        got += [_sum(batch) for batch in loader] + [_sum(batch) for batch in loader]
    assert got == expected
    with again:
        assert [_sum(batch) for batch in again] == expected[2:3]


def test_as_many_views_as_there_may_be(few: Path) -> None:
    """What the agent is told of their last hops does not fit a packet."""
    view = v2.Compose([v2.Resize((8, 8)), *FLOATS])
    with Loader(few, Views([view] * 16), batch_size=5) as loader:
        images, _ = next(iter(loader))
    assert len(images) == 16
    assert all(torch.equal(one, images[0]) for one in images)


def test_one_view_is_a_list_too(few: Path) -> None:
    with Loader(few, Views([LARGE]), batch_size=5, fields={"image": "x", "index": "i"}) as loader:
        batch = next(iter(loader))
    assert [tuple(view.shape) for view in batch["x"]] == [(5, 3, 64, 64)]


def test_tails_and_broken_files(tmp_path: Path) -> None:
    folder = make_photos(tmp_path, 9)
    (folder / "class0" / "0000.jpg").write_bytes(b"no picture")
    options: dict[str, Any] = {"batch_size": 4, "tail": "valid", "fields": ("image", "index", "valid"), "max_errors": 5}
    with Loader(folder, DINO, on_error="skip", **options) as loader:
        batches = list(loader)
    (first, _, valid), (last, index, rest) = batches[0], batches[-1]
    assert valid.tolist() == [False, True, True, True]
    assert all(not view[0].any() and view[1].any() for view in first)
    assert rest.tolist() == [True, False, False, False]
    assert index.tolist()[1:] == [-1] * 3
    assert all(len(view) == 4 and not view[1:].any() for view in last)


def test_people_see_views(few: Path) -> None:
    with Loader(few, Views([v2.Compose([LARGE, *FLOATS]), SMALL]), batch_size=4) as loader:
        lines = loader.explain().splitlines()
        sheet = loader.preview(samples=2, epochs=2)
    assert [line.split()[0] for line in lines[:9]] == [
        *("op", "view", "RandomResizedCrop", "RandomHorizontalFlip", "RandomApply", "ToImage", "ToDtype", "Normalize"),
        "view",
    ]
    assert any("2 views, float32 and uint8" in line for line in lines)
    import io

    import PIL.Image

    width, _ = PIL.Image.open(io.BytesIO(sheet.png)).size
    assert width == 12 + (1 + 2 * 2) * (224 + 12)


class ContrastiveLearningViewGenerator:
    """As SimCLR programs have it."""

    def __call__(self, picture: Any) -> list[Any]:
        return [LARGE(picture), LARGE(picture)]


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (ContrastiveLearningViewGenerator(), r"Generator: write feedwater.Views\(\[…\]\), .*does not travel to nodes"),
        (v2.Compose([Views([LARGE]), v2.ToImage()]), "ToImage beside Views, which is the whole transform"),
        ([v2.Resize(64), Views([LARGE])], "Resize beside Views"),
        (v2.RandomApply([Views([LARGE])]), "Views inside another transform"),
        (Views([LARGE, v2.Normalize([0.5], [0.5])]), "view 1: Normalize needs a tensor"),
    ],
)
def test_what_cannot_be(few: Path, transform: Any, message: str) -> None:
    with pytest.raises(UnsupportedTransformError, match=message):
        Loader(few, transform, batch_size=4)


def test_views_need_a_size(few: Path) -> None:
    with Loader(few, Views([LARGE, v2.Resize(40)]), batch_size=4) as loader, pytest.raises(PlanError, match="in size"):
        next(iter(loader))


def test_views_are_a_list() -> None:
    for wrong in (LARGE, [], "ab"):
        with pytest.raises(UnsupportedTransformError, match="Views"):
            Views(wrong)


def test_without_torchvision(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "torch")
    crop = transforms.RandomResizedCrop(24)
    with Loader(few, transforms.Compose([feedwater.Views([crop, crop])]), batch_size=12) as loader:
        (first, second), _ = next(iter(loader))
    assert isinstance(first, np.ndarray)
    assert first.shape == second.shape == (12, 24, 24, 3)
    assert not np.array_equal(first, second)
