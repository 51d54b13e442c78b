"""relabel=: other labels in place of those of the data, by a table that is looked up when a batch is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.numbers import to_whole
from ..errors import DataError

__all__ = ["Relabelling", "mapping_of"]

_Labels = npt.NDArray[np.int64]


def mapping_of(target_transform: Any) -> dict[Any, Any] | None:
    """What a target_transform looks labels up in, if it is the method of a dict or list that does it; else None."""
    held = getattr(target_transform, "__self__", None)
    name = getattr(target_transform, "__name__", "")
    if type(held) is dict and name == "__getitem__":
        return dict(held)
    if type(held) in (list, tuple) and name == "__getitem__":
        return dict(enumerate(held))  # type: ignore[arg-type]
    return None


class Relabelling:
    """New labels by old ones, which are numbers or names of classes."""

    def __init__(self, mapping: Any) -> None:
        """Raises TypeError or ValueError for what is no such table."""
        if not isinstance(mapping, Mapping):
            raise TypeError(f"relabel={mapping!r:.80}: needs a dict, {{label or name of a class: new label}}")
        self._by_number: dict[int, int] = {}
        self._by_name: dict[str, int] = {}
        for old, new in mapping.items():
            number = _to_label(new, f"the new label of {old!r}")
            if isinstance(old, str):
                self._by_name[old] = number
            else:
                self._by_number[_to_label(old, "a label")] = number
        if not self._by_number and not self._by_name:
            raise ValueError("relabel={}: names no label")
        self._old: _Labels | None = None
        self._new: _Labels

    def open_classes(self, classes: Sequence[str], name: str) -> None:
        """Finds labels of classes by their names. Raises DataError for a name that is none, or a class left out."""
        if self._old is not None:
            return
        unknown = next((one for one in self._by_name if one not in classes), None)
        if unknown is not None:
            raise DataError(f"relabel names {unknown!r}, which is no class of {name}: {_some(classes)}")
        known = {classes.index(one): new for one, new in self._by_name.items()} | self._by_number
        missing = [one for label, one in enumerate(classes) if label not in known]
        if missing:
            raise DataError(
                f"relabel has no new label for {_some(missing)} of {name}: name each class, also those that keep theirs"
            )
        old = np.array(sorted(known), np.int64)
        self._new = np.array([known[int(label)] for label in old], np.int64)
        self._old = old

    def change_labels(self, labels: _Labels, valid: npt.NDArray[np.bool_] | None) -> _Labels:
        """The new ones; rows without a sample keep theirs. Raises DataError for a label that has none."""
        assert self._old is not None
        places = np.minimum(np.searchsorted(self._old, labels), len(self._old) - 1)
        bad = (self._old[places] != labels) & (True if valid is None else valid)
        if bad.any():
            raise DataError(f"relabel has no new label for {int(labels[bad][0])}, which a sample has")
        changed: _Labels = self._new[places]
        return changed if valid is None else np.where(valid, changed, labels)


def _to_label(value: Any, what: str) -> int:
    number = to_whole(value)
    if number is None:
        raise TypeError(f"relabel: {what} is {value!r:.60}, and labels are whole numbers")
    return number


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
