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
           its agent together, without the node. It has no limit here: what a machine's sockets take alone differs by
           two times between machines, so go run ./bench/wire compares it with a raw socket's.
main loop  A loop of pure Python counts its turns per second: alone; fed with a batch every 96 ms from such a node; and
           beside a process that uses as much CPU as agent and node do and copies as many bytes. In random order, each
           after the same pause. Fed against beside is what being fed costs more than the same work outside.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import machine
import main_loop
from feed import BATCH, BATCH_GB, PERIOD_S, WARM, loader
from figure import Figure, report, spread

READY = 4
"""Batches that are ready when a paced loop comes for them."""

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
        "main loop": lambda: main_loop.measure(args.node, args.node_pid, args.rounds),
    }
    print(json.dumps(runs[args.run]()))


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


def figures(results: dict[str, list[dict[str, float]]], loops: dict[str, Any]) -> list[Figure]:
    """What must be reached."""

    def median(name: str, key: str) -> float:
        return statistics.median(result[key] for result in results[name])

    beside = statistics.median(main_loop.ratios(loops, "speed", "fed", "beside"))
    return [
        Figure("CPU of the training process: next alone, batches ready", median("paced", "next"), 0.002, "s/GB"),
        Figure("CPU of the training process: all cores decoding", median("saturated", "process"), 0.02, "s/GB"),
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
    for name, kind in (("--node-pid", int), ("--samples", int), ("--seconds", float)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.folder is None and args.receive is None:
        parser.error("which folder?")
    return args


def main() -> None:
    """Runs everything and prints the tables."""
    args = arguments()
    if args.run:
        run(args)
    elif args.receive:
        receive(args.receive, args.samples, args.seconds)
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
    main_loop.say(loops)
    print(apart.others())
    report(figures(results, loops), args.figures)


if __name__ == "__main__":
    main()
