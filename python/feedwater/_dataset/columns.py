"""The columns of a table: paths and labels, from sequences, DataFrames and lists on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import DataError
from .labels import SPACES, WAYS_OUT, is_whole, number_texts

__all__ = ["is_list_file", "read_columns", "read_values"]

PATH_COLUMNS = (
    "path",
    "file_name",
    "filename",
    "file",
    "image",
    "filepath",
    "file_path",
    "image_path",
    "img_path",
    "img",
)
LABEL_COLUMNS = ("label", "class", "target")
"""What columns may be called, in a file and in a DataFrame. The first one that there is counts."""
CLASS_NAME = "class_name"
"""What an object of a .jsonl has that names a class."""
RANGE = "range"
"""What a table's text has that names a range of a file."""


def is_list_file(paths: Any) -> bool:
    """Whether it is the path of a list on disk."""
    return isinstance(paths, (str, os.PathLike))


class Columns(NamedTuple):
    """Paths and labels as they were given."""

    paths: list[Any]
    labels: list[Any] | None
    lines: list[str] | None = None
    """Of a file the names of its rows, for errors."""
    classes: list[str] | None = None
    """The names that the file itself has of its classes."""


def read_columns(paths: Any, labels: Any, classes: list[str] | None = None) -> Columns:
    """What sequences, a DataFrame or a file have."""
    if is_list_file(paths):
        if labels is not None:
            raise TypeError(f"labels= goes with a sequence of paths: {os.fspath(paths)} has its own")
        return _read_file(os.path.expanduser(os.fspath(paths)), classes)
    return Columns(*_read_memory(paths, labels))


def _read_memory(paths: Any, labels: Any) -> tuple[list[Any], list[Any] | None]:
    if hasattr(paths, "columns") and hasattr(paths, "iloc"):
        if labels is not None:
            raise TypeError(
                "labels= goes with a sequence of paths: a DataFrame has a column of them, or pass two columns"
            )
        return _read_frame(paths)
    if isinstance(paths, Mapping) or not isinstance(paths, Iterable):
        raise TypeError(
            f"paths={type(paths).__name__}: pass a sequence of paths, of pairs, a DataFrame or a file's path"
        )
    files = list(paths)
    if labels is not None:
        return files, _to_list(labels)
    if files and all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in files):
        return [path for path, _ in files], [label for _, label in files]
    return files, None


def _to_list(values: Any) -> list[Any]:
    if hasattr(values, "tolist"):  # tensors, arrays, Series: of Python's own numbers
        values = values.tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"labels={values!r:.80}: pass one for each path")
    return list(values)


def _read_frame(frame: Any) -> tuple[list[Any], list[Any] | None]:
    columns = [str(name) for name in frame.columns]
    path, label = _find_columns(columns, "the DataFrame")
    files = _to_list(frame[frame.columns[path]])
    return files, None if label is None else _to_list(frame[frame.columns[label]])


def _find_columns(columns: Sequence[str], where: str) -> tuple[int, int | None]:
    """Places of the columns of paths and labels."""
    lowered = [name.strip().lower() for name in columns]
    path = next((lowered.index(name) for name in PATH_COLUMNS if name in lowered), None)
    if path is None:
        raise DataError(f"{where}: no column is called {', '.join(PATH_COLUMNS)}; it has {', '.join(columns)}")
    return path, next((lowered.index(name) for name in LABEL_COLUMNS if name in lowered), None)


