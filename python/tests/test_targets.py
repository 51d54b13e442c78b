"""Boxes, keypoints and masks of instances that move as their pictures do, against torchvision's own from one draw."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import feedwater
from feedwater import Loader
from feedwater._dataset.rle import make_mask
from feedwater.testing import _apply_step

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
from torchvision import tv_tensors  # noqa: E402

pytestmark = pytest.mark.usefixtures("real")
SAMPLES = 10
FILL: dict[Any, Any] = {tv_tensors.Mask: 3, "others": 9}


def box_of(number: int) -> dict[str, Any]:
    """A target with boxes of its own count, some of which lie at the edges."""
    height, width = 40 + 3 * number, 60 - 2 * number
    rng = np.random.default_rng(number)
    corners = rng.uniform(0, 1, (number % 4, 2, 2)) * (width, height)
    boxes = np.concatenate([corners.min(1), corners.max(1)], 1).astype(np.float32)
    size = height, width
    return {
        "boxes": tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=size),
        "points": tv_tensors.KeyPoints(torch.from_numpy(corners[:, 0].astype(np.float32)), canvas_size=size),
        "labels": torch.arange(number % 4) + number,
        "image_id": number,
    }


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("detection")
    for number in range(SAMPLES):
        pixels = np.random.default_rng(number).integers(0, 256, (40 + 3 * number, 60 - 2 * number, 3), np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number:02}.jpg")
    return folder


def table(folder: Path) -> feedwater.Table:
    return feedwater.Table(sorted(folder.glob("*.jpg")), root=folder)


CASES: dict[str, list[Any]] = {
    "crop and flip": [v2.RandomResizedCrop(32), v2.RandomHorizontalFlip(), v2.RandomVerticalFlip(0.3)],
    "resize": [v2.Resize((48, 32)), v2.CenterCrop(40)],
    "short side": [v2.Resize(30, max_size=50), v2.RandomCrop(24, padding=(1, 2, 3, 4), pad_if_needed=True)],
    "pad": [v2.Pad((5, 6), fill=FILL), v2.Resize((32, 32))],
    "affine": [v2.Resize((32, 32)), v2.RandomAffine(30, (0.1, 0.2), (0.5, 1.5), 10)],
    "rotation": [v2.Resize((32, 32)), v2.RandomRotation(45)],
    "rotation that expands": [v2.Resize((32, 32)), v2.RandomRotation((30, 60), expand=True)],
    "perspective": [v2.Resize((32, 32)), v2.RandomPerspective(0.6, p=0.7)],
    "references": [
        v2.RandomPhotometricDistort(),
        v2.RandomZoomOut(fill=FILL, side_range=(1.0, 2.0)),
        v2.RandomHorizontalFlip(),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
    ],
    "sizes": [v2.ScaleJitter((40, 40)), v2.RandomShortestSize([20, 30], max_size=50), v2.RandomResize(20, 40)],
    "inside others": [
        v2.RandomApply([v2.RandomHorizontalFlip(1), v2.Compose([v2.Pad(2), v2.CenterCrop(30)])], 0.5),
        v2.RandomChoice([v2.RandomVerticalFlip(1), v2.Identity(), v2.ColorJitter(0.5)]),
        v2.RandomOrder([v2.RandomHorizontalFlip(0.5), v2.Pad(3)]),
    ],
    "erased behind": [v2.Resize((16, 16)), v2.ToImage(), v2.RandomErasing(0.5)],
}
BEHIND = [v2.ClampBoundingBoxes(), v2.SanitizeBoundingBoxes(min_size=2, labels_getter=lambda both: both[1]["labels"])]


def expected(steps: list[Any], sample: Any, target: dict[str, Any]) -> dict[str, Any]:
    """What torchvision makes of a target with what was drawn for its picture."""
    left = iter(sample.draws)
    for step in steps:
        if type(step).__name__ in ("ClampBoundingBoxes", "SanitizeBoundingBoxes"):
            target = step(tv_tensors.Image(torch.zeros(3, 8, 8)), target)[1]
        elif type(step).__name__ not in ("ToImage", "ToDtype", "RandomErasing"):
            draw = next(left)
            target = {
                name: _apply_step(step, value, draw) if isinstance(value, tv_tensors.TVTensor) else value
                for name, value in target.items()
            }
    return target


def assert_equal(made: dict[str, Any], wanted: dict[str, Any], where: str) -> None:
    assert list(made) == list(wanted)
    for name, value in wanted.items():
        if isinstance(value, torch.Tensor):
            assert type(made[name]) is type(value) and torch.equal(made[name], value), f"{where} {name}"
            assert getattr(made[name], "canvas_size", 0) == getattr(value, "canvas_size", 0), f"{where} {name}"
        else:
            assert made[name] == value


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES)
def test_targets_are_torchvisions_from_the_same_draws(pictures: Path, steps: list[Any]) -> None:
    whole, moved = [*steps, *BEHIND], 0
    given = [box_of(number) for number in range(SAMPLES)]
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "fields": ("image", "target", "index")}
    with Loader(table(pictures), v2.Compose(whole), targets=given, local_workers=1, **options) as loader:
        for images, targets, indices in loader:
            assert loader.last is not None
            samples = loader.replay_batch(loader.last.position)
            for image, made, index, sample in zip(images, targets, indices.tolist(), samples, strict=True):
                assert_equal(made, expected(whole, sample, box_of(index)), f"{sample.key} {sample.draws}")
                if not any(draw.get("op") == "RandomRotation" for draw in sample.draws):
                    assert made["boxes"].canvas_size == tuple(image.shape[-2:])  # with expand torchvision's differ
                moved += len(made["boxes"])
    assert moved, "some boxes are left"
    for number, row in enumerate(given):
        assert_equal(row, box_of(number), "the program's own are left alone")


def coco_file(folder: Path) -> Path:
    """A file of instances, whose pictures are in no order, and the last without a box."""
    images, annotations = [], []
    for number in reversed(range(SAMPLES)):
        images.append(
            {"id": 7 * number, "file_name": f"{number:02}.jpg", "height": 40 + 3 * number, "width": 60 - 2 * number}
        )
        for at in range(number % 3 if number < SAMPLES - 1 else 0):
            box = [1.5 + at, 2.25, 10.125 + number, 20.5]
            kept = {"id": len(annotations), "image_id": 7 * number, "bbox": box, "category_id": at + 1}
            annotations.append(kept | {"area": box[2] * box[3], "iscrowd": at})
    path = folder / "instances.json"
    categories = [{"id": at, "name": f"thing{at}"} for at in (1, 2, 3)]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def test_a_coco_file(pictures: Path, tmp_path: Path) -> None:
    data = feedwater.Coco(coco_file(tmp_path), pictures, keys=iter(("image_id", "boxes", "labels", "area", "iscrowd")))
    assert (len(data), data.categories[2]) == (SAMPLES, "thing2")
    with Loader(data, v2.Resize((20, 30)), batch_size=4) as loader:
        seen = [target for images, targets in loader for target in targets]
        assert loader.dataset is data
    assert [target["image_id"] for target in seen] == [7 * number for number in range(SAMPLES)]
    for number, target in enumerate(seen):
        count = number % 3 if number < SAMPLES - 1 else 0
        assert target["labels"].tolist() == list(range(1, count + 1)) and target["iscrowd"].tolist() == [*range(count)]
        size = 40 + 3 * number, 60 - 2 * number
        boxes = [[1.5 + at, 2.25, 11.625 + at + number, 22.75] for at in range(count)]
        wanted = tv_tensors.BoundingBoxes(torch.tensor(boxes).reshape(-1, 4), format="XYXY", canvas_size=size)
        assert torch.equal(target["boxes"], v2.functional.resize(wanted, [20, 30]))


CROWD = {"size": [4, 5], "counts": [2, 3, 6, 1, 8]}
TEXT = {"size": [4, 5], "counts": "236N2"}
"""The same by pycocotools.mask.frPyObjects."""
CROWD_MASK = np.array([[0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 0, 1, 0, 0]], np.uint8)


@pytest.mark.parametrize("segmentation", [CROWD, TEXT])
def test_masks_of_run_lengths(segmentation: dict[str, Any]) -> None:
    made = make_mask(segmentation, (4, 5), "here")
    assert made.dtype == np.uint8 and (made == CROWD_MASK).all()


@pytest.mark.parametrize(
    ("segmentation", "why"),
    [
        ({"size": [5, 4], "counts": [20]}, r"has size \[5, 4\], and the picture \[4, 5\]"),
        ({"size": [4, 5], "counts": [19]}, "do not add up to 4×5 pixels"),
        ({"size": [4, 5], "counts": [30, -10]}, "or some are below 0"),
        ({"size": [4, 5], "counts": [2**40, 1]}, "do not add up"),
        ({"size": [4, 5], "counts": [1.5]}, "a list of whole numbers, or a text"),
        ({"size": [4, 5], "counts": "236N "}, "counts have ' '"),
        ({"size": [4, 5], "counts": "P" * 99}, "counts have 'P'"),
        ({"size": [4, 5], "counts": "23P"}, "end amid a number"),
        ({"counts": [20]}, "has size None"),
        ([], r"segmentation is \[\]"),
        (None, "segmentation is None"),
    ],
)
def test_masks_that_are_none(segmentation: Any, why: str) -> None:
    with pytest.raises(feedwater.DataError, match=f"^here: .*{why}"):
        make_mask(segmentation, (4, 5), "here")


def test_outlines_say_what_fills_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    with pytest.raises(feedwater.DataError, match="pip install pycocotools, which fills outlines"):
        make_mask([[1, 1, 3, 1, 3, 3]], (4, 5), "here")


def test_masks_of_a_coco_file_move_with_the_boxes(pictures: Path, tmp_path: Path) -> None:
    path = coco_file(tmp_path)
    told = json.loads(path.read_text())
    sizes = {image["id"]: (image["height"], image["width"]) for image in told["images"]}
    for one in told["annotations"]:
        height, width = sizes[one["image_id"]]
        begin = 5 * height + one["id"]
        one["segmentation"] = {"size": [height, width], "counts": [begin, 3 * height, height * (width - 8) - one["id"]]}
    path.write_text(json.dumps(told))
    data = feedwater.Coco(path, pictures, keys=("masks", "labels"))
    with Loader(data, v2.Compose([v2.Resize((20, 30)), v2.RandomHorizontalFlip(1)]), batch_size=4) as loader:
        seen = [target for _, targets in loader for target in targets]
    for number, target in enumerate(seen):
        count = number % 3 if number < SAMPLES - 1 else 0
        assert target["masks"].shape == (count, 20, 30) and len(target["labels"]) == count
        whole = data.targets[number]["masks"]
        assert whole.sum() == 3 * count * (40 + 3 * number)
        assert torch.equal(target["masks"], v2.functional.resize(whole, [20, 30]).flip(-1))
    del told["images"][0]["height"]
    path.write_text(json.dumps(told))
    with pytest.raises(
        feedwater.DataError, match="masks need height and width of each picture, and picture 63 has none"
    ):
        feedwater.Coco(path, pictures, keys=("masks",))
    feedwater.Coco(path, pictures)


def test_the_same_on_nodes_and_after_a_copy(pictures: Path, nodes: Any) -> None:
    rows = [{"boxes": row["boxes"].tolist(), "labels": row["labels"]} for row in map(box_of, range(SAMPLES))]
    transform = v2.Compose([v2.RandomResizedCrop(32), v2.RandomHorizontalFlip()])
    given = {"targets": rows, "batch_size": 3, "shuffle": True}
    here = Loader(table(pictures), transform, **given)
    named = feedwater.Table([path.name for path in sorted(pictures.glob("*.jpg"))], root="photos")
    there = Loader(named, transform, nodes=[nodes.start(pictures)], **given)
    copied = pickle.loads(pickle.dumps(here))
    for one, two, three in zip(here, there, copied, strict=True):
        for a, b, c in zip(one[1], two[1], three[1], strict=True):
            assert_equal(a, b, "on a node")
            assert_equal(a, c, "of a copy")


def test_rows_without_a_sample_have_an_empty_target(pictures: Path, tmp_path: Path) -> None:
    rows = [box_of(number) for number in range(SAMPLES)]
    fields = ("image", "target", "valid")
    given = {"targets": rows, "batch_size": 8, "tail": "valid", "fields": fields}
    with Loader(table(pictures), v2.Resize((8, 8)), **given) as loader:
        *_, (_, targets, valid) = loader
    assert [bool(target) for target in targets] == valid.tolist() == [True] * 2 + [False] * 6


def first_error(pictures: Path, rows: Any, transform: Any = None, **options: Any) -> Any:
    with Loader(table(pictures), transform or v2.Resize((8, 8)), targets=rows, batch_size=2, **options) as loader:
        return next(iter(loader))


def rotated() -> Any:
    return tv_tensors.BoundingBoxes(torch.zeros(1, 5), format="XYWHR", canvas_size=(40, 60))


@pytest.mark.parametrize(
    ("rows", "error", "why"),
    [
        ([{}] * 9, feedwater.DataError, "targets= has 9 dicts, and the data 10 samples"),
        ({}, TypeError, "a sequence with a dict for each sample"),
        ([1] * 10, feedwater.DataError, r"targets\[0\] is 1: needs a dict"),
        ([box_of(3)] * 10, feedwater.DataError, r"targets\[0\]\['boxes'\] is for a picture of \(49, 54\).*\(40, 60\)"),
        ([{"boxes": rotated()}] * 10, feedwater.DataError, "rotated boxes, XYWHR, are not there"),
    ],
)
def test_rows_that_are_no_targets(pictures: Path, rows: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        first_error(pictures, rows)


@pytest.mark.parametrize(
    ("transform", "why"),
    [
        (v2.RandomIoUCrop(), "RandomIoUCrop: write RandomResizedCrop or RandomCrop: where it crops hangs on the boxes"),
        (v2.ElasticTransform(), "ElasticTransform: boxes and keypoints cannot follow it here"),
        (v2.RandAugment(), "RandAugment: boxes and keypoints cannot follow it here"),
        (v2.FiveCrop(8), "FiveCrop: boxes and keypoints cannot follow it here"),
        (feedwater.transforms.CenterCrop(8), r"write torchvision\.transforms\.v2\.CenterCrop"),
        (v2.RandomApply([v2.ClampBoundingBoxes()]), "ClampBoundingBoxes inside another transform: put it behind"),
    ],
)
def test_what_boxes_cannot_follow_is_refused_by_name(pictures: Path, transform: Any, why: str) -> None:
    with pytest.raises(feedwater.UnsupportedTransformError, match=why):
        first_error(pictures, [{}] * SAMPLES, transform)


@pytest.mark.parametrize(
    "options",
    [{"python": box_of}, {"apply_exif": True}, {"transform": feedwater.Views([v2.Resize((8, 8))] * 2)}],
)
def test_what_does_not_go_with_targets(pictures: Path, options: dict[str, Any]) -> None:
    with pytest.raises((feedwater.NotYetError, TypeError)):
        first_error(pictures, [{}] * SAMPLES, **options)


def test_transforms_of_boxes_need_boxes(pictures: Path) -> None:
    for make in (v2.SanitizeBoundingBoxes, v2.ClampBoundingBoxes):
        steps: Callable[[], Any] = make
        with pytest.raises(
            feedwater.UnsupportedTransformError, match=f"{make.__name__} works on boxes, .* pass targets="
        ):
            Loader(table(pictures), v2.Compose([v2.Resize((8, 8)), steps()]), batch_size=2)
