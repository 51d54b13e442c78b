"""A busy loop of pure Python: alone, fed, and beside a process that uses as much CPU and copies as many bytes.

Run with a share of a core, this is that process; it ends with its input.
"""

from __future__ import annotations

import os
import random
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Any

import machine
from feed import BATCH, BATCH_GB, PERIOD_S, WARM, loader
from figure import spread

LOOP_S, PAUSE_S = 1.5, 0.8
RING = 8
"""Batches of memory that the other process copies in: more than caches hold."""


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


def measure(address: str, node: int, rounds: int) -> dict[str, Any]:
    """Speeds of the loop alone, fed, and beside a burner."""
    results: dict[str, list[dict[str, float]]] = {"alone": [], "fed": [], "beside": []}
    with loader("ready", BATCH, address) as batches:
        for _ in islice(batches, WARM):
            pass
        share = fed_share(batches, node)
        for _ in range(rounds):
            for name in random.sample(list(results), len(results)):
                with burner(share) if name == "beside" else nullcontext():
                    time.sleep(PAUSE_S)
                    results[name].append(turn(LOOP_S, batches if name == "fed" else None))
    return {"share": share, **results}


def fed_share(batches: Iterator[Any], node: int) -> float:
    """Cores that agent and node use while the loop is fed."""
    began, mine, family = time.perf_counter(), time.process_time(), machine.cpu_seconds([os.getpid(), node])
    turn(2 * LOOP_S, batches)
    mine, family = time.process_time() - mine, machine.cpu_seconds([os.getpid(), node]) - family
    return (family - mine) / (time.perf_counter() - began)


@contextmanager
def burner(share: float) -> Iterator[None]:
    """A process beside this one that uses a share of a core."""
    command = [sys.executable, __file__, str(share)]
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

    ring = np.ones((RING, int(BATCH_GB * 1e9)), np.uint8)
    print("ready", flush=True)
    for number in range(1 << 40):
        began, cpu = time.perf_counter(), time.process_time()
        np.copyto(ring[(2 * number + 1) % RING], ring[2 * number % RING])
        while time.process_time() - cpu < share * PERIOD_S:
            pass
        if select.select([sys.stdin], [], [], max(0.0, began + PERIOD_S - time.perf_counter()))[0]:
            return  # the input has ended


def ratios(loops: dict[str, Any], key: str, name: str, against: str) -> list[float]:
    """How two kinds of turns compare, round by round."""
    return [one[key] / other[key] for one, other in zip(loops[name], loops[against])]


def say(loops: dict[str, Any]) -> None:
    """All numbers of the main loop."""
    rate, waited = (statistics.median(turn[key] for turn in loops["fed"]) for key in ("rate", "waited"))
    print(f"main loop:  fed {rate:.3f} GB/s, {waited:.2%} of its time in next")
    print(f"            agent and node use {loops['share']:.2f} cores meanwhile, and so does the process beside")
    for name, against in (("fed", "beside"), ("fed", "alone"), ("beside", "alone")):
        wall, cpu = (spread(ratios(loops, key, name, against)) for key in ("speed", "per_cpu"))
        print(f"            {name + ' / ' + against:16} speed {wall}, per second of its own CPU {cpu}")


if __name__ == "__main__":
    burn(float(sys.argv[1]))
