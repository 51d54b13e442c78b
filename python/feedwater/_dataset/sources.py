"""What a Loader reads: a folder by path, a torchvision ImageFolder, a Table, or a Subset of one."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._agent.table_text import TableText
from .._batch.relabel import mapping_of
from .._common.filenames import escape_name, to_json
from .._common.homes import home_of
from .._common.urls import without_secrets
from .._order.steps import Indices, from_end
from ..errors import DataError
from . import arrow_rows, image_folder
from .arrow_reader import ArrowReader
from .bytes_source import Bytes
from .coco import Coco, is_coco_detection, read_coco_detection
from .file_lists import is_file_list, read_rows
from .labels import number_labels
from .listing import Listing
from .mask_files import Masks
from .subset import indices_of
from .table import PATH_STARTS, Table, encode_ranges

__all__ = ["Source", "resolve_folder", "resolve_masks", "resolve_source"]

log = logging.getLogger("feedwater")

PARTS = (".csv", ".tsv", ".jsonl", ".tar", ".parquet")
"""How the names of lists, and of tar and Parquet files end."""
UNREAD = (
    ".gz",
    ".tgz",
    ".zst",
    ".bz2",
    ".xz",
    ".lz4",
    ".zip",
    ".7z",
    ".rar",
    ".arrow",
    ".feather",
    ".mds",
    ".zstd",
    ".tfrecord",
    ".tfrecords",
    ".beton",
    ".lmdb",
    ".mdb",
    ".rec",
    ".h5",
    ".hdf5",
    ".npy",
    ".npz",
    ".mat",
)
"""How those of other files of pictures end, of which the agent says what they are."""

WILDCARD = re.compile(r"[{*?\[]")
"""What makes a path a pattern."""

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
"""How the name of something on a server begins."""


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
    relabel: dict[Any, Any] | None = None
    """What its own target_transform looks labels up in."""
    indices: Indices | None = None
    """The samples to use, in this order; None for all."""
    classes: tuple[str, ...] | None = None
    """The classes the data set object found; the agent must find the same."""
    samples: int | None = None
    """How many samples it found."""
    listing: Listing | None = None
    """Its samples; the agent must find the same."""
    table: TableText | None = None
    """A list of the samples, with paths below the folder; None: the folder itself says."""
    program: Bytes | None = None
    """What reads the samples in processes of this machine; None: the agent reads files."""
    image: str | None = None
    """The column of pictures, where it and that of labels were chosen here, and the agent is asked for none."""
    targets: Any = None
    """A dict for each sample, of a data set that has such."""
    allow_empty: bool = False
    """Whether class folders without pictures are classes, which have labels."""
    turned: bool = False
    """Whether the data set object turns pictures as their EXIF data says, when it reads them."""

    @property
    def name(self) -> str:
        """For messages."""
        return escape_name(self.local or "/".join(filter(None, (self.root, self.path))))

    @property
    def folder(self) -> str:
        """What `feedwater index` on this machine reads the same pictures from; empty: nothing that is known."""
        listed = self.root or self.table is not None or self.program is not None
        return self.local or ("" if listed else self.path)

    @property
    def may_have_values(self) -> bool:
        """Whether samples may have more than a picture and a label. Of most paths only the agent finds out."""
        if self.image is not None or self.program is not None:
            return False
        here = self.local or ("" if self.root else self.path)
        if self.table is not None or not os.path.isdir(here):
            return True
        return os.path.isfile(os.path.join(here, "index.json"))

    @property
    def no_values(self) -> str:
        """Why samples have nothing more, where that is not plain."""
        if self.image is not None:
            return (
                ". Of a datasets.Dataset pictures and labels come. For other columns pass the path of a file that "
                "dataset.to_parquet wrote, if the pictures are in it, or of files feedwater.Table(paths, labels, "
                "columns=…)"
            )
        return ". Of feedwater.Bytes pictures and labels come" if self.program is not None else ""

    def to_plan(self) -> dict[str, Any]:
        """As the plan says it."""
        path = self.path if self.program is None else self.program.start_serving()
        said: dict[str, Any] = {"root": to_json(self.root), "path": to_json(path)}
        if self.table is not None:
            said["table"] = self.table.sha256
        return said | {"allow_empty": True} if self.allow_empty else said

    def check_data_set(self, classes: list[str], samples: int) -> None:
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


def resolve_source(
    source: Any,
    nodes: tuple[str, ...],
    *,
    image: str | None = None,
    label: str | None = None,
    layout: str | None = None,
) -> Source:
    """The Source that a source= argument means. Nothing is opened.

    image and label name columns of a data set; layout says how a path is laid out.
    """
    if isinstance(source, str) and URL.match(source):
        return _of_url(source, nodes)
    if isinstance(source, str) and nodes and not source.startswith(PATH_STARTS):
        root, _, below = source.strip("/").partition("/")
        return Source(below, root)
    if isinstance(source, (str, os.PathLike)):
        return _of_path(os.fspath(source), nodes, named=layout is not None)
    if isinstance(source, Table):
        return _of_table(source, nodes)
    if isinstance(source, Bytes):
        return _of_bytes(source, nodes)
    if isinstance(source, Coco):
        return replace(_of_table(source.table, nodes), targets=source.targets)
    if is_coco_detection(source):
        table, targets, transform = read_coco_detection(source)
        return replace(_of_table(table, nodes), targets=targets, transform=transform)
    home = home_of(source)
    if image_folder.is_image_folder(source):
        return _of_image_folder(source, nodes)
    if home == "torch.utils.data.dataset.Subset":
        return _of_subset(source, nodes, image, label)
    if arrow_rows.is_arrow_dataset(source):
        return _of_arrow(source, nodes, image, label)
    if is_file_list(source):
        return _of_file_list(source, nodes)
    if isinstance(source, bytes):
        raise TypeError(f"source={source!r:.80}: pass a str or a Path, os.fsdecode(source)")
    samples = next((name for name in ("samples", "imgs") if hasattr(source, name)), None)
    rows = f"feedwater.Table(dataset.{samples})" if samples else "feedwater.Table(paths, labels)"
    raise TypeError(
        f"source={home}: pass the path of a folder of class folders, a torchvision ImageFolder or another of its data "
        f"sets of files, a datasets.Dataset, a Subset of one, or {rows}. A data set with code of its own cannot "
        "travel to nodes; to choose samples use a Subset"
    )


def resolve_folder(name: str, value: Any, nodes: tuple[str, ...]) -> Source:
    """The Source that an argument means which names a folder, as source does."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}={value!r:.80}: pass the path of a folder")
    return resolve_source(value, nodes)


