"""The labels of a list: whole numbers, or names of classes. pipeline/dataset/layout/labels.go has the same rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DataError

__all__ = ["SPACES", "WAYS_OUT", "is_missing", "is_whole", "number_labels", "number_texts"]

SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What fields lose at both ends, as strings.TrimSpace of Go."""
MOST = (1 << 63) - 1
"""The largest label, an int64."""
MOST_CLASSES, MOST_NAMES = 1 << 20, 16 << 20
"""How many names of classes nodes take, and their bytes together."""
WHOLE = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
NOT_FINITE = re.compile(r"[+-]*(nan|inf|infinity)", re.IGNORECASE)
WAYS_OUT = (
    "labels are whole numbers, in pandas by .dropna() and .astype(int), or all are names. Names that look like numbers "
    "go with the list of classes: feedwater.Table(…, classes=…)"
)


def number_labels(
    labels: list[Any] | None, classes: list[str] | None, where: Callable[[int], str]
) -> tuple[list[int] | None, list[str]]:
    """Labels as numbers, None where there are none, and the names of the classes. where names a row in errors."""
    if classes is not None and len(set(classes)) != len(classes):
        twice = next(name for at, name in enumerate(classes) if name in classes[:at])
        raise ValueError(f"classes has {twice!r} twice: each class needs a name of its own")
    if classes is not None and (not classes or "" in classes):
        raise ValueError("classes has no name, or an empty one")
    if classes is not None:
        _check_length(classes)
    if labels is None:
        if classes is not None:
            raise ValueError("classes names labels, and there are none")
        return None, []
    if all(isinstance(label, str) for label in labels):
        if classes is not None:
            return _number_names(labels, classes, where), classes
        found = number_texts(labels, where)
        if found and isinstance(found[0], int):
            return found, []
        names = sorted(set(found))
        _check_length(names)
        return _number_names(found, names, where), names
    plain = set(map(type, labels)) == {int} and -MOST - 1 <= min(labels) <= max(labels) <= MOST
    missing = None if plain else next((at for at, label in enumerate(labels) if is_missing(label)), None)
    if missing is not None:
        raise ValueError(f"{where(missing)}: a label is missing")
    numbers = labels if plain else [_to_number(at, label, where) for at, label in enumerate(labels)]
    if classes is not None:
        wrong = next((at for at, label in enumerate(numbers) if not 0 <= label < len(classes)), None)
        if wrong is not None:
            raise ValueError(f"{where(wrong)}: label {numbers[wrong]} is none of the {len(classes)} classes")
    return numbers, classes or []


def _check_length(names: list[str]) -> None:
    """Raises ValueError where there are more names of classes than nodes take."""
    size = sum(map(len, names))
    if len(names) > MOST_CLASSES or size > MOST_NAMES:
        raise ValueError(
            f"{len(names):,} classes, whose names have {size:,} characters: at most {MOST_CLASSES:,}, of "
            f"{MOST_NAMES:,} together. Are these labels?"
        )


def number_texts(texts: list[str], where: Callable[[int], str]) -> list[Any]:
    """Texts as whole numbers where all are, else without spaces at their ends. Raises DataError where some are neither
    or numbers stand beside names.
    """
    kinds = {text: _kind_of(text.strip(SPACES)) for text in set(texts)}
    first = kinds[texts[0]] if texts else ""
    if set(kinds.values()) - {"a whole number"} == set():
        return [int(text.strip(SPACES)) for text in texts]
    if set(kinds.values()) == {"a name"}:
        return [text.strip(SPACES) for text in texts]
    for at, text in enumerate(texts):
        if kinds[text] == "":
            raise ValueError(f"{where(at)}: a label is missing")
        if kinds[text] not in ("a whole number", "a name"):
            raise DataError(f"{where(at)}: the label is {kinds[text]}: {WAYS_OUT}")
        if kinds[text] != first:
            raise DataError(f"{where(at)}: the label is {kinds[text]}, and those before are not: {WAYS_OUT}")
    raise AssertionError("labels of one kind")


def _kind_of(text: str) -> str:
    """What a label is, as errors say it; empty where it is missing."""
    if not text:
        return ""
    if WHOLE.fullmatch(text):
        digits = text.lstrip("+-").lstrip("0")
        whole = len(digits) < 20 and -MOST - 1 <= int(f"{'-' * (text[0] == '-')}{digits or '0'}") <= MOST
        return "a whole number" if whole else "a whole number beyond int64"
    if NOT_FINITE.fullmatch(text):
        return "nan or infinity"
    return "a number with a point, an exponent or digits of another script" if NUMBER.fullmatch(text) else "a name"


def is_whole(text: str) -> bool:
    """Whether a label is a whole number of int64."""
    return _kind_of(text) == "a whole number"


def _number_names(labels: list[str], classes: list[str], where: Callable[[int], str]) -> list[int]:
    """Places of names among the classes, as they are written or without spaces at their ends."""
    index = {name: label for label, name in enumerate(classes)}
    numbers = [index.get(name, index.get(name.strip(SPACES), -1)) for name in labels]
    if -1 in numbers:
        at = numbers.index(-1)
        what = f"{labels[at]!r} is none of classes" if labels[at].strip(SPACES) else "a label is missing"
        raise ValueError(f"{where(at)}: {what}")
    return numbers


def is_missing(label: Any) -> bool:
    """Whether it is None, a float that is no number, or what pandas has in their place."""
    return (
        label is None or type(label).__name__ in ("NAType", "NaTType") or (isinstance(label, float) and label != label)
    )


def _to_number(at: int, label: Any, where: Callable[[int], str]) -> int:
    """A label that is no text, as a number."""
    if isinstance(label, (bool, np.bool_)):
        raise TypeError(f"{where(at)}: the label {label} is no whole number: pass int(label)")
    if hasattr(label, "item") and getattr(label, "ndim", 0) == 0:  # a tensor or a number of numpy
        label = label.item()
    if isinstance(label, float):
        raise TypeError(f"{where(at)}: the label {label} is a float, and no whole number: {WAYS_OUT}")
    if not isinstance(label, int):
        raise TypeError(f"{where(at)}: the label {label!r:.80} is no whole number, or no string as others are not")
    if not -MOST - 1 <= label <= MOST:
        raise ValueError(f"{where(at)}: the label {label} is no int64")
    return int(label)
