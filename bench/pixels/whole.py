"""The whole path, files to batches in the training process, on all cores, for bench/pixels/table.py.

The runs are those of bench/path.py, tf.data's, and, for the efficiency, the unit on all cores at once.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import machine
import path
from unit import INDEX, NO_INDEX, Contestant, Data, Programs, Run, Runs

HERE = Path(__file__).resolve().parent
BEST, TFDATA = f"{path.PIL}, best", "tf.data, no antialias"
LOCAL = {NO_INDEX: path.LOCAL, INDEX: path.LOCAL + path.INDEXED}
LOCAL_KEPT = path.LOCAL + path.KEPT
ALONE = {NO_INDEX: "unit alone, all cores", INDEX: "unit alone, all cores, indexed"}


def all_cores(programs: Programs, data: Data, tensorflow: str | None, rounds: int, images: int) -> Runs:
    """Runs each contestant on all cores once per round."""
    pil = [f"{path.PIL}, {n} workers" for n in (machine.CORES, 2 * machine.CORES)]
    names = [*pil, *LOCAL.values(), *ALONE.values(), *([TFDATA] if tensorflow else [])]
    runs: Runs = {name: [] for name in names}
    ours, other = machine.Apart(path.__file__), machine.Apart(str(HERE / "tfdata.py"), tensorflow or "")
    images = data.pictures * -(-images // data.pictures)
    with ExitStack() as stack:
        alone = {}
        for index, name in ALONE.items():
            start = data.ours(programs, "-threads", str(machine.CORES), index=index == INDEX)
            alone[name] = stack.enter_context(Contestant(start))
            alone[name].ask("check", 0)
        for number, name in machine.turns(rounds, names):
            if name in alone:
                result = alone[name].time(number + 1, images // data.pictures)
            elif name == TFDATA:
                result = other.run(str(data.folder), "--images", str(images))
            else:
                result = path.measure(ours, name, str(data.folder), images, str(data.index))
            runs[name].append(result)
            print(f"  round {number + 1}: {name:38}{result['rate']:8.0f} images/s", flush=True)
    runs[BEST] = best(runs, pil)
    return runs


def against_dataloader(data: Data, rounds: int, images: int, work: path.Work, kept: bool) -> Runs:
    """Runs DataLoader and Feedwater on pictures once per round; if asked for, with kept pixels too."""
    pil = [f"{path.PIL}, {n} workers" for n in (machine.CORES, 2 * machine.CORES)]
    names = [*pil, *LOCAL.values(), *([LOCAL_KEPT] if kept else [])]
    runs: Runs = {name: [] for name in names}
    apart = machine.Apart(path.__file__)
    for number, name in machine.turns(rounds, names):
        result = path.measure(apart, name, str(data.folder), images, str(data.index), work)
        runs[name].append(result)
        print(f"  round {number + 1}: {name:38}{result['rate']:8.0f} images/s", flush=True)
    runs[BEST] = best(runs, pil)
    return runs


def best(runs: Runs, names: list[str]) -> list[Run]:
    """The fastest of some in each round."""
    return [max(results, key=lambda result: result["rate"]) for results in zip(*(runs[name] for name in names))]


def tensorflow_version(python: str) -> str:
    """Version of an interpreter's tensorflow."""
    command = [python, HERE / "tfdata.py"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=machine.RUN_S).stdout.strip()
