"""Copies, from which pictures that are slow to decode decode faster: whether a Loader's loop lacks them."""

from __future__ import annotations

import shlex
from math import ceil
from typing import Any

from .._agent.index_use import IndexUse
from .._common.constants import COPY_SHARE
from .causes import Action
from .signals import Signals

__all__ = ["copy_facts", "note_copies", "suggest_copies"]

LARGER = 1.5
"""A copy beside its file: that of a WebP of quality 20. Of better ones it is less, 1.24 at 85."""
GIB, STEP = 1 << 30, 100 << 20
UNITS = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
UNITS |= {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "B": 1.0, "": 1.0}


def copy_facts(use: IndexUse, samples: int = 0, folder: str = "", room: str = "") -> dict[str, Any]:
    """What is known of a Loader, by what Loader._pictures tells."""
    known = {"missing_copies": 0.0, "more_copies_bytes": 0.0, "all_copies_bytes": 0.0, "folder": folder, "room": room}
    known["made_copies"] = use.made_copies / use.decoded if use.decoded else 0.0
    if not use.missing_copies or not use.decoded:
        return known
    each = LARGER * use.missing_copy_bytes / use.missing_copies
    missing, there = use.missing_copies / use.decoded, (use.copies + use.made_copies) / use.decoded
    more, every = (each * share * samples for share in (missing, missing + there))
    return known | {"missing_copies": missing, "more_copies_bytes": more, "all_copies_bytes": every}


def note_copies(s: Signals) -> list[str]:
    """Why a loop waits more than it will: much of what is decoded has its copy made."""
    if s.made_copies < COPY_SHARE:
        return []
    made = f"copies of {100 * s.made_copies:.0f} % of the pictures were made on the way, which is slow once"
    return [f"{made}: later epochs are faster, judge again then; `feedwater index` makes them ahead"]


def suggest_copies(s: Signals) -> list[Action]:
    """Room for copies, where they would be used for much of what is decoded. What that gains of a step is not known."""
    if s.missing_copies < COPY_SHARE:
        return []
    which = f"{100 * s.missing_copies:.0f} % of the pictures are lossy WebP or progressive JPEG without a copy"
    given = _read_size(s.room)
    if given and s.data != "nodes":
        return [_suggest_more(s, given, which)]
    size = _format_size(s.all_copies_bytes)
    if s.data == "nodes":
        where = f"--index-copies {size} on each node"
        ahead = "; `feedwater index` there, with this and the folder that the node serves, makes them ahead"
    else:
        where = f"FEEDWATER_INDEX_COPIES={size}"
        ahead = f"; `feedwater index {shlex.quote(s.folder)} --index-copies {size}` makes them ahead"
        ahead = ahead if s.folder and s.folder.isprintable() else ""
    gain = "with which they took 4.3 and 2.9 times less CPU time (docs/image-index.md)"
    return [Action(f"{where}, for this data set: {which}, {gain}{ahead}")]


def _suggest_more(s: Signals, given: float, which: str) -> Action:
    """Where pictures lack copies though room was given: copies of other data sets may have it."""
    size = _format_size(given + s.more_copies_bytes if s.more_copies_bytes else 0.0)
    why = f"the {s.room} that are set, for all data sets, have no room for more, or the folder cannot be written"
    return Action(f"FEEDWATER_INDEX_COPIES={size}: {which}; {why}. The log says which: FEEDWATER_AGENT_LOG_FILE=FILE")


def _read_size(text: str) -> float:
    """As the agent reads it; 0 of what it does not."""
    unit = next(unit for unit in UNITS if text.endswith(unit))
    try:
        return float(text.removesuffix(unit)) * UNITS[unit]
    except ValueError:
        return 0.0


def _format_size(size: float) -> str:
    """Rounded up."""
    if not size:
        return "BYTES"
    return f"{ceil(size / GIB)}GiB" if size > GIB - STEP else f"{ceil(size / STEP) * 100}MiB"
