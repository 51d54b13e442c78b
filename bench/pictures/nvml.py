"""In the place of feedwater-nvml: readings of four GPUs, busy for the share that the variable SCRIPTED_BUSY holds."""

from __future__ import annotations

import json
import os
import time

GB = 10**9


def reading(index: int, busy: float) -> dict[str, object]:
    """A GPU, as docs/nvml.md has it."""
    return {
        "index": index,
        "uuid": f"GPU-{index:08d}",
        "name": "NVIDIA H100 80GB HBM3",
        "sm_activity": busy - 0.01 * index,
        "memory_used_bytes": 61 * GB,
        "memory_total_bytes": 85 * GB,
        "processes": [{"pid": 4000 + index, "kind": "compute", "memory_used_bytes": 60 * GB}],
        "throttle_reasons": [],
        "unknown": {},
    }


while os.getppid() != 1:
    share = float(os.environ["SCRIPTED_BUSY"])
    print(json.dumps({"gpus": [reading(index, share) for index in range(4)]}), flush=True)
    time.sleep(0.5)