def resolve_masks(value: Any, nodes: tuple[str, ...]) -> tuple[Source | None, dict[str, Any]]:
    """The Source that masks= means, None for none, and what the plan says of its files besides."""
    if value is None:
        return None, {}
    named = value if isinstance(value, Masks) else Masks(value)
    return resolve_folder("masks", named.folder, nodes), named.to_plan()


def _of_url(url: str, nodes: tuple[str, ...]) -> Source:
    """What lies on a server: read by this machine alone, with its own credentials."""
    if nodes:
        raise DataError(
            f"{without_secrets(url)}: nodes read no place that a trainer names by its URL. Give it to them: "
            "feedwater serve --data NAME=URL, and name it here as NAME, or NAME/path below it"
        )
    return Source(url)


def _of_path(path: str, nodes: tuple[str, ...], *, named: bool = False) -> Source:
    """Of a path here, whose layout may be named."""
    path = os.path.expanduser(path)
    if not os.path.isdir(path) and not _is_part(path) and not (named and os.path.isfile(path)):
        absent = "no such file or folder" if os.path.splitext(path)[1] else "no such folder"
        kind = "not a folder" if os.path.exists(path) else absent
        hint = '. To name a root of the nodes and a path below it, write "root/path"' if nodes else ""
        if os.path.isfile(path):
            hint += ". Of a tar, Parquet or list file whose name does not say so, layout= does"
        raise DataError(f"{path}: {kind} (looked from {Path.cwd()}){hint}")
    here = os.path.abspath(path)
    return Source("", local=here) if nodes else Source(here)


def _is_part(path: str) -> bool:
    """Whether a path that is no folder's names a list of files, or tar files: what is in them the agent finds out."""
    if wildcard := WILDCARD.search(path):
        return os.path.isdir(os.path.dirname(path[: wildcard.start()]) or ".")
    return path.lower().endswith((*PARTS, *UNREAD)) and os.path.isfile(path)


def _of_table(table: Table, nodes: tuple[str, ...]) -> Source:
    root = table.root
    if URL.match(root):
        named = _of_url(root, nodes)
    elif nodes and not root.startswith(PATH_STARTS):
        name, _, below = root.strip("/").partition("/")
        named = Source(below, name)
    else:
        here = os.path.expanduser(root)
        if not os.path.isdir(here):
            raise DataError(f"{here}: no such folder (looked from {Path.cwd()}), and the table's paths are below it")
        named = Source("", local=os.path.abspath(here)) if nodes else Source(os.path.abspath(here))
    return replace(named, table=table.text, samples=len(table))


