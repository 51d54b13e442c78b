"""Copies, from which pictures that are slow to decode decode faster: whether a Loader's loop lacks them."""

from __future__ import annotations

from math import ceil
from typing import Any

from .._agent.index_use import IndexUse
from .._common.constants import COPY_SHARE
from .causes import Action
from .signals import Signals

__all__ = ["copy_facts", "suggest_copies"]

LARGER = 1.25
"""A copy beside its file, at most: that of a WebP."""
GIB, STEP = 1 << 30, 100 << 20


def copy_facts(use: IndexUse, samples: int) -> dict[str, Any]:
    """What is known of a Loader whose data set has so many samples, 0 where that is not known."""
    if not use.missing_copies or not use.decoded:
        return {"missing_copies": 0.0, "all_copies_bytes": 0.0}
    each = LARGER * use.missing_copy_bytes / use.missing_copies
    share = (use.missing_copies + use.copies) / use.decoded
    return {"missing_copies": use.missing_copies / use.decoded, "all_copies_bytes": each * share * samples}


def suggest_copies(s: Signals) -> list[Action]:
    """Room for copies, where they would be used for much of what is decoded. What that gains of a step is not known."""
    if s.missing_copies < COPY_SHARE:
        return []
    size = _format_size(s.all_copies_bytes)
    where = f"--index-copies {size} on each node" if s.data == "nodes" else f"FEEDWATER_INDEX_COPIES={size}"
    which = f"{100 * s.missing_copies:.0f} % of the pictures are lossy WebP or progressive JPEG without a copy"
    gain = "with which they took 4.3 and 2.9 times less CPU time (docs/image-index.md)"
    ahead = f"`feedwater index --index-copies {size}` makes them ahead"
    return [Action(f"{where}, for this data set: {which}, {gain}; {ahead}")]


def _format_size(size: float) -> str:
    """Rounded up."""
    if not size:
        return "BYTES"
    return f"{ceil(size / GIB)}GiB" if size > GIB - STEP else f"{ceil(size / STEP) * 100}MiB"
