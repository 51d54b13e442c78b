"""The folder that the probe writes to, read: one Run per process that used a loader, with the boards of its workers."""

from __future__ import annotations

import json
import mmap
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .probe.board import FIELDS

__all__ = ["Report", "Run", "read_boards", "read_report"]


Counters = dict[str, float]


@dataclass(frozen=True)
class Run:
    """One process."""

    about: dict[str, Any]
    """As probe.session.Session.report has it."""
    boards: list[Counters] = field(default_factory=list)
    """Counters of its workers."""
    own: Counters | None = None
    """Its own, where a loader had no workers."""

    @property
    def steps(self) -> int:
        """Of all its loops."""
        return sum(loop["steps"] for loop in self.about["loops"])


@dataclass(frozen=True)
class Report:
    """Everything that is known of a script."""

    runs: list[Run]
    hooked: int
    """Python interpreters in which the probe could have worked."""
    pids: frozenset[int] = frozenset()
    """Of those interpreters."""
    errors: list[str] = field(default_factory=list)
    """What went wrong in the probe."""
    exit_code: int = 0
    """Of the script; negative: the signal that ended it."""
    gpus: list[dict[str, Any]] = field(default_factory=list)
    """As lines of feedwater-nvml have them, each line's; empty: unknown."""


def read_report(folder: str, exit_code: int = 0, gpus: list[dict[str, Any]] | None = None) -> Report:
    """What was written so far. Files that are being replaced are read as they were before."""
    place = Path(folder)
    abouts = [json.loads(file.read_text()) for file in sorted(place.glob("run-*.json"))]
    runs = [Run(about, *read_boards(folder, about["pid"])) for about in abouts]
    seen = frozenset(int(file.name.split("-")[1]) for file in place.glob("seen-*"))
    errors = [file.read_text()[:300].strip() for file in place.glob("error-*")]
    return Report(runs, len(seen), seen, errors, exit_code, gpus or [])


def read_boards(folder: str, pid: int) -> tuple[list[Counters], Counters | None]:
    """Of the workers of a process, and its own."""
    place = Path(folder)
    workers = [_read_board(file) for file in place.glob(f"board-{pid}-*")]
    own = [_read_board(file) for file in place.glob(f"board-*-{pid}")]
    return [counters for counters in workers if counters], next(filter(None, own), None)


def _read_board(file: Path) -> Counters:
    size = 8 * len(FIELDS)
    with file.open("rb") as opened:
        if os.fstat(opened.fileno()).st_size < size:
            return {}
        with mmap.mmap(opened.fileno(), size, prot=mmap.PROT_READ) as mapped:
            values = memoryview(mapped[:size]).cast("d")
            return dict(zip(FIELDS, values))
