"""Detection data sets: files and targets, of COCO's JSON and of torchvision's CocoDetection."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._common.homes import home_of, homes_of
from ..errors import DataError
from .rle import make_mask
from .table import Table

__all__ = ["Coco", "is_coco_detection", "read_coco_detection"]

HOME = "torchvision.datasets.coco.CocoDetection"
WRAPPER = "torchvision.tv_tensors._dataset_wrapper.VisionDatasetTVTensorWrapper"
KEYS = ("image_id", "boxes", "labels", "area", "iscrowd", "masks")
"""What a target may have."""


class Coco:
    """Pictures with boxes, for Loader(Coco(…), …): batches are (image, target), a target a dict for each sample.

    annotations   COCO's file of instances, .json
    root          the folder that its file names are below: a folder here, or with nodes "root/path"
    keys          what each target has, of image_id, boxes, labels, area, iscrowd, masks

    Samples are in the order of their ids, those without a box among them, as torchvision's CocoDetection has them.
    boxes are tv_tensors.BoundingBoxes, XYXY, and labels COCO's category ids. The file is read when this is made.
    masks are tv_tensors.Mask, [instances, height, width], of run lengths; outlines are filled by pycocotools.
    For type checkers pass targets=coco.targets too, by which they know what batches are.
    """

    def __init__(
        self,
        annotations: str | os.PathLike[str],
        root: str | os.PathLike[str],
        *,
        keys: Iterable[str] = ("image_id", "boxes", "labels"),
    ) -> None:
        keys = tuple(keys)
        unknown = next((key for key in keys if key not in KEYS), None)
        if unknown is not None:
            raise ValueError(f"keys: {unknown!r} is none of {', '.join(KEYS)}")
        path = os.path.expanduser(os.fspath(annotations))
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        images = _read_list(path, told, "images", ("id", "file_name"))
        self.ids = [image["id"] for image in sorted(images, key=lambda image: image["id"])]
        """Of the pictures, in the order of samples."""
        self.categories: dict[int, str] = {one["id"]: one.get("name", "") for one in told.get("categories", ())}
        """Names by label."""
        names = {image["id"]: image["file_name"] for image in images}
        if len(names) != len(images):
            raise DataError(f"{path}: two pictures have one id")
        self.table = Table([names[one] for one in self.ids], root=root)
        sizes = {image["id"]: (image.get("height"), image.get("width")) for image in images}
        self.targets: Sequence[Mapping[str, Any]] = CocoTargets(path, {one: sizes[one] for one in self.ids}, told, keys)

    def __len__(self) -> int:
        """Pictures in it."""
        return len(self.table)

    def __repr__(self) -> str:
        return f"<feedwater.Coco of {len(self):,} pictures below {self.table.root}>"


def _read_list(path: str, told: Any, name: str, needs: Sequence[str]) -> list[dict[str, Any]]:
    rows = told.get(name) if isinstance(told, dict) else None
    if not isinstance(rows, list):
        raise DataError(f"{path}: no list of {name!r}: this is no COCO file of instances")
    bad = next((at for at, row in enumerate(rows) if not all(key in row for key in needs)), None)
    if bad is not None:
        raise DataError(f"{path}: {name}[{bad}] needs {', '.join(needs)}")
    return rows


class CocoTargets(Sequence[Mapping[str, Any]]):
    """The targets of a COCO file, made when they are asked for."""

    def __init__(
        self, path: str, sizes: Mapping[int, tuple[Any, Any]], told: dict[str, Any], keys: tuple[str, ...]
    ) -> None:
        masked = "masks" in keys
        needs = ("image_id", "bbox", "category_id", *(("segmentation",) if masked else ()))
        wanted = ("bbox", "category_id", "area", "iscrowd", *(("id", "segmentation") if masked else ()))
        by_id: dict[int, list[dict[str, Any]]] = {one: [] for one in sizes}
        for one in _read_list(path, told, "annotations", needs):
            if one["image_id"] not in by_id:
                raise DataError(f"{path}: an annotation is of picture {one['image_id']}, which is not there")
            by_id[one["image_id"]].append({name: one.get(name, 0) for name in wanted})
        unsized = next(
            (one for one, size in sizes.items() if masked and any(type(side) is not int for side in size)), None
        )
        if unsized is not None:
            raise DataError(f"{path}: masks need height and width of each picture, and picture {unsized} has none")
        self._path, self._ids, self._sizes, self._keys = path, list(sizes), list(sizes.values()), keys
        self._rows = list(by_id.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: Any) -> Any:
        rows = self._rows[at]
        target = {
            key: self._ids[at] if key == "image_id" else _make_value(key, rows) for key in self._keys if key != "masks"
        }
        if "masks" in self._keys:
            target["masks"] = _make_masks(rows, self._sizes[at], self._path)
        return target


def _make_value(key: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    """What a target has of a picture's annotations: their boxes, XYXY, or a number of each."""
    import torch

    if key == "boxes":
        corners = [(x, y, x + w, y + h) for x, y, w, h in (row["bbox"] for row in rows)]
        return torch.tensor(corners, dtype=torch.float32).reshape(-1, 4)
    name = "category_id" if key == "labels" else key
    return torch.tensor([row[name] for row in rows], dtype=torch.float32 if key == "area" else torch.int64)


def _make_masks(rows: Sequence[Mapping[str, Any]], size: tuple[int, int], path: str) -> Any:
    """A mask for each of a picture's annotations."""
    import torch
    from torchvision import tv_tensors

    made = np.zeros((len(rows), *size), np.uint8)
    for at, row in enumerate(rows):
        made[at] = make_mask(row["segmentation"], size, f"{path}: annotation {row['id']}")
    return tv_tensors.Mask(torch.from_numpy(made))


class WrappedTargets(Sequence[Mapping[str, Any]]):
    """Those of torchvision's CocoDetection in wrap_dataset_for_transforms_v2, as that makes them."""

    def __init__(self, data_set: Any) -> None:
        self._data_set = data_set

    def __len__(self) -> int:
        return len(self._data_set)

    def __getitem__(self, at: Any) -> Any:
        import torch

        own, wrapped = self._data_set._dataset, self._data_set
        one = own.ids[at]
        image = own.coco.loadImgs(one)[0]
        picture = torch.empty(1, 1, 1, dtype=torch.uint8).expand(3, image["height"], image["width"])
        return wrapped._wrapper(at, (picture, own._load_target(one)))[1]


def is_coco_detection(source: Any) -> bool:
    """Whether it is torchvision's CocoDetection, wrapped for v2 or not, or of a class derived from it."""
    return HOME in homes_of(source)


def read_coco_detection(source: Any) -> tuple[Table, Sequence[Mapping[str, Any]], Any]:
    """Files, targets and transforms of a CocoDetection.

    Raises TypeError for one that is not wrapped for v2, or whose samples nodes cannot make.
    """
    if WRAPPER not in homes_of(source):
        raise TypeError(
            "source=CocoDetection: wrap it, so that boxes are known from other numbers: "
            "torchvision.datasets.wrap_dataset_for_transforms_v2(dataset)"
        )
    own = source._dataset
    if home_of(own) != HOME:
        raise TypeError(f"source={type(own).__qualname__} is derived from CocoDetection, and its code does not travel")
    if source.transform is not None or source.target_transform is not None:
        raise TypeError("this CocoDetection has transform= or target_transform=: pass transforms=, for both together")
    paths = [own.coco.loadImgs(one)[0]["file_name"] for one in own.ids]
    return Table(paths, root=os.path.abspath(own.root)), WrappedTargets(source), source.transforms
