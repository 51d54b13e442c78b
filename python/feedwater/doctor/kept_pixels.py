"""Kept pixels, which are not decoded again: whether a Loader's loop lacks them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

from .._agent.index_use import IndexUse
from .causes import Action
from .copies import copy_facts
from .signals import Signals

__all__ = ["picture_facts", "suggest_keeping"]

FEW = 100
"""Files whose names tell what the others are."""


def picture_facts(use: IndexUse, samples: int = 0, folder: str = "", room: str = "", keep: str = "") -> dict[str, Any]:
    """What is known of a Loader, by what Loader._pictures tells."""
    gain = not keep and not use.kept and _gains_most(use, folder)
    return copy_facts(use, samples, folder, room) | {"unkept": samples if gain else 0}


def suggest_keeping(s: Signals) -> list[Action]:
    """Room for pixels of files that gain most by it, where this machine decodes them. What that gains of a step is not
    known.
    """
    if not s.unkept or s.data != "folder":
        return []
    why = "the files are PNG or lossless WebP, which took 7 to 18 times less CPU time than without an index"
    room = f"width × height × 3 bytes for each of the {s.unkept:,} pictures: docs/keep.md"
    return [Action(f"FEEDWATER_KEEP=BYTES, to keep decoded pictures in memory: {why}. It takes {room}")]


def _gains_most(use: IndexUse, folder: str) -> bool:
    """Whether most files are named like PNG or, where codecs saw none that may have a copy, like WebP."""
    lossless = use.decoded and not (use.copies or use.missing_copies or use.made_copies)
    names = [*islice(_list_names(folder), FEW)] if folder else []
    slow = sum(name.lower().endswith((".png", ".webp") if lossless else ".png") for name in names)
    return slow > len(names) / 2


def _list_names(folder: str) -> Iterator[str]:
    """Of the files in a folder and those below, as they come; none where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    yield from _list_names(entry.path)
                else:
                    yield entry.name
    except OSError:
        return
