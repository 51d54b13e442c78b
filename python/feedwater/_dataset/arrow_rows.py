"""datasets.Dataset, of Hugging Face: where the pictures of its rows lie in its Arrow files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.homes import homes_of
from ..errors import DataError

__all__ = ["ArrowRows", "FileRows", "is_arrow_dataset", "read_arrow_rows"]

HOME = "datasets.arrow_dataset.Dataset"
OTHERS = {
    "datasets.iterable_dataset.IterableDataset": "it has no length: load it without streaming=True",
    "datasets.dataset_dict.DatasetDict": 'it is several splits: pass one of them, as source["train"]',
    "datasets.dataset_dict.IterableDatasetDict": 'load one split without streaming=True, as split="train"',
}
LABELS = ("label", "labels", "class", "target", "cls")
"""What a column of labels may be called."""
IMAGES = ("image", "img", "jpg", "jpeg", "png", "picture")


@dataclass(frozen=True)
class ArrowRows:
    """Rows that are ranges of files."""

    files: list[str]
    """Absolute paths."""
    file: Any
    """Of each row the number of its file, an array; offset and length are its bytes there."""
    offset: Any
    length: Any


@dataclass(frozen=True)
class FileRows:
    """Rows that are files of their own."""

    paths: list[str]


@dataclass(frozen=True)
class Columns:
    """What is read of a data set's columns."""

    image: str
    labels: list[int] | list[str] | None
    classes: list[str]
    """Names, by label; empty: labels have none."""
    turned: bool
    """Whether the data set's own pictures are turned as their EXIF data says: an Image column's are."""


def is_arrow_dataset(source: Any) -> bool:
    """Whether it is a datasets.Dataset. Raises TypeError for others of that library, which say why not."""
    homes = homes_of(source)
    for home in homes:
        if home in OTHERS:
            raise TypeError(f"source={type(source).__name__}: {OTHERS[home]}")
    return HOME in homes


def read_columns(source: Any, image: str | None, label: str | None) -> Columns:
    """The column of pictures, labels and names of classes. Raises TypeError or DataError where they are not plain."""
    if source.format["type"] == "custom":
        raise TypeError(
            "this datasets.Dataset has a transform of its own (set_transform, with_transform), which cannot travel to "
            "nodes: pass it without, as dataset.with_format(None), and give transform= or python= to the Loader"
        )
    if len(source) == 0:
        raise DataError("the data set is empty")
    features = source.features
    pictures = [name for name, feature in features.items() if type(feature).__name__ == "Image"]
    pictures = pictures or [name for name in IMAGES if name in features]
    if image is not None and image not in features:
        raise DataError(f"image={image!r}: the data set has the columns {', '.join(features)}")
    if image is None and len(pictures) != 1:
        said = f"columns {', '.join(pictures)} have pictures" if pictures else f"none of {', '.join(features)} has"
        raise DataError(f"the column of pictures is not plain, {said}: name it by image=")
    name = _find_label(features, label)
    labels, classes = (None, []) if name is None else _read_labels(source, name)
    column = image or pictures[0]
    return Columns(column, labels, classes, _is_turned(column, features[column]))


def _is_turned(name: str, feature: Any) -> bool:
    """Columns.turned, of a column. Raises DataError for one of datasets.Image whose pictures are no RGB."""
    if type(feature).__name__ != "Image":
        return False
    mode = getattr(feature, "mode", None)
    if mode not in (None, "RGB"):
        raise DataError(
            f"column {name}: Image(mode={mode!r}) asks for pictures of that mode, and they are decoded as RGB here: "
            f'pass dataset.cast_column("{name}", datasets.Image()), with v2.Grayscale() in the transform for grey ones'
        )
    return bool(getattr(feature, "decode", True))


def _find_label(features: Any, label: str | None) -> str | None:
    if label is not None:
        if label not in features:
            raise DataError(f"label={label!r}: the data set has the columns {', '.join(features)}")
        return label
    named = [name for name, feature in features.items() if type(feature).__name__ == "ClassLabel"]
    if len(named) > 1:
        raise DataError(f"the column of labels is not plain, {', '.join(named)} have classes: name it by label=")
    return named[0] if named else next((name for name in LABELS if name in features), None)


