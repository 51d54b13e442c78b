"""What being fed costs the training process.

    python bench/trainer.py FOLDER [--rounds 5]

Four measurements, each run in a process of its own and in turns. Batches are 256 uint8 images of 224×224, 38.5 MB; GB
are the bytes of their pixels. CPU is time on a core, of user and kernel.

paced      A node has batches ready, and the loop is slower: it pauses until some are there and takes them one after the
           other, so next never waits. CPU of the process in next alone. The first next after a pause is counted apart,
           for any code is slow then, its caches being cold: a round trip through json is shown beside it.
saturated  FOLDER is decoded on all cores of this machine; the loop takes what comes and reads one pixel of each batch.
           CPU of the whole process.
remote     A node has batches ready; the loop takes them as fast as they come over the loopback. CPU of the process and
           its agent together, without the node.
main loop  A loop of pure Python counts its turns per second: alone; fed with a batch every 96 ms from such a node; and
           beside a process that uses as much CPU as agent and node do and copies as many bytes. In random order, each
           after the same pause. Fed against beside is what being fed costs more than the same work outside.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import machine
from figure import Figure, report

BATCH, SIZE = 256, 224
BATCH_GB = BATCH * SIZE * SIZE * 3 / 1e9
PERIOD_S = 0.096
"""Between two batches of a paced loop: 0.4 GB/s."""
READY = 4
"""Batches that are ready when a paced loop comes for them."""
WARM = 12
"""Batches before each measurement: each slot was used, and its pages are there."""
LOOP_S, PAUSE_S = 1.5, 0.8


@contextmanager
def loader(source: str, samples: int, nodes: str | None = None) -> Iterator[Iterator[Any]]:
    """Endless batches of that many samples."""
    import feedwater
    from feedwater import transforms

    augment = [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip()]
    options: dict[str, Any] = {"batch_size": samples, "shuffle": True, "steps_per_epoch": 1 << 20, "nodes": nodes}
    with feedwater.Loader(source, augment, **options) as batches:
        yield iter(batches)


# -- what a run measures ----------------------------------------------------------------------------------------------


def paced(address: str, bursts: int = 20) -> dict[str, float]:
    """next of a loop that is slower than its node."""
    import torch  # noqa: F401 (batches are tensors then)

    ready: list[float] = []
    paused: list[float] = []
    other: dict[str, list[float]] = {"ready": [], "paused": []}
    with loader("ready", BATCH, address) as batches:
        for _ in islice(batches, WARM):
            pass
        for _ in range(bursts):
            time.sleep(READY * PERIOD_S)
            paused.append(cpu_of(lambda: next(batches)))
            ready += [cpu_of(lambda: next(batches)) for _ in range(READY - 1)]
            other["ready"].append(min(cpu_of(round_trip) for _ in range(20)))
            time.sleep(READY * PERIOD_S)
            other["paused"].append(cpu_of(round_trip))
    return {
        "next": statistics.fmean(ready) / BATCH_GB,
        "after_pause": statistics.fmean(paused) / BATCH_GB,
        "colder": statistics.median(paused) / statistics.median(ready),
        "other_colder": statistics.median(other["paused"]) / statistics.median(other["ready"]),
    }


def cpu_of(call: Callable[[], Any]) -> float:
    """CPU time of this process in a call."""
    before = time.process_time()
    call()
    return time.process_time() - before


def round_trip() -> None:
    """Some other work of Python's, of about the length of a next."""
    json.loads(json.dumps({str(i): i for i in range(50)}))


def saturated(folder: str, seconds: float = 8) -> dict[str, float]:
    """The whole process, while all cores decode."""
    import torch  # noqa: F401

    with loader(folder, BATCH) as batches:
        for batch, _ in islice(batches, WARM):
            int(batch[-1, -1, -1, -1])
        taken, began, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - began < seconds:
            batch, _ = next(batches)
            int(batch[-1, -1, -1, -1])
            taken += 1
        cpu, took = time.process_time() - cpu, time.perf_counter() - began
    return {"process": cpu / (taken * BATCH_GB), "images": taken * BATCH / took}


