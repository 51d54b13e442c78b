"""What the doctor's probe costs a training step, by the CPU time of the loop's own thread and by its wall time.

    python bench/doctor/cost.py [--rounds 10] [--steps 408]

The same script, a loop over a DataLoader with steps of 20 ms (which sleep), runs three times at once: bare, with the
probe, and with 50 µs of work planted in each step. What else goes on on the machine, and empties its caches while a
step sleeps, is then the same for all. Windows of 50 steps, one second, are compared pair by pair; the median of the
differences is what the probe costs, and the planted 50 µs show whether the measurement would see them. Reports, looks
at frames and windows of timed calls are in it; the first 200 steps have most of them and are told apart.
Apart from all that goes on elsewhere in a step, the CPU time of next itself, less that of getting the batch, is
compared in the same way: the probe does nearly all of its work there, but for its windows of timed calls.
Workers have their own cost, which the loop does not see where they are processes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import machine
from figure import Figure, report

STEP_US = 20_000
PLANTED_US = 50
WARM, WINDOW, FIRST = 8, 50, 200
"""Steps: before the first window, of a window, and those in which the probe looks closest."""
WAYS = ("bare", "probe", "planted")
SCRIPT = """
import json, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader
torch.set_num_threads(1)
steps, workers, planted = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("ready", flush=True)
sys.stdin.readline()
cpu, wall, around, got = [], [], [0.0], []
iterator = iter(DataLoader(torch.randn(steps * 8, 8), batch_size=8, num_workers=workers))
data = iterator._next_data
def timed():
    began = time.thread_time()
    batch = data()
    got.append(time.thread_time() - began)
    return batch
iterator._next_data = timed
for _ in range(steps):
    began = time.thread_time()
    x = next(iterator)
    around.append(around[-1] + time.thread_time() - began - got[-1])
    cpu.append(time.thread_time())
    wall.append(time.perf_counter())
    loss = model(x.to("cpu")).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    end = time.thread_time() + planted
    while planted and time.thread_time() < end:
        pass
    time.sleep(0.02)
print(json.dumps([cpu, wall, around]))
"""

Clocks = tuple[list[float], list[float], list[float]]
"""CPU time of the loop's thread, wall time, and CPU time in next but for the batch, at the begin of steps; seconds."""


def start(steps: int, workers: int, way: str, folder: str) -> subprocess.Popen[str]:
    """The script, up to its loop; the probe writes into folder."""
    env = dict(os.environ)
    if way == "probe":
        inject = Path(__file__).resolve().parents[2] / "python" / "feedwater" / "doctor" / "inject"
        env["FEEDWATER_DOCTOR_DIR"] = folder
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(inject), env.get("PYTHONPATH")]))
    planted = PLANTED_US / 1e6 if way == "planted" else 0.0
    command = [sys.executable, "-c", SCRIPT, str(steps), str(workers), str(planted)]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def together(steps: int, workers: int) -> dict[str, Clocks]:
    """All ways at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        running = {way: start(steps, workers, way, folder) for way in WAYS}
        try:
            for process in running.values():
                _line(process)
            for process in running.values():
                assert process.stdin is not None
                process.stdin.write("\n")
                process.stdin.flush()
            told = {way: json.loads(_line(process)) for way, process in running.items()}
            if any(process.wait(machine.RUN_S) for process in running.values()):
                raise SystemExit("the script failed")
        finally:
            for process in running.values():
                process.kill()
                process.communicate()
        if not list(Path(folder).glob("run-*.json")):
            raise SystemExit("the probe did not run")
    return told


def _line(process: Any) -> str:
    """Its next line of output."""
    return str(process.stdout.readline())


def windows(clock: Sequence[float]) -> list[float]:
    """Microseconds per step, in each window."""
    edges = clock[WARM::WINDOW]
    return [(later - earlier) / WINDOW * 1e6 for earlier, later in pairwise(edges)]


def median(values: list[float]) -> tuple[float, float]:
    """The median, and half the width of the interval that holds it in 95 of 100 cases, by order statistics."""
    ordered, n = sorted(values), len(values)
    low = math.floor(n / 2 - 0.98 * math.sqrt(n))
    half = (ordered[n - 1 - low] - ordered[low]) / 2 if low >= 0 else math.inf  # of so few nothing is known
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2, half


def measure(rounds: int, steps: int, workers: int) -> list[Figure]:
    """Prints what each way costs beyond the bare one, by both clocks, and returns the probe's figures."""
    runs = [together(steps, workers) for _ in range(rounds)]
    bare, _ = median([us for run in runs for us in windows(run["bare"][0])])
    print(f"{workers} workers: bare {bare:.0f} µs of CPU time a step", flush=True)
    figures = []
    early = FIRST // WINDOW
    for when, part in ((f"first {FIRST} steps", slice(early)), ("later", slice(early, None))):
        for way in WAYS[1:]:
            costs = []
            for clock in (0, 1, 2):
                pairs = [list(zip(windows(run["bare"][clock]), windows(run[way][clock])))[part] for run in runs]
                costs.append(median([with_it - without for pair in pairs for without, with_it in pair]))
            (cpu, wide), (wall, wall_wide), (inside, inside_wide) = costs
            print(f"  {when}, {way} adds {cpu:.0f} ± {wide:.0f} µs of CPU time,", end=" ")
            print(f"{inside:.0f} ± {inside_wide:.0f} of it in next; {wall:.0f} ± {wall_wide:.0f} of wall time")
            if way == "probe":
                name = f"doctor, {workers} workers, {when}: share of a 20 ms step, in next"
                figures.append(Figure(name, 100 * inside / STEP_US, 0.5, "%"))
    return figures


def main() -> None:
    """Prints figures without workers, where fetches are the loop's, and with two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=408)
    parser.add_argument("--figures", help="file to add the figures to")
    args = parser.parse_args()
    if args.steps < WARM + FIRST + 2 * WINDOW:
        parser.error(f"--steps: {WARM + FIRST + 2 * WINDOW} at least")
    figures = [figure for workers in (0, 2) for figure in measure(args.rounds, args.steps, workers)]
    print(f"load average {os.getloadavg()[0]:.1f}")
    report(figures, args.figures)


if __name__ == "__main__":
    main()
