"""What the doctor's probe costs a training step, by the CPU time of the loop's own thread.

    python bench/doctor/cost.py [--rounds 5] [--steps 300]

The same script, a loop over a DataLoader with steps of 20 ms (which sleep), runs with the probe and without, in turns,
in processes of their own. Reports, looks at frames and windows of timed calls are in it. Workers have their own cost,
which the loop does not see where they are processes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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
for step, x in enumerate(DataLoader(torch.randn(steps * 8, 8), batch_size=8, num_workers=workers)):
    if step == 8:
        began = time.thread_time()
    loss = model(x.to("cpu")).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.02)
print((time.thread_time() - began) / (steps - 8) * 1e6)
"""


def step_us(steps: int, workers: int, *, probe: bool) -> float:
    """CPU time per step."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ)
        if probe:
            inject = Path(__file__).resolve().parents[2] / "python" / "feedwater" / "doctor" / "inject"
            env["FEEDWATER_DOCTOR_DIR"] = folder
            env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(inject), env.get("PYTHONPATH")]))
        command = [sys.executable, "-c", SCRIPT, str(steps), str(workers)]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True, timeout=machine.RUN_S)
        if probe and not list(Path(folder).glob("run-*.json")):
            raise SystemExit("the probe did not run")
        return float(done.stdout)


def main() -> None:
    """Prints one figure without workers, where fetches are the loop's, and one with two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--figures", help="file to add the figures to")
    args = parser.parse_args()
    figures = []
    for workers in (0, 2):
        took: dict[str, list[float]] = {"bare": [], "probe": []}
        for _, way in machine.turns(args.rounds, list(took)):
            took[way].append(step_us(args.steps, workers, probe=way == "probe"))
        costs = [measured - alone for measured, alone in zip(took["probe"], took["bare"])]
        bare = statistics.median(took["bare"])
        print(
            f"{workers} workers: bare {bare:.0f} µs of CPU time a step, probe adds {min(costs):.0f} … {max(costs):.0f}"
        )
        cost = statistics.median(costs)
        figures.append(Figure(f"doctor, {workers} workers: share of a 20 ms step", 100 * cost / STEP_US, 0.5, "%"))
    report(figures, args.figures)


if __name__ == "__main__":
    main()
