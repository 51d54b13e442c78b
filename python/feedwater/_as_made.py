"""What a Loader reads of the data set object that it is made of, once: what is edited later is told, never ignored."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ._order import Indices
from ._pull import PLACES
from .errors import DataError

__all__ = ["AsMade", "indices_of"]


def indices_of(subset: Any) -> Indices:
    """A copy of what a Subset chooses. Raises TypeError for what numpy would make numbers of, DataError for none."""
    indices = np.asarray(subset.indices).reshape(-1)
    if not indices.size:
        raise DataError("the Subset's indices are empty: it chooses no sample")
    if indices.dtype.kind == "b":
        raise TypeError(f"the Subset's indices are a mask, True and False: pass its places, {PLACES}")
    if indices.dtype.kind not in "iuO":  # O: numbers that numpy does not know
        raise TypeError(f"the Subset's indices are of {indices.dtype}: needs whole numbers")
    return indices.astype(np.int64)


class AsMade:
    """An ImageFolder, or a Subset of one, as it was when the Loader was made; of a path, or of None, nothing.

    transformed says whether the Loader has the data set's transform, not one of its own.
    """

    def __init__(self, source: Any, *, transformed: bool) -> None:
        self._subsets: list[tuple[Any, Indices]] = []
        while hasattr(source, "indices"):
            self._subsets.append((source, indices_of(source)))
            source = source.dataset
        self._folder = None if source is None or isinstance(source, (str, os.PathLike)) else source
        if self._folder is not None:
            self._samples = list(source.samples)
            names = ("loader", "target_transform", *(("transform",) if transformed else ()))
            self._attributes = [(name, getattr(source, name)) for name in names]

    def check(self) -> None:
        """Raises DataError where something that was read is another thing now."""
        for subset, indices in self._subsets:
            if not np.array_equal(indices_of(subset), indices):
                raise DataError(
                    "the Subset's indices were changed after the Loader was made, which read them then: make a new "
                    "Loader of the Subset, and go on with the next epoch by new.set_epoch(old.state_dict()['epoch'])"
                )
        if self._folder is None:
            return
        if list(self._folder.samples) != self._samples:
            from ._listing import ADVICE

            raise DataError(f"{self._folder.root}: the ImageFolder's samples were changed. {ADVICE}")
        for name, value in self._attributes:
            if getattr(self._folder, name) is not value:
                raise DataError(
                    f"{self._folder.root}: the ImageFolder's {name} was changed after the Loader was made, which read "
                    "it then: make a new Loader of the ImageFolder, and go on where this one is by "
                    "new.load_state_dict(old.state_dict(), strict=False)"
                )
