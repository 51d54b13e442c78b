"""What torch.utils.data.Subset chooses."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._order.pull import PLACES
from .._order.steps import Indices
from ..errors import DataError
from .wrappers import check_wrapper

__all__ = ["indices_of"]


def indices_of(subset: Any) -> Indices:
    """A copy of what a Subset chooses.

    Raises TypeError for what numpy would make numbers of and for a Subset that reads otherwise, DataError for none.
    """
    check_wrapper(subset)
    indices = np.asarray(subset.indices).reshape(-1)
    if not indices.size:
        raise DataError("the Subset's indices are empty: it chooses no sample")
    if indices.dtype.kind == "b":
        raise TypeError(f"the Subset's indices are a mask, True and False: pass its places, {PLACES}")
    if indices.dtype.kind not in "iuO":  # O: numbers that numpy does not know
        raise TypeError(f"the Subset's indices are of {indices.dtype}: needs whole numbers")
    return indices.astype(np.int64)
