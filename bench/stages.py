"""What measuring costs a training step: feedwater.stages(), by the CPU time of the loop's own thread.

    python bench/stages.py [--rounds 25] [--steps 500]

The same loop over a DataLoader (a model of two layers, loss, backward, optimizer, one copy of the batch to where it is)
runs bare and measured, in turns. The median of the rounds' differences per step is what measuring costs; it does not
depend on how long the step is, so it is given as a share of a step of 20 ms. In so
short a step caches stay warm, which flatters. Without a GPU this is the host's clock: events cost more.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import nullcontext
from typing import Any

import feedwater
import torch
from torch import nn
from torch.utils.data import DataLoader

import machine
from figure import Figure, report

STEP_US = 20_000


def turn(steps: int, way: str) -> float:
    """Microseconds of CPU time per step."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = DataLoader(torch.randn(steps, 8), batch_size=None)
    given: dict[str, Any] = {
        "bare": nullcontext(),
        "given": feedwater.stages(model, optimizer),
        "found": feedwater.stages(),
    }
    with given[way]:
        began = time.thread_time()
        for x in data:
            loss = model(x.to("cpu")).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return (time.thread_time() - began) / steps * 1e6


def main() -> None:
    """Prints one figure for a model that is given, and one for a model that is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--figures", help="file to add the figures to")
    args = parser.parse_args()
    torch.set_num_threads(1)
    took: dict[str, list[float]] = {"bare": [], "given": [], "found": []}
    turn(args.steps, "bare")
    for _, way in machine.turns(args.rounds, list(took)):
        took[way].append(turn(args.steps, way))
    bare = statistics.median(took["bare"])
    print(f"bare step {bare:.1f} µs of CPU time")
    figures = []
    for way in ("given", "found"):
        cost = statistics.median(measured - alone for measured, alone in zip(took[way], took["bare"]))
        print(f"stages, model {way}: {cost:.1f} µs a step")
        figures.append(Figure(f"stages, model {way}: share of a 20 ms step", 100 * cost / STEP_US, 0.5, "%"))
    report(figures, args.figures)


if __name__ == "__main__":
    main()
