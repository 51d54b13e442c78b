"""What a Loader reads: a folder by path, a torchvision ImageFolder, or a Subset of one."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ._as_made import indices_of
from ._listing import Listing
from ._order import Indices
from .errors import DataError

__all__ = ["Source", "folder", "resolve"]

PATH_STARTS = ("/", "./", "../", "~")
"""With nodes, a string that begins like this, or a Path, is a folder here; any other names a root of theirs."""


@dataclass(frozen=True)
class Source:
    """A data set, as the plan names it."""

    path: str
    """Without a root an absolute path; else below the root."""
    root: str = ""
    """The name that nodes serve a folder under; empty: the folder of that path on this machine."""
    local: str | None = None
    """With nodes: a folder of this machine, to be matched with theirs by fingerprint; then root and path are empty."""
    transform: Any = None
    """The data set's own transform."""
    indices: Indices | None = None
    """The samples to use, in this order; None for all."""
    classes: tuple[str, ...] | None = None
    """The classes the data set object found; the agent must find the same."""
    samples: int | None = None
    """How many samples it found."""
    listing: Listing | None = None
    """Its samples; the agent must find the same."""

    @property
    def name(self) -> str:
        """For messages."""
        return self.local or "/".join(filter(None, (self.root, self.path)))

    def plan(self) -> dict[str, str]:
        """As the plan says it."""
        return {"root": self.root, "path": self.path}

    def check(self, classes: list[str], samples: int) -> None:
        """Raises DataError if the agent sees another data set than the object that was passed."""
        if self.classes is not None and list(self.classes) != classes:
            raise DataError(f"{self.name}: {_other_classes(self.classes, classes)}")
        if self.samples is not None and self.samples != samples:
            raise DataError(
                f"{self.name}: {samples} samples, but the ImageFolder has {self.samples}. "
                "If you took some out of it, pass the whole one in a Subset: torch.utils.data.Subset(folder, indices)"
            )


def _other_classes(mine: tuple[str, ...], found: list[str]) -> str:
    """The first difference, and what to do."""
    label = next((at for at, (a, b) in enumerate(zip(mine, found)) if a != b), min(len(mine), len(found)))
    here, there = (repr(names[label]) if label < len(names) else "none" for names in (mine, found))
    return (
        f"classes differ from those of the ImageFolder: label {label} is {here} in its .classes, and {there} by the "
        "folders' names. Leave .classes and .class_to_idx as they were made, and keep names for people in a list beside"
    )


def resolve(source: Any, nodes: tuple[str, ...]) -> Source:
    """The Source that a source= argument means. Nothing is opened."""
    if isinstance(source, str) and nodes and not source.startswith(PATH_STARTS):
        root, _, below = source.strip("/").partition("/")
        return Source(below, root)
    if isinstance(source, (str, os.PathLike)):
        return _of_path(os.fspath(source), nodes)
    kind = type(source)
    home = f"{kind.__module__}.{kind.__qualname__}"
    if home == "torchvision.datasets.folder.ImageFolder":
        return _of_image_folder(source, nodes)
    if home == "torch.utils.data.dataset.Subset":
        return _of_subset(source, nodes)
    if home == "torch.utils.data.dataset.ConcatDataset":
        raise TypeError(
            "source=ConcatDataset is not there yet: put the class folders (or links to them) into one folder"
        )
    raise TypeError(
        f"source={home}: pass the path of a folder of class folders, a torchvision ImageFolder or a Subset of one. "
        "A data set with code of its own cannot travel to nodes; to choose samples use a Subset"
    )


def folder(name: str, value: Any, nodes: tuple[str, ...]) -> Source:
    """The Source that an argument means which names a folder, as source does."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}={value!r:.80}: pass the path of a folder")
    return resolve(value, nodes)


def _of_path(path: str, nodes: tuple[str, ...]) -> Source:
    path = os.path.expanduser(path)
    if not os.path.isdir(path):
        kind = "not a folder" if os.path.exists(path) else "no such folder"
        hint = '. To name a root of the nodes and a path below it, write "root/path"' if nodes else ""
        raise DataError(f"{path}: {kind} (looked from {Path.cwd()}){hint}")
    here = os.path.abspath(path)
    return Source("", local=here) if nodes else Source(here)


def _of_image_folder(folder: Any, nodes: tuple[str, ...]) -> Source:
    if getattr(folder.loader, "__module__", "") != "torchvision.datasets.folder":
        raise TypeError(f"this ImageFolder has a loader of its own, {folder.loader!r}: nodes decode by themselves")
    if folder.target_transform is not None:
        raise TypeError(
            "this ImageFolder has a target_transform, which cannot travel to nodes: apply it in batch_transform"
        )
    if folder.extensions is None:
        raise TypeError(
            "this ImageFolder has an is_valid_file, which cannot travel: pass a Subset with the good samples"
        )
    named = _of_path(os.path.abspath(folder.root), nodes)
    _check_labels(folder)
    return replace(
        named,
        transform=folder.transform,
        classes=tuple(folder.classes),
        samples=len(folder.samples),
        listing=Listing(folder),
    )


def _check_labels(folder: Any) -> None:
    """Raises DataError if class_to_idx is not the places in classes: labels are these."""
    for label, name in enumerate(folder.classes):
        if folder.class_to_idx.get(name) != label:
            raise DataError(
                f"{folder.root}: label {label} is {name!r} in the ImageFolder's .classes, and its .class_to_idx has "
                f"{_labelled(folder, name, label)}. Labels are the folders' places in sorted order: leave both as they "
                "were made, change labels in batch_transform=fn(batch, rng), and keep names for people in a list beside"
            )


def _labelled(folder: Any, name: str, label: int) -> str:
    if name in folder.class_to_idx:
        return f"{folder.class_to_idx[name]!r} for it"
    return f"{next((n for n, value in folder.class_to_idx.items() if value == label), None)!r} for that label"


def _of_subset(subset: Any, nodes: tuple[str, ...]) -> Source:
    inner = resolve(subset.dataset, nodes)
    indices = indices_of(subset)
    whole = inner.samples if inner.indices is None else len(inner.indices)
    if whole is not None and not 0 <= indices.min() <= indices.max() < whole:
        raise DataError(f"the Subset's indices reach from {indices.min()} to {indices.max()}, its data set has {whole}")
    if inner.indices is not None:
        indices = inner.indices[indices]
    return replace(inner, indices=indices)
