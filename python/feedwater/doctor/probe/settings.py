"""What the doctor asks of the probe, through the environment, which reaches every process of the script."""

from __future__ import annotations

import os

FOLDER = os.environ.get("FEEDWATER_DOCTOR_DIR", "")
"""Where numbers go; "" inside a program that runs the probe itself."""
BURSTS = os.environ.get("FEEDWATER_DOCTOR_BURSTS", "1") == "1"
"""Whether to wait now and then until the prefetch queue is full, to see steps that never wait."""
REPLAY = int(os.environ.get("FEEDWATER_DOCTOR_REPLAY", "0"))
"""Steps for which batches that were seen come again. The training result is void."""
TRY = os.environ.get("FEEDWATER_DOCTOR_TRY", "")
"""Arguments that every DataLoader gets in place of its own: name=value,name=value."""


def note_error(what: str) -> None:
    """Writes down what went wrong in the probe; nothing without a folder."""
    if not FOLDER:
        return
    try:
        with open(f"{FOLDER}/error-{os.getpid()}", "a") as file:
            file.write(what + "\n")
    except OSError:
        pass
