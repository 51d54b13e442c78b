"""What make test-gpu needs of a machine, told in words where it is not there.

python bench/gpu/needs.py       ends with 1 where this Python lacks a package, or the feedwater program is not found
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PACKAGES = {"numpy": "numpy", "torch": "torch", "torchvision": "torchvision", "PIL": "pillow"}
"""By module, the package that has it."""


def check_packages() -> None:
    """Raises SystemExit if this Python cannot run the parts."""
    missing = [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise SystemExit(
            f"{sys.executable} has no {', '.join(missing)}: nothing was run. Say GPU_PYTHON=, a Python that has torch "
            f"for your GPU, torchvision, numpy and pillow, or: {sys.executable} -m pip install {' '.join(missing)}"
        )
    if importlib.util.find_spec("feedwater") is None:
        raise SystemExit(
            f"{sys.executable} has no feedwater: nothing was run. Bring bin/feedwater with this tree and set "
            "PYTHONPATH to its folder python, or install the wheel there"
        )


def check_program() -> None:
    """Raises SystemExit if the feedwater program is not found."""
    from feedwater import AgentError
    from feedwater._agent import binary

    try:
        binary.find_program()
    except AgentError as error:
        raise SystemExit(f"nothing was run: {error}") from None


def check_gpu(done: str, out: str | None = None) -> None:
    """Raises SystemExit where torch has no GPU, with torch's reason: nothing was done. It is written to out too."""
    import torch
    from feedwater._device.runtime import list_hiding

    if torch.cuda.is_available():
        return
    reasons = [f"torch {torch.__version__}"]
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        reasons += str(error).strip().splitlines()[:1]
    reasons += list_hiding()
    told = f"no CUDA GPU here ({'; '.join(reasons)}): nothing was {done}"
    if out:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(out).write_text(told + "\n")
    raise SystemExit(told)


if __name__ == "__main__":
    check_packages()
    check_program()
