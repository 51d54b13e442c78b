"""One rank of a training job that tells scripted figures; its Loader, agent, wants and nodes are real.

python rank.py NODES RANK WORLD STEP_S IDLE_S [JOB]

A step keeps the GPU busy for STEP_S less IDLE_S, which is how long the loop sleeps. Whatever the step takes then, the
agent is told of STEP_S, and of IDLE_S as the idle that a GPU's events would have shown. Each figure varies by a
few percent, the same way in each run; the last rank of the job is the worst.
"""

from __future__ import annotations

import random
import sys
import time

import feedwater
from feedwater._meter.idle import Reading
from feedwater._meter.pace import StepTime

BATCH = 16
WORSE = 1.12
"""Times the idle of the others, on the last rank."""


def scripted(rank: int, world: int, number: int, step_s: float, idle_s: float) -> StepTime:
    """The turn that ended with that step."""
    noise = random.Random(rank << 32 | number)  # noqa: S311
    late = 2.5 if noise.random() < 0.03 else 1.0
    idle_s *= late * noise.uniform(0.9, 1.1) * (WORSE if rank == world - 1 else 1.0)
    busy_s = (step_s - idle_s / late) * noise.uniform(0.98, 1.02)
    step = StepTime(busy_s + idle_s, 1.1 * idle_s)
    step.reading = Reading(idle_s)
    return step


def main() -> None:
    """Trains until it is killed."""
    nodes, rank, world = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    step_s, idle_s = float(sys.argv[4]), float(sys.argv[5])
    job = sys.argv[6] if len(sys.argv) > 6 else "rn50-a"
    loader = feedwater.Loader(
        "photos",
        feedwater.transforms.CenterCrop(16),
        batch_size=BATCH,
        shuffle=True,
        nodes=nodes,
        job=job,
        rank=rank,
        num_replicas=world,
        steps_per_epoch=1 << 20,
    )
    pulse, pace = loader._engine.pulse, loader._engine.pace
    tell = pulse.note_step

    def step(at: object) -> None:
        if pace.step is not None:
            pace.step = scripted(rank, world, pulse.step_number(at), step_s, idle_s)
        tell(at)

    pulse.note_step = step
    for _ in loader:
        time.sleep(step_s - idle_s)


if __name__ == "__main__":
    main()
