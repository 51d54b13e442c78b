"""What the measurements share: this machine's settings, CPU time, nodes, and runs in processes of their own."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CORES = len(os.sched_getaffinity(0))
RUN_S = 300
"""Longest time of one run. None takes a fifth of it."""


def settings() -> str:
    """The machine and the versions that a measurement was made with."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    ours = dict(line.split(maxsplit=1) for line in _output(program(), "version").splitlines())
    packages = ", ".join(f"{name} {_version(name)}" for name in ("torch", "torchvision", "pillow", "numpy"))
    kernel = platform.release().partition("-")[0]
    return (
        f"{CORES} cores of {model}; Linux {kernel}; Python {platform.python_version()}, {packages}\n"
        f"feedwater {ours['feedwater']}, {ours['go']}, kernels {ours['kernels']}"
    )


def program() -> str:
    """Path of the feedwater program, found as the package finds it."""
    from feedwater._agent import binary

    return binary.find_program()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout


# -- CPU time ---------------------------------------------------------------------------------------------------------


def cpu_seconds(pids: Iterable[int], *, children: bool = True) -> float:
    """CPU time of processes, to 0.01 s each; with children, of all their descendants too, dead ones included."""
    tick = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            spent[int(entry.name)] = sum(map(int, fields[11 : 15 if children else 13])) / tick
    family = set(pids)
    while children and (more := {pid for pid, parent in parents.items() if parent in family} - family):
        family |= more
    return sum(spent.get(pid, 0.0) for pid in family)


def busy_seconds() -> float:
    """Core-seconds that this machine has been busy since it started."""
    user, nice, system, _, _, irq, soft = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# -- runs and their order ---------------------------------------------------------------------------------------------


def turns(rounds: int, names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Each name once per round, every other round backwards, so that a drifting machine hurts all alike."""
    for number in range(rounds):
        yield from ((number, name) for name in (names if number % 2 == 0 else reversed(names)))


class Apart:
    """Runs a script's measurements in processes of their own, and keeps an eye on who else uses the machine."""

    def __init__(self, script: str = sys.argv[0], python: str = sys.executable) -> None:
        self._command = [python, script]
        self._began, self._busy, self._ours = time.perf_counter(), busy_seconds(), _of_children()

    def run(self, *arguments: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
        """Runs the script with these arguments; its last line of output is JSON, which is returned."""
        command = [*self._command, *arguments]
        env = {**os.environ, **(environment or {})}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True, timeout=RUN_S)
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result

    def others(self) -> str:
        """How much of the machine everybody else used since this object was made."""
        ours = _of_children() - self._ours
        cores = max(0.0, busy_seconds() - self._busy - ours) / (time.perf_counter() - self._began)
        return f"other processes used {cores:.2f} cores meanwhile"


# -- nodes ------------------------------------------------------------------------------------------------------------


@contextmanager
def node(folder: str, index: str = "off") -> Iterator[tuple[int, str]]:
    """A node that serves folder as the root "bench": its process id and its address."""
    command = [program(), "serve", "--data", f"bench={folder}", "--listen", "127.0.0.1:0", "--index", index]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "msg=listening" in line:
                break
        else:
            raise SystemExit("the node did not start")
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield process.pid, line.split("addr=", 1)[1].split()[0]
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def ready_node(wire: Path) -> Iterator[tuple[int, str]]:
    """A node whose batches are ready (bench/wire, built as wire), under the root "ready"; as node."""
    process = subprocess.Popen([wire, "--node"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process.pid, process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(60)


def build_wire(directory: str) -> Path:
    """Builds bench/wire into directory."""
    target = Path(directory) / "wire"
    subprocess.run(["go", "build", "-o", target, "./bench/wire"], cwd=ROOT, check=True, timeout=RUN_S)  # noqa: S607
    return target
