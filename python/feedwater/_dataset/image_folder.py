"""What a Loader reads of torchvision's ImageFolder, and of what is derived from it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from .._batch.relabel import mapping_of
from .._torchvision.collate import replaced_collate
from .._torchvision.genuine import is_own, replaced_reader
from ..errors import DataError

__all__ = ["check_folder", "check_labels", "check_reader", "is_image_folder", "names_of", "root_of"]

HOME = "torchvision.datasets.folder"
READ = (
    "loader",
    "transform",
    "target_transform",
    "samples",
    "targets",
    "classes",
    "class_to_idx",
    "extensions",
)
"""Attributes of the object that a class can only shadow."""
OVERRIDABLE = frozenset(("__init__", "find_classes", "make_dataset", "extra_repr"))
"""What a class may do its own way: its outcome is in the object's samples, which are compared with the folder's."""
SHOWN = frozenset(("__repr__", "__str__", "__hash__", "__eq__", "__init_subclass__", "__class_getitem__"))
OTHERWISE = (
    "nodes decode by themselves. Pass what is behind it, a plain ImageFolder or its path, and do the rest by "
    "python=fn(sample, rng) or batch_transform=fn(batch, rng)"
)


def is_image_folder(source: Any) -> bool:
    """Whether it is an ImageFolder of torchvision, or of a class derived from it."""
    return any((base.__module__, base.__qualname__) == (HOME, "ImageFolder") for base in type(source).__mro__)


def check_folder(folder: Any, *, relabels: bool = False) -> None:
    """Raises TypeError for what the object does between a file and a batch that nodes do not.

    relabels says that its target_transform is heard if it looks labels up in a table.
    """
    kind = type(folder)
    for base in kind.__mro__:
        if base.__module__.startswith("torchvision.datasets."):
            break
        for name in vars(base):
            if _is_override(name):
                raise TypeError(f"{kind.__qualname__} overrides {name}, which cannot travel to nodes: {OTHERWISE}")
    missing = next((name for name in READ if not hasattr(folder, name)), None)
    if missing is not None:
        raise TypeError(f"this {kind.__qualname__} has no {missing!r}: its __init__ must call that of ImageFolder")
    check_reader(folder)
    if getattr(folder.loader, "__module__", "") != HOME or not is_own(folder.loader):
        raise TypeError(f"this ImageFolder has a loader of its own, {folder.loader!r}: nodes decode by themselves")
    if folder.target_transform is not None and not (relabels and mapping_of(folder.target_transform)):
        raise TypeError(
            "this ImageFolder has a target_transform, which cannot travel to nodes: pass relabel={label: new label}, "
            "or apply it in batch_transform"
        )
    if folder.extensions is None:
        raise TypeError(
            "this ImageFolder has an is_valid_file, which cannot travel: pass a Subset with the good samples"
        )


def _is_override(name: str) -> bool:
    """Whether a class that defines it may give other samples than an ImageFolder."""
    if name in OVERRIDABLE | SHOWN:
        return False
    reads = name in READ or name in ("imgs", "__getitems__", "__getattr__", "__getattribute__", "__iter__", "root")
    return reads or (hasattr(sys.modules[HOME].ImageFolder, name) and not _is_of_types(name))


def _is_of_types(name: str) -> bool:
    """Whether every class has one, whatever it does."""
    return name in vars(type("Empty", (), {})) or name in (
        "__parameters__",
        "__orig_bases__",
        "__annotations__",
        "__slots__",
    )


def check_reader(folder: Any) -> None:
    """Raises TypeError if something on the way from a file to its picture was replaced by the program."""
    replaced = replaced_reader(folder)
    if replaced is None and (collate := replaced_collate()) is not None:
        raise TypeError(
            f"{collate} was replaced, which makes batches for a DataLoader: {OTHERWISE}, or put it back before the "
            "Loader is made"
        )
    if replaced is not None:
        raise TypeError(f"{replaced} was replaced, which is on the way from a file to a picture: {OTHERWISE}")


def names_of(folder: Any) -> list[str]:
    """The names of its class folders, by label. ImageNet has these aside: its classes are words."""
    return list(getattr(folder, "wnids", None) or folder.classes)


def root_of(folder: Any) -> str:
    """The folder of its class folders; torchvision's ImageNet and EuroSAT call another one root, above it."""
    root = os.path.expanduser(str(folder.root))
    if not folder.samples:
        return root
    path, label = folder.samples[0]
    names = names_of(folder)
    name = names[label] if isinstance(label, int) and 0 <= label < len(names) else None
    if name is None or os.path.exists(os.path.join(root, name)):
        return root
    above = [str(parent.parent) for parent in Path(path).parents if parent.name == name]
    return next((there for there in reversed(above) if _class_folders(there) == sorted(names)), root)


def _class_folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except OSError:
        return []


def check_labels(folder: Any) -> None:
    """Raises DataError if class_to_idx is not the places in classes: labels are these."""
    names = names_of(folder)
    index = getattr(folder, "wnid_to_idx", None) or folder.class_to_idx
    for label, name in enumerate(names):
        if index.get(name) != label:
            raise DataError(
                f"{folder.root}: label {label} is {name!r} in the ImageFolder's .classes, and its .class_to_idx has "
                f"{_describe_label(index, name, label)}. Labels are the folders' places in sorted order: leave both as "
                "they were made, change labels in batch_transform=fn(batch, rng), and keep names for people in a list "
                "beside"
            )


def _describe_label(index: Any, name: str, label: int) -> str:
    if name in index:
        return f"{index[name]!r} for it"
    return f"{next((n for n, value in index.items() if value == label), None)!r} for that label"