def receive(address: str, samples: int, seconds: float) -> None:
    """Takes all a node has, then says how much that was and what it cost: the receiver of bench/wire."""
    with loader("ready", samples, address) as batches:
        for _ in islice(batches, WARM):
            pass
        print("warm", flush=True)
        taken, began, cpu = 0, time.perf_counter(), machine.cpu_seconds([os.getpid()])
        while time.perf_counter() - began < seconds:
            taken += next(batches)[0].nbytes
        took, cpu = time.perf_counter() - began, machine.cpu_seconds([os.getpid()]) - cpu
    print(json.dumps({"bytes": taken, "seconds": took, "cpu_seconds": cpu}), flush=True)


# -- the main loop ----------------------------------------------------------------------------------------------------


def turn(seconds: float, batches: Iterator[Any] | None) -> dict[str, float]:
    """A loop of pure Python for a while; takes a batch whenever one is due."""
    turns = taken = total = 0
    waited, cpu, began = 0.0, time.thread_time(), time.perf_counter()
    due, now = began, began
    while now < began + seconds:
        for i in range(2000):
            total += i & 7
        turns += 1
        now = time.perf_counter()
        if batches is not None and now >= due:
            batch = next(batches)
            del batch
            taken, due = taken + 1, due + PERIOD_S
            waited += time.perf_counter() - now
    took = now - began
    return {
        "speed": turns / took,
        "per_cpu": turns / (time.thread_time() - cpu),
        "rate": taken * BATCH_GB / took,
        "waited": waited / took,
    }


def main_loop(address: str, node: int, rounds: int) -> dict[str, Any]:
    """Speeds of the loop alone, fed, and beside a burner."""
    results: dict[str, list[dict[str, float]]] = {"alone": [], "fed": [], "beside": []}
    with loader("ready", BATCH, address) as batches:
        for _ in islice(batches, WARM):
            pass
        share = fed_share(batches, node)
        for _ in range(rounds):
            for name in random.sample(list(results), len(results)):
                time.sleep(PAUSE_S)
                if name == "beside":
                    with burner(share):
                        results[name].append(turn(LOOP_S, None))
                else:
                    results[name].append(turn(LOOP_S, batches if name == "fed" else None))
    return {"share": share, **results}


def fed_share(batches: Iterator[Any], node: int) -> float:
    """Cores that agent and node use while the loop is fed."""
    before = time.process_time(), machine.cpu_seconds([os.getpid(), node]), time.perf_counter()
    turn(2 * LOOP_S, batches)
    mine, all_, took = time.process_time(), machine.cpu_seconds([os.getpid(), node]), time.perf_counter()
    return (all_ - before[1] - (mine - before[0])) / (took - before[2])


