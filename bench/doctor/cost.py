"""What the doctor's probe costs a training step, by the CPU time of the loop's own thread.

    python bench/doctor/cost.py [--rounds 10] [--steps 208]

The same script, a loop over a DataLoader with steps of 20 ms (which sleep), runs twice at the same time, with the probe
and without: what else goes on on the machine, and empties its caches while a step sleeps, is then the same for both.
Reports, looks at frames and windows of timed calls are in it; the first 200 steps have most of them. Workers have their
own cost, which the loop does not see where they are processes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import machine
from figure import Figure, report

STEP_US = 20_000
SCRIPT = """
import sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader
torch.set_num_threads(1)
steps, workers = int(sys.argv[1]), int(sys.argv[2])
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("ready", flush=True)
sys.stdin.readline()
for step, x in enumerate(DataLoader(torch.randn(steps * 8, 8), batch_size=8, num_workers=workers)):
    if step == 8:
        began, wall = time.thread_time(), time.perf_counter()
    loss = model(x.to("cpu")).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.02)
cpu, wall = time.thread_time() - began, time.perf_counter() - wall
print(cpu / (steps - 8) * 1e6, wall / (steps - 8) * 1e6)
"""


def start(steps: int, workers: int, folder: str = "") -> subprocess.Popen[str]:
    """The script, up to its loop; with the probe if there is a folder for it."""
    env = dict(os.environ)
    if folder:
        inject = Path(__file__).resolve().parents[2] / "python" / "feedwater" / "doctor" / "inject"
        env["FEEDWATER_DOCTOR_DIR"] = folder
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(inject), env.get("PYTHONPATH")]))
    command = [sys.executable, "-c", SCRIPT, str(steps), str(workers)]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def pair(steps: int, workers: int) -> list[tuple[float, float]]:
    """CPU time and wall per step in µs, without the probe and with it, at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        both = [start(steps, workers), start(steps, workers, folder)]
        try:
            for process in both:
                _line(process)
            for process in both:
                assert process.stdin is not None
                process.stdin.write("\n")
                process.stdin.flush()
            told = [_line(process).split() for process in both]
            if any(process.wait(machine.RUN_S) for process in both):
                raise SystemExit("the script failed")
        finally:
            for process in both:
                process.kill()
                process.communicate()
        if not list(Path(folder).glob("run-*.json")):
            raise SystemExit("the probe did not run")
    return [(float(cpu), float(wall)) for cpu, wall in told]


def _line(process: Any) -> str:
    """Its next line of output."""
    return str(process.stdout.readline())


def main() -> None:
    """Prints one figure without workers, where fetches are the loop's, and one with two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=208)
    parser.add_argument("--figures", help="file to add the figures to")
    args = parser.parse_args()
    figures = []
    for workers in (0, 2):
        pairs = [pair(args.steps, workers) for _ in range(args.rounds)]
        costs = sorted(probe[0] - bare[0] for bare, probe in pairs)
        bare_us = statistics.median(bare[0] for bare, _ in pairs)
        walls_us = statistics.median(probe[1] - bare[1] for bare, probe in pairs)
        print(
            f"{workers} workers: bare {bare_us:.0f} µs of CPU time a step, probe adds "
            f"{', '.join(f'{cost:.0f}' for cost in costs)}; and {walls_us:.0f} µs of wall time in the median",
            flush=True,
        )
        cost = 100 * statistics.median(costs) / STEP_US
        figures.append(Figure(f"doctor, {workers} workers: share of a 20 ms step", cost, 0.5, "%"))
    print(f"load average {os.getloadavg()[0]:.1f}")
    report(figures, args.figures)


if __name__ == "__main__":
    main()
