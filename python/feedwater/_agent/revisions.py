"""Of which revision this package has the units that it shares with the feedwater program, and builds that told none.

pipeline/revision has the tables that these are parts of; a test holds them equal.
"""

from __future__ import annotations

import re
from pathlib import Path

from .. import _version
from .._version import __version__

__all__ = ["KNOWN", "SOCKET", "UNITS", "find_mismatch", "find_replaced", "make_greeting"]

SOCKET = 5
"""Revision of the packets of docs/agent.md."""

UNITS = {"order": 1, "lasthop": 2}

KNOWN = frozenset({"577cd4131bcd91a076df916525228a76"})
"""Numerics of builds whose states name nothing else, and whose revisions are known all the same."""

_UNRELEASED = "dev"


def make_greeting() -> dict[str, object]:
    """What this package tells the agent of itself."""
    return {"version": __version__, "socket": SOCKET, "units": UNITS}


def find_mismatch(theirs: dict[str, object] | None, program: str) -> str | None:
    """Why the program cannot serve this package; None: it can. One of before greetings tells nothing."""
    if theirs is not None:
        same_version = theirs.get("version") in (__version__, _UNRELEASED)
        if same_version and theirs.get("socket") == SOCKET and theirs.get("units") == UNITS:
            return None
    if (replaced := find_replaced()) is not None:
        return replaced
    told = "too old to tell its version" if theirs is None else f"build {theirs.get('build') or theirs.get('version')}"
    return (
        f"the feedwater program {program} ({told}) and this Python package (version {__version__}) are of different "
        "releases: install both from one wheel, or unset FEEDWATER_BINARY"
    )


def find_replaced() -> str | None:
    """What to say if the package's files are of another version than what is loaded of them; None: they are not."""
    try:
        found = re.search(r'^__version__ = "(.*)"$', Path(_version.__file__).read_text("utf-8"), re.MULTILINE)
    except (OSError, ValueError):
        return None
    if found is None or found[1] == __version__:
        return None
    return (
        f"feedwater {found[1]} was installed while this program ran, which has {__version__} loaded, and has to start "
        "its agent anew: start the program again, from its last state"
    )
