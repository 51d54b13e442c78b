"""In the place of feedwater-nvml: a GPU that the process named in the file STAGED_PID shares with another."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

while os.getppid() != 1:
    file = Path(os.environ["STAGED_PID"])
    if file.exists():
        processes = [{"pid": int(file.read_text()), "kind": "compute"}, {"pid": 1, "kind": "compute"}]
        print(json.dumps({"gpus": [{"index": 0, "processes": processes}]}), flush=True)
    time.sleep(0.5)
