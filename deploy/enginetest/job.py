"""What a training job said, and what it would have said undisturbed on one machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .pages import ROOT

TRAINER = ROOT / "deploy" / "enginetest" / "trainer.py"
BINARY = Path(os.environ.get("FEEDWATER_BINARY", ROOT / "bin" / "feedwater"))
PACED = Path(os.environ.get("TEST_NODE_BINARY", ROOT / "bin" / "feedwater-testnode"))
"""The program for nodes of fixed speed."""


@dataclass
class Told:
    """What a job has said so far."""

    lines: list[dict[str, Any]]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Its steps, in order."""
        return [line for line in self.lines if "step" in line]

    @property
    def digest(self) -> str | None:
        """The digest of all its batches, once it has ended."""
        return next((line["digest"] for line in self.lines if "digest" in line), None)

    def stall(self) -> tuple[float, float]:
        """The share of its time in which it waited, the first step aside, and its longest wait in seconds."""
        waits = [line["wait"] for line in self.steps[1:]]
        return sum(waits) / (self.steps[-1]["at"] - self.steps[0]["at"]), max(waits)


def told(log: Path) -> Told:
    """Reads what a job has said, among other lines."""
    return told_in(log.read_text(errors="replace") if log.exists() else "")


def told_in(text: str) -> Told:
    """What a job has said, of a text that has other lines too."""
    found = []
    for line in text.splitlines():
        try:
            what = json.loads(line)
        except ValueError:  # the log of something else, or half a line
            continue
        if isinstance(what, dict):
            found.append(what)
    return Told(found)


def environment(**others: str) -> dict[str, str]:
    """Of programs that find this tree's package and program."""
    paths = [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
    program = {"FEEDWATER_BINARY": str(BINARY), "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    return {**os.environ, **program, "PATH": f"{BINARY.parent}:{os.environ['PATH']}", **others}


def train_on(nodes: str, period: float, *options: str) -> list[str]:
    """The command of a job on nodes that serve `imagenet`, with so many seconds between two steps at least."""
    return [sys.executable, str(TRAINER), "imagenet/train", "--nodes", nodes, "--period", str(period), *options]


def undisturbed(source: Path, *options: str) -> str:
    """The digest of the same job on this machine alone."""
    return told_undisturbed(source, *options).digest or ""


@cache
def told_undisturbed(source: Path, *options: str) -> Told:
    """What the same job says on this machine alone."""
    command = [sys.executable, str(TRAINER), str(source), *options]
    return told_in(subprocess.run(command, env=environment(), check=True, capture_output=True, text=True).stdout)


def generate_pictures(folder: Path, images: int = 40) -> Path:
    """A class folder of generated photographs."""
    command = [
        "go",
        "run",
        "./pipeline/codec/jpeg/jpegtest/jpegfolder",
        "-classes",
        "4",
        "-images",
        str(images),
        folder,
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder
