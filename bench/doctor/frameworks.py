"""Ordinary training scripts, as people have them, with and without the doctor: the same result, and one screen.

    pip install lightning accelerate transformers
    python bench/doctor/frameworks.py [--data FOLDER] [--epochs 1] [--show] [--markdown FILE] [NAME …]

Each script of bench/doctor/frameworks runs by itself, then under the doctor. What it prints and a digest of the
parameters that it saves must be the same; the doctor must have a verdict, in at most 24 lines of 80 columns. torch has
one thread: with more, sums differ from run to run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image

SCRIPTS = Path(__file__).resolve().parent / "frameworks"
PACKAGES = {"plain": "torch", "lit": "lightning", "hf": "transformers", "accel": "accelerate"}
RUN_S = 400
LINES, COLUMNS = 24, 80
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
HEALTHY = (0, 3)
"""Exit codes of the doctor after a script that did well: no matter of data, or one."""


@dataclass(frozen=True)
class Outcome:
    """One run of a script."""

    code: int
    printed: str
    digest: str
    said: str
    seconds: float
    verdict: dict[str, Any]


def run(name: str, data: str, epochs: int, *, doctor: bool) -> Outcome:
    """A script, by itself or under the doctor."""
    with tempfile.TemporaryDirectory() as folder:
        saved, found = Path(folder) / "model.pt", Path(folder) / "verdict.json"
        command = [sys.executable, str(SCRIPTS / f"{name}.py"), data, "--epochs", str(epochs), "--save", str(saved)]
        if doctor:
            command = [sys.executable, "-m", "feedwater.doctor", "--json", str(found), "--", *command]
        began = time.perf_counter()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, env=ENVIRONMENT)
        took = time.perf_counter() - began
        verdict = json.loads(found.read_text()) if found.exists() else {}
        return Outcome(done.returncode, _steady(done.stdout), digest(saved), done.stderr, took, verdict)


def _steady(printed: str) -> str:
    """What a script prints but for the times that transformers tells."""
    return "\n".join(line for line in printed.splitlines() if "runtime" not in line)


def digest(file: Path) -> str:
    """Of a file of parameters; "" where there is none."""
    if not file.exists():
        return ""
    hashed = hashlib.sha256()
    for key, value in torch.load(file).items():
        hashed.update(key.encode() + value.contiguous().numpy().tobytes())
    return hashed.hexdigest()[:12]


def noise(folder: Path) -> str:
    """A folder of 4 classes with 160 pictures each."""
    torch.manual_seed(0)
    for i in range(640):
        (folder / f"class{i % 4}").mkdir(exist_ok=True)
        small = torch.randint(0, 255, (12, 16, 3), dtype=torch.uint8).numpy()
        Image.fromarray(small).resize((160, 120)).save(folder / f"class{i % 4}" / f"{i}.jpg")
    return str(folder)


def screen(said: str) -> list[str]:
    """The doctor's last words, in what came through standard error."""
    return said[said.rfind("\nfeedwater doctor  ") + 1 :].rstrip().splitlines()


def faults(alone: Outcome, under: Outcome) -> list[str]:
    """What is not as it should be."""
    if alone.code:
        return [f"the script failed by itself:\n{alone.said[-2000:]}"]
    lines = screen(under.said)
    seen = {
        f"exit code {under.code}": under.code not in HEALTHY,
        "another output": alone.printed != under.printed,
        f"other parameters: {alone.digest}, {under.digest}": not alone.digest or alone.digest != under.digest,
        f"a screen of {len(lines)} lines": not 3 <= len(lines) <= LINES or max(map(len, lines)) > COLUMNS,
        "no verdict": under.verdict.get("verdict") in (None, "unknown", "errors"),
    }
    return [what for what, is_so in seen.items() if is_so]


def main() -> int:
    """Prints a row per script; 0 if none has a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of class folders; without, small pictures of noise")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what the doctor says")
    parser.add_argument("--markdown", metavar="FILE", help="write the table here too")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PACKAGES))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        return table(args, str(Path(args.data).resolve()) if args.data else noise(Path(made)))


def table(args: argparse.Namespace, data: str) -> int:
    """Prints the rows; 0 if there is no fault."""
    rows = ["| script | parameters | the same | verdict | lines |", "|---|---|---|---|--:|"]
    failed = False
    for name in args.names or PACKAGES:
        alone, under = (run(name, data, args.epochs, doctor=doctor) for doctor in (False, True))
        wrong = faults(alone, under)
        failed |= bool(wrong)
        if args.show or wrong:
            print(under.said[-4000:])
        found = f"{under.verdict.get('verdict')}: {under.verdict.get('cause')}"
        rows.append(
            f"| {_title(name)} | {under.digest} | {'; '.join(wrong) or 'yes'} | {found} | {len(screen(under.said))} |"
        )
        took = f"{alone.seconds:.0f} s, {under.seconds:.0f} s, load average {os.getloadavg()[0]:.1f}"
        print(f"{_title(name)}: {', '.join(wrong) or 'the same'}; {found}; {took}", flush=True)
        if args.markdown:
            Path(args.markdown).write_text("\n".join(rows) + "\n")
    return int(failed)


def _title(name: str) -> str:
    """Of a script, with the version of what it uses."""
    from importlib import metadata

    return f"{name}.py, {PACKAGES[name]} {metadata.version(PACKAGES[name])}"


if __name__ == "__main__":
    sys.exit(main())
