"""Table: a list of files and labels that the program has, in place of a folder."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring_ascii as quote  # json.dumps of a string, without what it does around
from typing import Any

from .._agent.table_text import TableText
from ..errors import DataError
from .columns import is_list_file, read_columns, read_values
from .file_lists import Rows, is_file_list, read_rows
from .labels import is_missing, number_labels

__all__ = ["PATH_STARTS", "Table", "encode_ranges"]

PATH_STARTS = ("/", "./", "../", "~")
"""With nodes, a string that begins like this, or a Path, is a folder here; any other names a root of theirs."""

UNCLEAN = ("//", "/./", "/../")
"""Parts of paths that are written otherwise."""
MOST_LINE = 65_536
"""Bytes of a row of the text."""


class Table:
    """A list of files and their labels, for Loader(table, …): samples in its order, with the guarantees of a folder.

    paths     paths of the files; or pairs (path, label), as the .samples of torchvision's folders are; or a DataFrame
              with columns path (or file_name, filename, file, image) and label (or class, target); or the path of a
              .csv, .tsv or .jsonl file with such columns; or a data set of torchvision that lists files, a Subset or
              ConcatDataset of such
    labels    whole numbers, also as strings; or names, which become classes in sorted order; None: those of the pairs
              or columns
    root      what the paths are below: a folder here, or with nodes "root/path", a root's name and a path below it.
              By default paths are those of this machine, and root is the data set's, or the deepest folder that all
              lie in. With nodes a folder here is looked for among their roots, by what is in it
    classes   names of the classes, by label; with labels that are strings, their order
    columns   what else each sample has, for fields=: {name: values}, strings, bytes or numbers; or names of columns of
              the DataFrame or the file

    The list is sent to nodes that do not have it, and what it says is read once: later changes of the arguments are not
    heard. Its fingerprint is made of paths below root, sizes of files, labels and names of classes.
    """

    def __init__(
        self,
        paths: Any,
        labels: Any = None,
        *,
        root: str | os.PathLike[str] | None = None,
        classes: Iterable[str] | None = None,
        columns: Mapping[str, Iterable[Any]] | Iterable[str] | None = None,
    ) -> None:
        names = None if classes is None else [str(name) for name in classes]
        lines: list[str] | None = None
        if is_file_list(paths):
            if labels is not None:
                raise TypeError("labels= goes with a sequence of paths: a data set has its own")
            rows = read_rows(paths)
            files, root = _place_rows(rows, root)
            names = names or list(rows.classes) or None
            found: list[Any] | None = rows.labels
        else:
            given = read_columns(paths, labels, names)
            files, found, lines, names = given.paths, given.labels, given.lines, names or given.classes
        if root is None and is_list_file(paths):
            root = os.path.dirname(os.path.abspath(os.path.expanduser(paths)))
        if not files:
            raise DataError("the table is empty: it needs a path and a label for each sample")
        if found is not None and len(found) != len(files):
            raise ValueError(f"{len(files):,} paths and {len(found):,} labels: each path needs one")
        self.root, keys = _split_root(files, root)
        """A folder here, absolute or as it begins with . or ~; or as nodes name it."""
        numbers, self.classes = number_labels(found, names, lines.__getitem__ if lines is not None else _row)
        """Names of the classes; empty where labels have none."""
        self._samples = len(keys)
        extra = {} if columns is None else read_values(paths, columns, len(keys))
        self._text = TableText(_encode_table(keys, numbers, self.classes, extra))

    @property
    def text(self) -> TableText:
        """The list as nodes are given it."""
        return self._text

    def __len__(self) -> int:
        """Samples in it."""
        return self._samples

    def __repr__(self) -> str:
        return f"<feedwater.Table of {len(self):,} files below {self.root}>"


def _row(at: int) -> str:
    return f"row {at} of the table"


def _split_root(files: list[Any], root: str | os.PathLike[str] | None) -> tuple[str, list[str]]:
    """The folder that all files are below, and their paths below it."""
    paths = [_to_path(at, name) for at, name in enumerate(files)]
    if root is None:
        paths = _clean([os.path.abspath(os.path.expanduser(path)) if path[:1] != "/" else path for path in paths])
        root = os.path.commonpath({os.path.dirname(path) for path in paths})
    named = os.fspath(root)
    if not any(path.startswith("/") for path in paths):
        return named if isinstance(root, str) else os.path.abspath(named), _check_below(_clean(paths), named)
    here = os.path.abspath(os.path.expanduser(named))
    above = os.path.join(here, "")
    keys = []
    for at, path in enumerate(_clean(paths)):
        if path.startswith("/") and not path.startswith(above):
            raise DataError(
                f"row {at} of the table: {path} is not below root, {here}. To name a root of the nodes, give paths "
                "below it"
            )
        keys.append(path[len(above) :] if path.startswith("/") else path)
    return here, _check_below(keys, here)


def _place_rows(rows: Rows, root: str | os.PathLike[str] | None) -> tuple[list[Any], str | os.PathLike[str] | None]:
    """The files of a data set and what they are below; where a root of nodes is named, in place of its own folder."""
    paths = _clean([path if path[:1] == "/" else os.path.abspath(path) for path in map(os.fspath, rows.paths)])
    own = os.path.abspath(rows.root) if rows.root is not None else None
    if own is None or not all(path.startswith(os.path.join(own, "")) for path in paths):
        own = os.path.commonpath({os.path.dirname(path) for path in paths}) if paths else None
    if own is None or root is None or not isinstance(root, str) or root.startswith(PATH_STARTS):
        return paths, own if root is None else root
    return [os.path.relpath(path, own) for path in paths], root


def _to_path(at: int, name: Any) -> str:
    if isinstance(name, str):
        path = name
    elif isinstance(name, (bytes, os.PathLike)):
        path = os.fsdecode(name)
    elif is_missing(name):
        raise DataError(f"row {at} of the table: a path is missing")
    else:
        raise TypeError(f"row {at} of the table: {name!r:.80} is no path")
    if not path or "\0" in path:
        raise DataError(f"row {at} of the table: {path!r} is no path")
    return path


def _clean(paths: list[str]) -> list[str]:
    """Paths without what leads nowhere. Most have nothing of it, and are looked at all together."""
    text = "\0".join(paths)
    if not any(part in text for part in UNCLEAN) and not text.startswith("./") and "\0./" not in text:
        return paths
    return [posixpath.normpath(path) for path in paths]


def _check_below(keys: list[str], root: str) -> list[str]:
    for at, key in enumerate(keys):
        if key in (".", "..") or key.startswith("../"):
            raise DataError(f"row {at} of the table: {key} leads out of root, {root}")
    return keys


def _encode_table(keys: list[str], labels: list[int] | None, classes: list[str], values: dict[str, list[str]]) -> bytes:
    """The text of a table, as feedwater.proto says it of Put."""
    columns: dict[str, Iterable[Any]] = {"path": map(quote, keys)}
    if labels is not None:
        columns["label"] = labels
    rows = _encode_rows(columns | {name: map(quote, column) for name, column in values.items()})
    long = next((at for at, row in enumerate(rows) if len(row) > MOST_LINE + 1), None) if values else None
    if long is not None:
        raise DataError(
            f"row {long} of the table: it has {len(rows[long]) - 1:,} bytes with its columns, at most {MOST_LINE:,}"
        )
    return _join_rows(classes, rows)


def encode_ranges(
    keys: Iterable[str], ranges: Iterable[tuple[int, int]], labels: list[int] | None, classes: list[str]
) -> bytes:
    """The text of a table whose pictures are ranges of files: where each begins there, and its bytes."""
    columns: dict[str, Iterable[Any]] = {
        "path": map(quote, keys),
        "range": (f"[{begin}, {size}]" for begin, size in ranges),
    }
    if labels is not None:
        columns["label"] = labels
    return _join_rows(classes, _encode_rows(columns))


def _encode_rows(columns: dict[str, Iterable[Any]]) -> list[str]:
    form = "{" + ", ".join(quote(name).replace("%", "%%") + ": %s" for name in columns) + "}\n"
    return [form % row for row in zip(*columns.values())]


def _join_rows(classes: list[str], rows: list[str]) -> bytes:
    return "".join([f'{{"class_name": {quote(name)}}}\n' for name in classes] + rows).encode()