def _read_file(path: str, classes: list[str] | None) -> Columns:
    """What a list on disk has, and where its rows are. Without a line of names a table has the path, then the label."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in (".csv", ".tsv", ".jsonl"):
        raise DataError(
            f"{path}: a list of files ends in .csv, .tsv or .jsonl; of a folder pass the path to Loader itself"
        )
    with open(path, "rb") as binary:
        if binary.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(f"{path} is written in UTF-16: save it as UTF-8")
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        named, rows = _read_json(path, file) if ending == ".jsonl" else ([], _read_table(path, file, ending))
    if named and classes not in (None, named):
        raise ValueError(f"{path} names its classes by lines of {CLASS_NAME}: leave classes= out")
    where = [f"{path}: line {row.line}" for row in rows]
    names = [row.path.strip(SPACES) for row in rows]
    if "" in names:
        raise DataError(f"{where[names.index('')]} has no path")
    labels = [row.label.strip(SPACES) for row in rows]
    if not any(labels):
        return Columns(names, None, where)
    if "" in labels:
        raise DataError(f"{where[labels.index('')]}: a label is missing")
    if named:
        places = {name: label for label, name in enumerate(named)}
        found = [places.get(text, -1) if row.quoted else int(text) for row, text in zip(rows, labels)]
        wrong = next((at for at, label in enumerate(found) if not 0 <= label < len(named)), None)
        if wrong is not None:
            raise DataError(f"{where[wrong]}: label {labels[wrong]} is none of the list's {len(named)} classes")
        return Columns(names, found, where, named)
    if classes is not None and not all(map(is_whole, labels)):
        return Columns(names, labels, where)
    return Columns(names, number_texts(labels, where.__getitem__), where)


class _Row(NamedTuple):
    line: int
    path: str
    label: str
    """Empty: none."""
    quoted: bool = False
    """Whether the label is a string of JSON."""


def _read_table(path: str, file: Any, ending: str) -> list[_Row]:
    import csv

    tabs = ending == ".tsv"
    lines = csv.reader(file, delimiter="\t" if tabs else ",", skipinitialspace=not tabs, strict=True)
    try:
        rows = [(lines.line_num, row) for row in lines if row]
    except csv.Error as error:
        raise DataError(f"{path}: line {lines.line_num}: {error}") from None
    if not rows:
        return []
    head = [name.strip(SPACES) for name in rows[0][1]]
    at: tuple[int, int | None] = (0, 1 if len(head) > 1 else None)
    if any(name.lower() in PATH_COLUMNS for name in head) or len(head) > 2:
        at = _find_columns(head, path)
        del rows[0]
    else:
        _check_first(path, [row for _, row in rows[:2]], "\t" if tabs else ",")
    width = max((place for place in at if place is not None), default=0) + 1
    for line, row in rows:
        if len(row) < width:
            raise DataError(f"{path}: line {line} has {len(row)} fields, and needs {width}")
    return [_Row(line, row[at[0]], "" if at[1] is None else row[at[1]]) for line, row in rows]


def _check_first(path: str, rows: list[list[str]], comma: str) -> None:
    """Raises DataError where the first line is no row: other signs separate its fields, or it names unknown columns."""
    first, endings = rows[0], [os.path.splitext(row[0])[1] for row in rows]
    other = next((sign for sign in ";\t,|" if sign != comma and sign in first[0]), None)
    if len(first) == 1 and other is not None and (not endings[0] or other in endings[0]):
        raise DataError(
            f"{path}: line 1 has no {comma!r}, and is one field: if {other!r} separates fields, save it with {comma!r}"
        )
    if not endings[0] and endings[1:] not in ([], [""]):
        raise DataError(
            f"{path}: line 1 names no column called {', '.join(PATH_COLUMNS)}: call the columns path and label"
        )


def _read_json(path: str, file: Any) -> tuple[list[str], list[_Row]]:
    """Names of classes that stand before the first file, and the files."""
    rows: list[_Row] = []
    classes: list[str] = []
    chosen: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}: line {number}: {error}") from None
        if not isinstance(fields, dict):
            raise DataError(f"{path}: line {number} is no JSON object")
        if fields.keys() == {CLASS_NAME}:
            classes.append(_class_name(f"{path}: line {number}", fields[CLASS_NAME], classes, rows))
            continue
        column = next((column for column in PATH_COLUMNS if column in fields), "")
        name = fields.get(column)
        if not isinstance(name, str):
            raise DataError(f"{path}: line {number} has no path, a string that is called {', '.join(PATH_COLUMNS)}")
        labelled = next((c for c in LABEL_COLUMNS if fields.get(c) is not None), "")
        label = fields.get(labelled, "")
        if isinstance(label, bool) or not isinstance(label, (int, str)):
            raise DataError(f"{path}: line {number}: the label is neither a whole number nor a string: {WAYS_OUT}")
        for what, member in (("path", column), ("label", labelled)):
            first, line = chosen.setdefault(what, (member, number)) if member else ("", 0)
            if member != first:
                raise DataError(
                    f"{path}: line {number}: its {what} is in {member!r}, and that of line {line} in {first!r}: give "
                    "all lines the same"
                )
        rows.append(_Row(number, name, str(label), isinstance(label, str)))
    return classes, rows


def _class_name(where: str, name: Any, before: list[str], rows: list[_Row]) -> str:
    """The name of a class that a line has."""
    if not isinstance(name, str) or not name.strip(SPACES):
        raise DataError(f"{where}: {CLASS_NAME!r} is no string, or an empty one")
    if rows:
        raise DataError(f"{where}: the name of a class stands behind the first file")
    if name.strip(SPACES) in before:
        raise DataError(f"{where}: two classes are called {name.strip(SPACES)}")
    return name.strip(SPACES)


def read_values(paths: Any, columns: Any, rows: int) -> dict[str, list[str]]:
    """What columns= says that each sample has, by name, as text."""
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r}: pass a list of names, or {{name: values}}")
    if not isinstance(columns, Mapping):
        columns = _read_named(paths, [str(name) for name in columns])
    taken = (*PATH_COLUMNS, *LABEL_COLUMNS, RANGE)
    made = {}
    for name, given in columns.items():
        if name in taken:
            raise ValueError(f"columns: {name!r} is what paths, labels or ranges are called: give it another name")
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
            raise TypeError(f"columns: {name!r} is {given!r:.80}: pass one value for each sample")
        made[str(name)] = [_to_text(name, at, value) for at, value in enumerate(_to_list(given))]
        if len(made[name]) != rows:
            raise ValueError(f"columns: {name!r} has {len(made[name]):,} values for {rows:,} samples")
    return made


def _read_named(paths: Any, names: list[str]) -> dict[str, Any]:
    """Columns of a DataFrame or a file, by their names."""
    if hasattr(paths, "columns") and hasattr(paths, "iloc"):
        found: dict[str, Any] = {str(name): paths[name] for name in paths.columns}
        where = "the DataFrame"
    elif is_list_file(paths):
        where = os.path.expanduser(os.fspath(paths))
        found = _read_all(where)
    else:
        raise TypeError("columns names columns of a DataFrame or of a file: else pass {name: values}")
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise DataError(f"{where}: no column is called {missing}; it has {', '.join(found)}")
    return {name: found[name] for name in names}


def _read_all(path: str) -> dict[str, list[Any]]:
    """All columns of a list on disk whose rows have the same ones."""
    import csv

    ending = os.path.splitext(path)[1].lower()
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        if ending == ".jsonl":
            rows = [json.loads(line) for line in file if line.strip()]
        else:
            rows = list(csv.DictReader(file, delimiter="\t" if ending == ".tsv" else ","))
    names = dict.fromkeys(name for row in rows for name in row if isinstance(name, str))
    return {name: [row.get(name) for row in rows] for name in names}


def _to_text(name: Any, at: int, value: Any) -> str:
    """A value as its text; bytes as os.fsdecode has them."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value:
        return repr(value)
    raise TypeError(f"columns: {name!r} of row {at} is {value!r:.80}: pass strings, bytes or numbers")
