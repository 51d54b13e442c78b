"""Where the feedwater program is. The wheel installs it among the scripts of its environment."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from ..errors import AgentError

__all__ = ["check_system", "find_program"]

NAME = "feedwater"


def check_system() -> None:
    """Raises AgentError where the program cannot run."""
    if sys.platform != "linux":
        raise AgentError(
            "feedwater.Loader needs Linux: batches come from the feedwater program by shared memory, which is for Linux"
            f" on x86-64 and arm64, and this is {sys.platform}. Run it in a container, on WSL 2 or on another machine"
        )


def find_program() -> str:
    """Path of the program: FEEDWATER_BINARY, else the one of the installed wheel, else the one on PATH."""
    named = os.environ.get("FEEDWATER_BINARY")
    if named:
        if not os.path.isfile(named):
            raise AgentError(f"FEEDWATER_BINARY names {named!r}, which is not a file")
        return os.path.abspath(named)
    for directory in _list_script_folders():
        candidate = directory / NAME
        if candidate.is_file() and _is_program(candidate):
            return str(candidate)
    found = shutil.which(NAME)
    if found and _is_program(Path(found)):
        return os.path.abspath(found)
    raise AgentError(
        "the feedwater program was not found: not in the scripts of this environment "
        f"({', '.join(map(str, _list_script_folders()))}) and not on PATH. "
        "Install the wheel of your platform, or build it (make build) and set FEEDWATER_BINARY to its path"
    )


def _list_script_folders() -> Iterator[Path]:
    """Directories into which an installer may have put the wheel's scripts, likeliest first."""
    seen: set[str] = set()
    package_root = Path(__file__).resolve().parents[2]
    candidates: list[str | Path | None] = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")),
        package_root / "bin",  # pip install --target
        package_root.parents[1] / "bin" if len(package_root.parents) > 1 else None,  # pip install --prefix
        package_root.parents[2] / "bin" if len(package_root.parents) > 2 else None,
        Path(sys.prefix) / "bin",
    ]
    for candidate in candidates:
        if candidate is not None and str(candidate) not in seen:
            seen.add(str(candidate))
            yield Path(candidate)


def _is_program(path: Path) -> bool:
    """Not a directory and not a Python launcher of the same name, which would start this package again."""
    try:
        with path.open("rb") as file:
            return b"python" not in file.readline(128)
    except OSError:
        return False
