"""torchvision's data sets that are lists of files, and what ConcatDataset and Subset make of them: their rows."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from .._common.homes import home_of
from .._torchvision.genuine import is_own
from ..errors import DataError
from . import image_folder
from .subset import indices_of
from .wrappers import check_sizes, check_wrapper

__all__ = ["Rows", "is_file_list", "read_rows"]

HOME = "torchvision.datasets."
PAIRS = {"DatasetFolder": "samples", "Imagenette": "_samples", "RenderedSST2": "_samples", "StanfordCars": "_samples"}
"""Classes of torchvision, and where they have pairs of a path and a label."""
COLUMNS = ("DTD", "FGVCAircraft", "Flowers102", "Food101", "SUN397")
"""Those that have _image_files and _labels."""
PETS = {("category",): "_labels", ("binary-category",): "_bin_labels"}
"""Targets of OxfordIIITPet that are one number, and where they are."""
SUBSET, CONCATENATION = "torch.utils.data.dataset.Subset", "torch.utils.data.dataset.ConcatDataset"
INSTEAD = (
    "pass feedwater.Table(paths, labels) and do the rest by python=fn(sample, rng) or batch_transform=fn(batch, rng)"
)


@dataclass(frozen=True)
class Rows:
    """What a data set lists, as it is now."""

    paths: list[Any]
    labels: list[Any]
    classes: tuple[str, ...]
    """Names, by label; empty where labels have none."""
    root: str | None
    """The folder that the data set calls its own."""
    transforms: tuple[Any, ...]
    """Its own, each once."""


def _own_class(source: Any) -> str | None:
    """The class of torchvision, of those that are known here, that it is of or that its class is derived from."""
    known = {*PAIRS, *COLUMNS, "OxfordIIITPet"}
    return next(
        (k.__name__ for k in type(source).__mro__ if k.__module__.startswith(HOME) and k.__name__ in known), None
    )


def is_file_list(source: Any) -> bool:
    """Whether rows can be read of it. Subsets of anything else are none."""
    if home_of(source) == SUBSET:
        return is_file_list(source.dataset)
    return home_of(source) == CONCATENATION or _own_class(source) is not None


def read_rows(source: Any) -> Rows:
    """The rows of a data set. Raises TypeError for one that does more between a file and a sample than nodes do."""
    if home_of(source) == SUBSET:
        whole, chosen = read_rows(source.dataset), indices_of(source).tolist()
        if not all(-len(whole.paths) <= at < len(whole.paths) for at in chosen):
            raise DataError(f"the Subset's indices reach beyond the {len(whole.paths)} samples of its data set")
        return replace(whole, paths=[whole.paths[at] for at in chosen], labels=[whole.labels[at] for at in chosen])
    if home_of(source) == CONCATENATION:
        check_wrapper(source)
        parts = [read_rows(part) for part in source.datasets]
        check_sizes(source, [len(part.paths) for part in parts])
        return _concatenate(parts)
    if image_folder.is_image_folder(source):
        image_folder.check_folder(source)
        image_folder.check_labels(source)
        return _of_pairs(source, source.samples, image_folder.names_of(source), image_folder.root_of(source))
    name = _own_class(source)
    if name is None:
        raise TypeError(f"source={home_of(source)}: a data set with code of its own cannot travel to nodes: {INSTEAD}")
    _check_plain(source, name)
    names, root = list(getattr(source, "classes", None) or ()), os.path.expanduser(os.fspath(source.root))
    if name in PAIRS:
        return _of_pairs(source, getattr(source, PAIRS[name]), names, root)
    if name == "OxfordIIITPet":
        labels = PETS.get(tuple(source._target_types))
        if labels is None:
            raise TypeError(f"OxfordIIITPet with target_types={source._target_types}: labels have to be one number")
        names = names if labels == "_labels" else list(source.bin_classes)
        return _of_columns(source, source._images, getattr(source, labels), names, root)
    return _of_columns(source, source._image_files, source._labels, names, root)


def _of_pairs(source: Any, pairs: Any, names: list[str], root: str) -> Rows:
    return _of_columns(source, [path for path, _ in pairs], [label for _, label in pairs], names, root)


def _of_columns(source: Any, paths: Any, labels: Any, names: list[str], root: str) -> Rows:
    labels = list(labels)
    usable = len(set(names)) == len(names) and all(isinstance(name, str) and name for name in names)
    if not usable or (labels and max(labels) >= len(names)):
        names = []
    return Rows(list(paths), labels, tuple(names), root, (source.transform,))


def _concatenate(parts: list[Rows]) -> Rows:
    """Labels are as each part has them; they have names where all parts have the same."""
    classes = parts[0].classes if all(part.classes == parts[0].classes for part in parts) else ()
    roots = {part.root for part in parts}
    transforms: list[Any] = []
    for part in parts:
        transforms += [one for one in part.transforms if not any(one is known for known in transforms)]
    return Rows(
        [path for part in parts for path in part.paths],
        [label for part in parts for label in part.labels],
        classes,
        roots.pop() if len(roots) == 1 else None,
        tuple(transforms),
    )


def _check_plain(source: Any, name: str) -> None:
    """Raises TypeError for what a data set of torchvision does that nodes do not."""
    kind = type(source)
    if kind.__name__ != name or not kind.__module__.startswith(HOME):
        raise TypeError(f"{kind.__qualname__} is derived from {name}, and its code cannot travel to nodes: {INSTEAD}")
    image_folder.check_reader(source)
    loader = getattr(source, "loader", None)
    if loader is not None and (getattr(loader, "__module__", "") != f"{HOME}folder" or not is_own(loader)):
        raise TypeError(f"this {name} has a loader of its own, {loader!r}: nodes decode by themselves")
    if source.target_transform is not None:
        raise TypeError(
            f"this {name} has a target_transform, which cannot travel to nodes: apply it in batch_transform"
        )
    joint = getattr(source, "transforms", None)
    if joint is not None and type(joint).__name__ != "StandardTransform":
        raise TypeError(f"this {name} has transforms=, for picture and label together: pass transform=")
    if name == "DatasetFolder" and getattr(source, "extensions", None) is None:
        raise TypeError(
            "this DatasetFolder has an is_valid_file, which cannot travel: pass feedwater.Table(folder.samples)"
        )
