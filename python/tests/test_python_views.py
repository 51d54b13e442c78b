"""python= with masks and with Views: the function gets them, and gives them back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from conftest import make_photos
from python_functions import joined, one_of_two, see_masks

from feedwater import Loader, PythonError, Views, transforms

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")

pytestmark = pytest.mark.usefixtures("real")

CROP = [v2.RandomCrop(16), v2.RandomHorizontalFlip()]
TENSORS = [
    v2.ToImage(),
    v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}, scale=True),
]
FIELDS = ("image", "mask", "index")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Class folders of pictures and of masks."""
    pictures, masks = make_photos(tmp_path_factory.mktemp("views"), 10), tmp_path_factory.mktemp("masks")
    for file in sorted(pictures.rglob("*.jpg")):
        with PIL.Image.open(file) as picture:
            numbers = np.array(picture.convert("L")) // 8
        (masks / file.parent.name).mkdir(exist_ok=True)
        PIL.Image.fromarray(numbers).save(masks / file.parent.name / f"{file.stem}.png")
    return pictures, masks


def flattened(batch: Any) -> list[Any]:
    """The tensors of a batch, in order."""
    return [one for field in batch for one in (field if isinstance(field, list) else [field])]


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_a_function_gets_masks_and_views(pair: tuple[Path, Path], several: bool, tensors: bool) -> None:
    """Each as a batch without it has them; replay tells what it made."""
    steps = [*CROP, *(TENSORS if tensors else [])]
    transform = (
        Views([v2.Compose(steps), v2.Compose([v2.CenterCrop(12), *steps[2:]])]) if several else v2.Compose(steps)
    )
    options: dict[str, Any] = {"batch_size": 4, "masks": pair[1], "shuffle": True, "seed": 3}
    with Loader(pair[0], transform, fields=FIELDS, **options) as loader:
        plain = [flattened(batch) for batch in loader]
    fields = (*FIELDS, "tensors", "number")
    with Loader(pair[0], transform, python=see_masks, python_workers=2, fields=fields, **options) as loader:
        made = [flattened(batch) for batch in loader]
        last = loader.replay(int(made[-1][-3][0])).result
        assert "python" in loader.explain()
    views = 2 if several else 1
    for before, after in zip(plain, made, strict=True):
        for view in range(views):
            image = before[view] if tensors else before[view].permute(0, 2, 3, 1)
            assert torch.equal(image, after[view])
            assert torch.equal(before[views + view].flip(-1), after[views + view])
            assert before[views + view].dtype == after[views + view].dtype
        assert set(after[-2].tolist()) == {2 * views if tensors else 0}
    masks = last["mask"] if several else [last["mask"]]
    assert all(np.array_equal(mask, one[0]) for mask, one in zip(masks, made[-1][views:], strict=False))


def test_views_may_be_joined_but_not_in_some_rows(pair: tuple[Path, Path]) -> None:
    views = Views([transforms.CenterCrop(16), transforms.CenterCrop(16)])
    with Loader(pair[0], views, batch_size=4, python=joined, python_workers=1) as loader:
        assert next(iter(loader))[0].shape == (4, 32, 16, 3)
    uneven = Loader(pair[0], views, batch_size=4, python=one_of_two, python_workers=1)
    said = "makes 1 of image, and of the first one 2 of image"
    with uneven, pytest.raises(PythonError, match=said) as caught:
        next(iter(uneven))
    assert caught.value.index == 3


def test_views_without_masks_are_the_same_in_any_number_of_processes(pair: tuple[Path, Path]) -> None:
    views = Views([transforms.RandomCrop(16), transforms.RandomCrop(12)])
    with Loader(pair[0], views, batch_size=3) as loader:
        plain = [[view.clone() for view in images] for images, _ in loader]
    for workers in (1, 3):
        with Loader(pair[0], views, batch_size=3, python=_passes, python_workers=workers) as loader:
            got = [images for images, _ in loader]
        assert all(
            torch.equal(a.permute(0, 2, 3, 1), b)
            for one, two in zip(plain, got, strict=True)
            for a, b in zip(one, two, strict=True)
        )


def _passes(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return {**sample, "image": list(sample["image"])}


def test_one_view_gives_lists_too(pair: tuple[Path, Path]) -> None:
    with Loader(pair[0], Views([transforms.CenterCrop(8)]), batch_size=2, python=_passes, python_workers=1) as loader:
        images, _ = next(iter(loader))
    assert [tuple(image.shape) for image in images] == [(2, 8, 8, 3)]
