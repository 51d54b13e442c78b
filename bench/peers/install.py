"""The peers' environments, below .tools/peers: made where they are not there, or were made for other versions."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from contestants import Contestant

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INSTALL_S = 600


class NotInstalledError(Exception):
    """Why a peer cannot run here, in a line."""


def python(contestant: Contestant) -> str:
    """The interpreter of a contestant's environment, which is made if need be."""
    if contestant.absent:
        raise NotInstalledError(contestant.absent)
    if not contestant.environment:
        return sys.executable
    place = ROOT / ".tools" / "peers" / contestant.environment
    wanted = (HERE / "requirements" / f"{contestant.environment}.txt").read_text()
    ready = place / "ready.txt"
    if not ready.exists() or ready.read_text() != wanted:
        _install(place, wanted.split(), contestant.layered)
        ready.write_text(wanted)
    return str(place / "bin" / "python")


def _install(place: Path, packages: list[str], layered: bool) -> None:
    print(f"installing {' '.join(packages)}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True, timeout=INSTALL_S)
    if layered:
        below = sysconfig.get_path("purelib")
        site = place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
        (site / "feedwater.pth").write_text(f"{below}\n")
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", "--only-binary", ":all:", *packages]
    done = subprocess.run(pip, stderr=subprocess.PIPE, text=True, timeout=INSTALL_S)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise NotInstalledError((errors or ["ERROR: pip failed"])[-1].removeprefix("ERROR: "))
