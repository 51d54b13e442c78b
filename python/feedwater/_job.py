"""What a job is called for people where neither the program nor its launcher gave it a name."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["name_of"]

NO_NAME = "none"
"""What torchrun calls a run that was given no id."""


def name_of(given: str | None) -> str:
    """The given name, else that of the program: the same on all ranks."""
    if given and given != NO_NAME:
        return given
    script = Path(sys.argv[0] if sys.argv else "")
    name = script.parent.name if script.stem == "__main__" else script.stem
    return name if name and not name.startswith("-") else "python"
