"""torchvision's transforms on whole batches, by the real agent: they know pictures, masks and labels from the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from conftest import make_photos

from feedwater import Loader, Views

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")

pytestmark = pytest.mark.usefixtures("real")

SIZE = v2.Compose([v2.Resize((24, 20)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
MIXUP = v2.MixUp(alpha=1.0, num_classes=5)
FLIP = v2.RandomHorizontalFlip(1.0)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_photos(tmp_path_factory.mktemp("few"), 12)


def first(source: Path, transform: Any, **arguments: Any) -> Any:
    with Loader(source, transform, **{"batch_size": 12, "shuffle": True, **arguments}) as loader:
        return next(iter(loader))


@pytest.mark.parametrize("mix", [MIXUP, v2.CutMix(num_classes=5), v2.RandomChoice([MIXUP]), v2.Normalize([0.5], [2])])
def test_every_view_is_treated_alike(few: Path, mix: Any) -> None:
    (one, two), _ = first(few, Views([SIZE, SIZE]), batch_transform=mix)
    (plain, _), _ = first(few, Views([SIZE, SIZE]))
    assert torch.equal(one, two) and not torch.equal(one, plain)
    assert type(one) is torch.Tensor


@pytest.mark.parametrize(
    "fields",
    [
        ("image", "index", "label"),
        ("label", "image"),
        ("index", "label", "key", "image", "valid"),
        {"label": "y_labels", "index": "number", "image": "x"},
    ],
)
@pytest.mark.parametrize("transform", [MIXUP, FLIP])
def test_it_gets_pictures_and_labels_wherever_they_are(few: Path, fields: Any, transform: Any) -> None:
    images, labels = first(few, SIZE, batch_transform=transform)
    plain = first(few, SIZE, fields=fields)
    batch = first(few, SIZE, fields=fields, batch_transform=transform)
    names = list(fields)
    if isinstance(batch, dict):
        assert list(batch) == list(fields.values())
        batch, plain = list(batch.values()), list(plain.values())
    for name, got, was in zip(names, batch, plain, strict=True):
        want = {"image": images, "label": labels}.get(name, was)
        assert torch.equal(got, want) if isinstance(want, torch.Tensor) else got == want


def test_masks_move_with_their_pictures(few: Path, tmp_path: Path) -> None:
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    for number in range(3):
        grey = np.random.default_rng(number).integers(0, 256, (40, 40), dtype=np.uint8)
        PIL.Image.fromarray(np.stack([grey] * 3, -1)).save(tmp_path / "images" / f"{number}.png")
        PIL.Image.fromarray(grey).save(tmp_path / "masks" / f"{number}.png")
    crop = v2.Compose([v2.CenterCrop(30), v2.ToImage()])
    for moved in (FLIP, v2.RandomRotation((90, 90)), v2.Compose([FLIP, v2.RandomVerticalFlip(1.0)])):
        for fields in (("image", "mask"), ("mask", "label", "image")):
            arguments = {"masks": tmp_path / "masks", "batch_size": 3, "fields": fields}
            plain, batch = (first(tmp_path / "images", crop, batch_transform=t, **arguments) for t in (None, moved))
            image, mask = (batch[fields.index(name)] for name in ("image", "mask"))
            assert torch.equal(image[:, 0], mask)
            assert not torch.equal(mask, plain[fields.index("mask")])
    with pytest.raises(ValueError, match=r"MixUp mixes pictures with their labels, and not masks"):
        Loader(tmp_path / "images", crop, batch_size=3, masks=tmp_path / "masks", batch_transform=MIXUP)


@pytest.mark.parametrize("transform", [MIXUP, v2.CutMix(num_classes=5)])
def test_rows_that_hold_nothing_are_not_mixed_into_others(few: Path, transform: Any) -> None:
    fields = ("image", "label", "valid")
    images, labels, valid = first(few, SIZE, batch_size=15, tail="valid", fields=fields, batch_transform=transform)
    assert valid.tolist() == [True] * 12 + [False] * 3
    whole, whole_labels = first(few, SIZE, batch_transform=transform)
    assert torch.equal(images[:12], whole) and torch.equal(labels[:12], whole_labels)
    assert not images[12:].any() and not labels[12:].any()
    (one, two), both, _ = first(
        few, Views([SIZE, SIZE]), batch_size=15, tail="valid", fields=fields, batch_transform=transform
    )
    assert torch.equal(one, images) and torch.equal(two, images) and torch.equal(both, labels)


def test_pictures_of_different_sizes_around_holes(few: Path, tmp_path: Path) -> None:
    for number, file in enumerate(sorted(few.glob("*/*"))[:4]):
        (tmp_path / "class").mkdir(exist_ok=True)
        (tmp_path / "class" / f"{number}.jpg").write_bytes(b"no picture" if number == 1 else file.read_bytes())
    arguments = {"batch_size": 4, "shuffle": False, "on_error": "skip", "max_errors": 4}
    arguments["fields"] = ("image", "label", "valid")
    plain, _, _ = first(tmp_path, v2.ToImage(), **arguments)
    images, _, valid = first(tmp_path, v2.ToImage(), batch_transform=FLIP, **arguments)
    assert valid.tolist() == [True, False, True, True]
    for image, was in zip(images, plain, strict=True):
        assert torch.equal(image, was.flip(-1))


@pytest.mark.parametrize(
    ("transform", "fields", "error", "message"),
    [
        (MIXUP, ("image",), ValueError, "MixUp mixes labels too: fields needs them"),
        (v2.RandomApply([v2.Compose([MIXUP])]), ("image",), ValueError, "RandomApply mixes labels too"),
        (FLIP, ("label",), ValueError, "RandomHorizontalFlip works on pictures: fields needs image"),
        (
            v2.functional.hflip,
            ("image", "label"),
            TypeError,
            "batch_transform=horizontal_flip: only transforms",
        ),
    ],
)
def test_what_cannot_be(few: Path, transform: Any, fields: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Loader(few, SIZE, batch_size=4, fields=fields, batch_transform=transform)


def test_a_class_derived_from_torchvisions_is_called_as_its_base(few: Path) -> None:
    class Mine(v2.MixUp):  # type: ignore[misc]
        pass

    assert torch.equal(
        first(few, SIZE, batch_transform=Mine(num_classes=5))[1],
        first(few, SIZE, batch_transform=v2.MixUp(num_classes=5))[1],
    )