@contextmanager
def burner(share: float) -> Iterator[None]:
    """A process beside this one that uses a share of a core."""
    command = [sys.executable, __file__, "--burn", str(share)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    process.stdout.readline()  # its memory is there
    try:
        yield
    finally:
        process.stdin.close()
        process.wait(60)


def burn(share: float) -> None:
    """Each period copies a batch, as from the node's memory to the trainer's, then computes for the rest."""
    import numpy as np

    ring = np.ones((8, int(BATCH_GB * 1e9)), np.uint8)
    print("ready", flush=True)
    for number in range(1 << 40):
        began, cpu = time.perf_counter(), time.process_time()
        np.copyto(ring[(2 * number + 1) % 8], ring[2 * number % 8])
        while time.process_time() - cpu < share * PERIOD_S:
            pass
        if select.select([sys.stdin], [], [], max(0.0, began + PERIOD_S - time.perf_counter()))[0]:
            return  # the input has ended


# -- all runs ---------------------------------------------------------------------------------------------------------

RUNS = ("paced", "saturated", "remote")


def measure(apart: machine.Apart, name: str, folder: str, wire: Path, rounds: int = 1) -> dict[str, Any]:
    """One run, with a fresh node if it needs one."""
    if name == "saturated":
        return apart.run(folder, "--run", name)
    with machine.ready_node(wire) as (pid, address):
        if name == "remote":
            got = apart.run(folder, "--receive", address, "--samples", str(BATCH), "--seconds", "3")
            gb = got["bytes"] / 1e9
            return {"both": got["cpu_seconds"] / gb, "rate": gb / got["seconds"]}
        return apart.run(folder, "--run", name, "--node", address, "--node-pid", str(pid), "--rounds", str(rounds))


def run(args: argparse.Namespace) -> None:
    """Does one run in this process and prints its result as JSON."""
    runs = {
        "paced": lambda: paced(args.node),
        "saturated": lambda: saturated(args.folder),
        "main loop": lambda: main_loop(args.node, args.node_pid, args.rounds),
    }
    print(json.dumps(runs[args.run]()))


def spread(values: list[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):8.4f} ({min(values):.4f} … {max(values):.4f})"


def say_runs(results: dict[str, list[dict[str, float]]]) -> None:
    """All numbers of the first three measurements."""
    print(f"{'':44}{'median and range of the rounds'}")
    units = {
        "next": "s/GB in next",
        "after_pause": "s/GB in next after a pause",
        "colder": "× as much as without one",
        "other_colder": "× as much, a json round trip",
        "process": "s/GB in the whole process",
        "both": "s/GB in process and agent",
        "images": "images/s",
        "rate": "GB/s",
    }
    for name, rounds in results.items():
        for key in rounds[0]:
            print(f"{name + ':':12}{units[key]:32}{spread([result[key] for result in rounds])}")


def ratios(loops: dict[str, Any], key: str, name: str, against: str) -> list[float]:
    """How two kinds of turns compare, round by round."""
    return [one[key] / other[key] for one, other in zip(loops[name], loops[against])]


def say_loops(loops: dict[str, Any]) -> None:
    """All numbers of the main loop."""
    rate, waited = (statistics.median(turn[key] for turn in loops["fed"]) for key in ("rate", "waited"))
    print(f"main loop:  fed {rate:.3f} GB/s, {waited:.2%} of its time in next")
    print(f"            agent and node use {loops['share']:.2f} cores meanwhile, and so does the process beside")
    for name, against in (("fed", "beside"), ("fed", "alone"), ("beside", "alone")):
        wall, cpu = (spread(ratios(loops, key, name, against)) for key in ("speed", "per_cpu"))
        print(f"            {name + ' / ' + against:16} speed {wall}, per second of its own CPU {cpu}")


def figures(results: dict[str, list[dict[str, float]]], loops: dict[str, Any]) -> list[Figure]:
    """What must be reached."""

    def median(name: str, key: str) -> float:
        return statistics.median(result[key] for result in results[name])

    beside = statistics.median(ratios(loops, "speed", "fed", "beside"))
    return [
        Figure("CPU of the training process: next alone, paced", median("paced", "next"), 0.002, "s/GB"),
        Figure("CPU of the training process: all cores decoding", median("saturated", "process"), 0.02, "s/GB"),
        Figure("CPU of training process and agent, remote", median("remote", "both"), 0.27, "s/GB"),
        Figure("speed of a busy main loop, fed, against beside equal work", beside, 0.9, "", True),
    ]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", help="image folder, classes in sub-folders")
    parser.add_argument(
        "--rounds", type=int, default=5, help="how often each is measured; the main loop twice as often"
    )
    parser.add_argument("--figures", metavar="FILE", help="add the figures to this file")
    for name in ("--run", "--node", "--receive"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    for name, kind in (("--node-pid", int), ("--samples", int), ("--seconds", float), ("--burn", float)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.folder is None and args.receive is None and args.burn is None:
        parser.error("which folder?")
    return args


def main() -> None:
    """Runs everything and prints the tables."""
    args = arguments()
    if args.run:
        run(args)
    elif args.receive:
        receive(args.receive, args.samples, args.seconds)
    elif args.burn is not None:
        burn(args.burn)
    else:
        measure_all(args)


def measure_all(args: argparse.Namespace) -> None:
    """All runs, in turns."""
    print(f"{machine.settings()}\nbatches of {BATCH}, {BATCH_GB * 1000:.1f} MB; {args.rounds} rounds\n", flush=True)
    apart = machine.Apart()
    results: dict[str, list[dict[str, float]]] = {name: [] for name in RUNS}
    with tempfile.TemporaryDirectory() as directory:
        wire = machine.build_wire(directory)
        for _, name in machine.turns(args.rounds, RUNS):
            results[name].append(measure(apart, name, args.folder, wire))
        loops = measure(apart, "main loop", args.folder, wire, 2 * args.rounds)
    say_runs(results)
    say_loops(loops)
    print(apart.others())
    report(figures(results, loops), args.figures)


if __name__ == "__main__":
    main()
