"""Copies of batches: whatever is done to one is not done to the other."""

from __future__ import annotations

import copy
from typing import Any

from .._common.torch_modes import imported_torch

__all__ = ["copy_of"]


def copy_of(batch: Any) -> Any:
    """The same values in memory of their own, in the same containers; tensors in the same memory format.

    Things that no one can copy, and may come of a batch_transform, are handed on as they are.
    """
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(copy_of, batch))
    if type(batch) in (list, tuple):
        return type(batch)(map(copy_of, batch))
    if type(batch) is dict:
        return {name: copy_of(value) for name, value in batch.items()}
    torch = imported_torch()
    if torch is not None and isinstance(batch, torch.Tensor):
        return batch.clone()
    try:
        return copy.deepcopy(batch)
    except Exception:
        return batch
