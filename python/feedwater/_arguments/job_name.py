"""What a run is called: one name on all its ranks, another for each run of a sweep."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["name_of"]

NO_NAME = "none"
"""What torchrun calls a run that was given no id."""

PROCESS = os.urandom(3).hex()
"""Tells this process from others."""

LOOPBACK = ("localhost", "127.", "::1", "[::1]")


def name_of(given: str | None, world: int) -> str:
    """The given name, else that of the program and of what its ranks share: where they meet, or that there is one."""
    if given and given != NO_NAME:
        return given
    script = Path((getattr(sys, "argv", None) or [""])[0])  # an embedded interpreter has none
    name = script.parent.name if script.stem == "__main__" else script.stem
    name = name if name and not name.startswith("-") else "python"
    run = _identify_run(world)
    return f"{name}-{run}" if run else name


def _identify_run(world: int) -> str:
    """What tells this run from others of its script; "" where ranks may have nothing in common that does."""
    import hashlib
    import multiprocessing
    import socket

    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if host and port:
        here = socket.gethostname() if host.startswith(LOOPBACK) else ""
        return hashlib.sha256(f"{host} {port} {here}".encode()).hexdigest()[: len(PROCESS)]
    many = world > 1 or multiprocessing.parent_process() is not None or {"RANK", "LOCAL_RANK"} & os.environ.keys()
    return "" if many else PROCESS
