"""The contestants of bench/pixels/table.py that make pictures of files in memory, on one core or on all.

Each is a process that waits for orders (bench/pixels/main.go), so that they can take short turns.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine

HERE = Path(__file__).resolve().parent
LEVELS = ("avx512", "avx2", "scalar")
PIL, TENSOR, C = "torchvision, PIL", "torchvision, tensors", "C, libjpeg-turbo"
INDEX, NO_INDEX, FIRST = "index", "no index", "first epoch"
CROP = [{"op": "RandomResizedCrop", "size": [224, 224]}, {"op": "RandomHorizontalFlip"}]
EFFECTS = {
    "RandAugment": [{"op": "RandAugment"}],
    "ColorJitter": [
        {"op": "ColorJitter", "brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1},
    ],
    "SimCLR": [
        {"op": "ColorJitter", "brightness": 0.8, "contrast": 0.8, "saturation": 0.8, "hue": 0.2},
        {"op": "RandomGrayscale", "p": 0.2},
        {"op": "GaussianBlur", "kernel_size": 23, "sigma": [0.1, 2.0]},
    ],
}

Run = dict[str, float]
Runs = dict[str, list[Run]]


def ours(level: str, index: str = NO_INDEX) -> str:
    """Name of a contestant of ours: its kernels, and INDEX, NO_INDEX or FIRST."""
    return f"feedwater, {level}, {index}"


def behind(name: str, effect: str) -> str:
    """Name of a contestant that goes on with one of EFFECTS."""
    return f"{name}, {effect}"


# -- programs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Programs:
    """What was built for the measurement."""

    pixels: Path
    levels: list[str]
    """The kernels that this processor can run, best first."""
    floor: Path | None
    compiler: str
    """What the program in C was built with, or what is missing."""


def build(folder: Path) -> Programs:
    """Builds the unit, and the program in C where there is a compiler and the headers of libjpeg-turbo."""
    pixels, floor = folder / "pixels", folder / "floor"
    command = ["go", "build", "-o", pixels, "./bench/pixels"]
    subprocess.run(command, cwd=machine.ROOT, check=True, timeout=machine.RUN_S)
    levels = [level for level in LEVELS if _succeeds([machine.program(), "version"], FEEDWATER_KERNELS=level)]
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        return Programs(pixels, levels, None, "C: left out, there is no compiler")
    command = [compiler, "-O3", "-march=native", HERE / "c" / "floor.c", "-ljpeg", "-lm", "-o", floor]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=machine.RUN_S)
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if "error" in line), "it does not compile")
        hint = "it needs AVX2 and libjpeg-turbo's headers; Debian: libjpeg62-turbo-dev"
        return Programs(pixels, levels, None, f"C: left out, {hint}: {reason}")
    return Programs(pixels, levels, floor, f"C: {_output(floor)}; {_output(compiler, '--version')} -O3 -march=native")


def _succeeds(command: list[str], **environment: str) -> bool:
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True).returncode == 0


def _output(*command: str | Path) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0]


# -- contestants ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """How a contestant is started."""

    command: list[str | Path]
    level: str = ""
    """Kernels of ours; the best ones if it is empty."""


class Contestant:
    """A process that makes pictures when it is told to. It ends with the block."""

    def __init__(self, start: Start, core: int | None = None) -> None:
        environment = {**os.environ, "FEEDWATER_KERNELS": start.level, "OMP_NUM_THREADS": "1"}
        all_cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, all_cores if core is None else {core})  # which the process inherits
        try:
            self._process = subprocess.Popen(
                start.command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        finally:
            os.sched_setaffinity(0, all_cores)

    def __enter__(self) -> Contestant:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.communicate(timeout=60)

    def ask(self, *words: object) -> dict[str, Any]:
        """Gives an order and returns the answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args!r} ended with {self._process.wait(60)}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def time(self, epoch: int, epochs: int = 1) -> Run:
        """Images per second and CPU seconds per 1000 images of an order."""
        spent = self.ask("time", epoch, epochs)
        return {"rate": spent["images"] / spent["wall"], "cpu": spent["cpu"] / spent["images"] * 1000}


@dataclass(frozen=True)
class Data:
    """A data set with its index and its crops."""

    name: str
    folder: Path
    index: Path
    crops: Path
    pictures: int

    def ours(self, programs: Programs, *arguments: str | Path, level: str = "", index: bool = False) -> Start:
        """A contestant of ours."""
        place = ["-index", self.index] if index else []
        return Start([programs.pixels, "-data", self.folder, *place, *arguments], level)

    def peer(self, kind: str) -> Start:
        """One of torchvision's."""
        return Start([sys.executable, HERE / "peer.py", self.folder, self.crops, str(self.pictures), kind])

    def draw(self, programs: Programs, epochs: int) -> None:
        """Has the crops of so many epochs drawn."""
        command = self.ours(programs, "-crops", self.crops, "-epochs", str(epochs)).command
        subprocess.run(command, check=True, timeout=machine.RUN_S)


def of_crops(programs: Programs, data: Data) -> dict[str, Start]:
    """Those who make crops, by name."""
    found = {PIL: data.peer("pil"), TENSOR: data.peer("tensor")}
    if programs.floor:
        found[C] = Start([programs.floor, data.folder, data.crops, str(data.pictures)])
    for level in programs.levels:
        found[ours(level)] = data.ours(programs, level=level)
        found[ours(level, INDEX)] = data.ours(programs, level=level, index=True)
    found[ours(programs.levels[0], FIRST)] = data.ours(programs, "-first")
    return found


def of_encoding(programs: Programs, data: Data) -> dict[str, Start]:
    """Those who make crops of files in another encoding, by name."""
    level = programs.levels[0]
    return {
        PIL: data.peer("pil"),
        ours(level): data.ours(programs),
        ours(level, INDEX): data.ours(programs, index=True),
    }


def of_effects(programs: Programs, data: Data) -> dict[str, Start]:
    """Those who go on with the crops, by name."""
    found = {}
    for name, ops in EFFECTS.items():
        plan = ("-transforms", json.dumps(CROP + ops))
        found[behind(PIL, name)] = data.peer(name.lower())
        found[behind(ours(programs.levels[0]), name)] = data.ours(programs, *plan)
        found[behind(ours(programs.levels[0], INDEX), name)] = data.ours(programs, *plan, index=True)
    return found


# -- measuring --------------------------------------------------------------------------------------------------------


def one_core(starts: dict[str, Start], rounds: int) -> tuple[Runs, dict[str, int]]:
    """Runs each contestant for an epoch per round, all on the same core, and counts who makes the first one's pixels.

    Before that each makes an epoch, after which its memory is there.
    """
    core = max(os.sched_getaffinity(0))
    runs: Runs = {name: [] for name in starts}
    with ExitStack() as stack:
        ready = {name: stack.enter_context(Contestant(start, core)) for name, start in starts.items()}
        made = {name: contestant.ask("check", 0)["crcs"] for name, contestant in ready.items()}
        for number, name in machine.turns(rounds, list(ready)):
            runs[name].append(ready[name].time(number + 1))
            print(
                f"  round {number + 1}: {name:38}{1000 / runs[name][-1]['cpu']:8.0f} images per CPU second", flush=True
            )
    reference = next(iter(made.values()))
    return runs, {name: sum(a == b for a, b in zip(crcs, reference)) for name, crcs in made.items()}