def _of_bytes(source: Bytes, nodes: tuple[str, ...]) -> Source:
    if nodes:
        raise DataError(
            "feedwater.Bytes is read by processes of this machine, and its pictures are decoded here: leave nodes= "
            "out, or write the pictures to files or tar files, which nodes read by themselves"
        )
    return Source(source.place, program=source, samples=len(source))


def _of_file_list(source: Any, nodes: tuple[str, ...]) -> Source:
    rows = read_rows(source)
    if len(rows.transforms) > 1:
        raise TypeError("the data sets of this ConcatDataset have different transforms: give all of them the same one")
    twice = next((path for path, count in Counter(rows.paths).items() if count > 1), None)
    if twice is not None:
        raise DataError(
            f"{escape_name(os.fsdecode(twice))} is in this {type(source).__name__} twice, and a list has each file "
            "once. To draw files more often pass each once, and a sampler that gives its index again: "
            "sampler=[*range(n), *range(n)]"
        )
    return replace(_of_table(Table(source), nodes), transform=rows.transforms[0])


def _of_arrow(source: Any, nodes: tuple[str, ...], image: str | None, label: str | None) -> Source:
    columns = arrow_rows.read_columns(source, image, label)
    return replace(_of_columns(source, columns, nodes), image=columns.image, turned=columns.turned)


def _of_columns(source: Any, columns: arrow_rows.Columns, nodes: tuple[str, ...]) -> Source:
    """A datasets.Dataset: files, ranges of its Arrow files, or what processes read of it."""
    given = columns.classes
    if not given and columns.labels and all(isinstance(text, str) for text in columns.labels):
        given = sorted({*map(str, columns.labels)} - {""})  # a column of text has names
    rows = arrow_rows.read_arrow_rows(source, columns.image)
    if isinstance(rows, arrow_rows.FileRows):
        listed = Table(rows.paths, columns.labels, classes=given or None)
        return _of_table(listed, nodes)
    numbers, classes = number_labels(columns.labels, given or None, "row {} of the data set".format)
    if isinstance(rows, arrow_rows.ArrowRows):
        root = os.path.commonpath({os.path.dirname(path) for path in rows.files})
        keys = [os.path.relpath(path, root) for path in rows.files]
        ranges = zip(rows.offset.tolist(), rows.length.tolist())
        text = TableText(encode_ranges((keys[at] for at in rows.file.tolist()), ranges, numbers, classes))
        return replace(_of_path(root, nodes), table=text, samples=len(source))
    if nodes:
        raise DataError(
            f"this datasets.Dataset cannot be read by nodes: {rows}. Write it to files that they can read, as by "
            'dataset.to_parquet("train.parquet"), or leave nodes= out'
        )
    log.warning(
        "this datasets.Dataset is read by processes of this machine, as feedwater.Bytes is, and not from its Arrow "
        "files: %s",
        rows,
    )
    reader = ArrowReader(source, columns.image, numbers)
    return _of_bytes(Bytes(reader, version=source._fingerprint), nodes)


def _of_image_folder(folder: Any, nodes: tuple[str, ...]) -> Source:
    image_folder.check_folder(folder, relabels=True)
    root = image_folder.root_of(folder)
    named = _of_path(os.path.abspath(root), nodes)
    image_folder.check_labels(folder)
    return replace(
        named,
        transform=folder.transform,
        relabel=mapping_of(folder.target_transform),
        classes=tuple(image_folder.names_of(folder)),
        samples=len(folder.samples),
        listing=Listing(folder, root),
        allow_empty=len({label for _, label in folder.samples}) < len(folder.classes),
    )


def _of_subset(subset: Any, nodes: tuple[str, ...], image: str | None, label: str | None) -> Source:
    inner = resolve_source(subset.dataset, nodes, image=image, label=label)
    indices = indices_of(subset)
    whole = inner.samples if inner.indices is None else len(inner.indices)
    if whole is not None:
        indices = from_end(indices, whole)
    if whole is not None and not 0 <= indices.min() <= indices.max() < whole:
        raise DataError(f"the Subset's indices reach from {indices.min()} to {indices.max()}, its data set has {whole}")
    if inner.indices is not None:
        indices = inner.indices[indices]
    return replace(inner, indices=indices)