def _read_labels(source: Any, name: str) -> tuple[list[Any] | None, list[str]]:
    """Labels in the order of rows, None where there are none, and the names of classes."""
    values = source.data.column(name).to_pylist()
    chosen = _indices_of(source)
    labels = values if chosen is None else [values[at] for at in chosen.tolist()]
    classes = list(getattr(source.features[name], "names", None) or ())
    missing = sum(label is None or (bool(classes) and label == -1) for label in labels)
    if missing == len(labels):
        return None, []
    if missing:
        raise DataError(f"column {name}: {missing:,} of {len(labels):,} rows have no label")
    return labels, classes


def _indices_of(source: Any) -> Any:
    """The rows of the table that the data set has, in its order; None: all as they lie."""
    table = source._indices
    return None if table is None else table.column(0).to_numpy()


def read_arrow_rows(source: Any, image: str) -> ArrowRows | FileRows | str:
    """Where the pictures lie; a string says why they lie in no files that can be read."""
    chunks = source.data.column(image).chunks
    chosen = _indices_of(source)
    if all(_is_of_paths(chunk) for chunk in chunks):
        paths = [path for chunk in chunks for path in chunk.field("path").to_pylist()]
        paths = paths if chosen is None else [paths[at] for at in chosen.tolist()]
        if all(os.path.isabs(path) and "://" not in path for path in paths) and len(set(paths)) == len(paths):
            return FileRows(paths)
        return "its pictures are files that are not on this machine, or come twice"
    maps, files, parts = _list_maps(), dict[str, int](), []
    for chunk in chunks:
        part = _find_ranges(chunk, maps)
        if isinstance(part, str):
            return part
        path, offset, length = part
        parts.append((np.full(len(chunk), files.setdefault(path, len(files))), offset, length))
    file, offset, length = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if chosen is not None:
        file, offset, length = file[chosen], offset[chosen], length[chosen]
    return ArrowRows(list(files), file, offset, length)


def _is_of_paths(chunk: Any) -> bool:
    """Whether all pictures of a column's part are named, and none is in it."""
    names = [field.name for field in chunk.type] if str(chunk.type).startswith("struct") else []
    if not {"bytes", "path"} <= set(names):
        return False
    return bool(chunk.field("bytes").null_count == len(chunk) and chunk.field("path").null_count == 0)


def _find_ranges(chunk: Any, maps: list[tuple[int, int, int, str]]) -> tuple[str, Any, Any] | str:
    """The file that a column's part lies in, and where each of its pictures does."""
    values = chunk.field("bytes") if str(chunk.type).startswith("struct") else chunk
    if str(values.type) not in ("binary", "large_binary"):
        return f"its pictures are {values.type}"
    if values.null_count:
        return "some of its rows have no picture, or its path alone"
    _, ends, data = values.buffers()
    kind = np.dtype("<i4" if str(values.type) == "binary" else "<i8")
    ends = np.frombuffer(ends, kind, len(values) + 1, values.offset * kind.itemsize).astype(np.int64)
    first, last = data.address + int(ends[0]), data.address + int(ends[-1])
    for start, end, offset, path in maps:
        if start <= first and last <= end:
            return path, data.address - start + offset + ends[:-1], np.diff(ends)
    return "it is in memory, or its Arrow files are compressed"


def _list_maps() -> list[tuple[int, int, int, str]]:
    """Where files are mapped into this process: from and to which address, from which byte on, and their paths."""
    maps = []
    try:
        with open("/proc/self/maps", "rb") as lines:
            for line in lines:
                span, _, offset, _, inode, *path = line.rstrip(b"\n").split(None, 5)
                if inode == b"0" or not path or path[0].endswith(b" (deleted)"):
                    continue
                start, end = (int(number, 16) for number in span.split(b"-"))
                maps.append((start, end, int(offset, 16), os.fsdecode(path[0].replace(b"\\012", b"\n"))))
    except OSError:  # there is no such file on this system
        pass
    return maps
