"""Every staged script under the doctor: what it should say and says, and what it promises against what is achieved.

    python bench/doctor/table.py [--set 2] [--variant 1] [--markdown FILE] [NAME …]

Where an action has a gain, the script runs again with it: by --try, or by FIX=1 where it is no argument of a
DataLoader. Achieved is the quotient of the two steps. Where data is late, it runs once more with batches that come
again (--replay): the largest promise is to be at least half of what that gives. Other programs on this machine are in
the figures: what they took meanwhile, and the load average before. A row that came out wrong, or broke its promise, is
run once more, and says so.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

RUN_S = 600
LEAST, MOST = 0.7, 1.4
"""Achieved over promised."""
HALF = 0.5
"""Largest promise over what replayed batches give, at least."""
REPLAYED_STEPS = 100


@dataclass(frozen=True)
class Row:
    """One script."""

    name: str
    expected: str
    found: str
    verdict: str
    stall: float | None
    promised: float | None
    achieved: float | None
    most: float | None
    """The largest promise of all."""
    replayed: float | None
    """How much faster the loop was with batches that came again."""
    others: float
    load: float
    again: bool = False
    """The second try."""

    @property
    def good(self) -> bool:
        """Found what was to be found, and kept its promises."""
        return self.found == self.expected and self.kept is not False and self.enough is not False

    @property
    def kept(self) -> bool | None:
        """Whether the promise was; None: there was none."""
        if self.promised is None or self.achieved is None:
            return None
        return LEAST <= self.achieved / self.promised <= MOST

    @property
    def enough(self) -> bool | None:
        """Whether what is promised is worth half of what replayed batches give; None: nothing was."""
        return None if self.most is None or self.replayed is None else self.most >= HALF * self.replayed


def run(name: str, module: str, variant: int, *options: str, fix: bool = False) -> dict[str, Any]:
    """A script under the doctor: the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "verdict.json"
        script = [sys.executable, str(HERE / f"{module}.py"), name]
        if name == "straggler":
            script[1:1] = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        env = {**os.environ, "VARIANT": str(variant), "FIX": str(int(fix)), "FEEDWATER_NVML": ""}
        if name == "gpu_shared":
            env |= {"FEEDWATER_NVML": str(stand_in(folder)), "STAGED_PID": f"{folder}/pid"}
        command = [sys.executable, "-m", "feedwater.doctor", "--json", str(out), *options, "--", *script]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=RUN_S)
        if not out.exists():
            raise SystemExit(f"{name}: no verdict\n{done.stderr}")
        verdict: dict[str, Any] = json.loads(out.read_text())
        return verdict | {"said": done.stderr}


def stand_in(folder: str) -> Path:
    """nvml.py as a program without arguments."""
    program = Path(folder) / "nvml"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {HERE / 'nvml.py'}\n")
    program.chmod(0o755)
    return program


def row(name: str, expected: str, module: str, variant: int, show: bool) -> Row:
    """Runs a script, and again with the first action that promises something."""
    load = os.getloadavg()[0]
    found = run(name, module, variant)
    if show:
        print(found["said"])
    promise = next((action for action in found["actions"][:1] if action["gain"] is not None), None)
    achieved = None
    if promise and "nodes" not in promise["do"] and ("try" in promise or found["cause"] == expected):
        tried = ["--try", promise["try"]] if "try" in promise else []
        again = run(name, module, variant, "--no-bursts", *tried, fix=not tried)
        achieved = found["period_s"] / again["period_s"] if again["period_s"] else None
    gain = promise["gain"] if achieved is not None and promise else None
    most = max((action["gain"] for action in found["actions"] if action["gain"] is not None), default=None)
    replayed = replay(found, name, module, variant) if found["verdict"] == "data-bound" and most is not None else None
    others = found["evidence"].get("others", 0.0)
    promises = gain, achieved, most, replayed
    return Row(name, expected, found["cause"], found["verdict"], found["stall"], *promises, others, load)


def replay(found: dict[str, Any], name: str, module: str, variant: int) -> float | None:
    """How much faster than that run the loop is with batches that come again; None: too few steps."""
    again = run(name, module, variant, "--no-bursts", "--replay", str(REPLAYED_STEPS))
    step_s = again["evidence"].get("replayed_s")
    return found["period_s"] / step_s if step_s else None


def line(row: Row) -> str:
    """For people."""
    stall = "unknown" if row.stall is None else f"{row.stall:.0%}"
    promise = f"{row.promised:.2f} → {row.achieved:.2f}" if row.promised and row.achieved else "none offered"
    right = "ok" if row.expected == row.found else "NO"
    most = f"most {row.most:.2f} of {row.replayed:.2f}" if row.most and row.replayed else ""
    host = f"others {row.others:.1f} cores, load {row.load:.1f}{', second try' if row.again else ''}"
    return f"{row.name:24}{right:4}{row.found:18}{row.verdict:12}{stall:>8}   {promise:14}{most:20}{host}"


def markdown(rows: list[Row]) -> str:
    """The table of docs/doctor.md."""
    lines = [
        "| staged script | expected | found | stall | promised → achieved | most promised, replayed | others, cores |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    for row in rows:
        stall = "unknown" if row.stall is None else f"{row.stall:.0%}"
        found = row.found if row.found == row.expected else f"**{row.found}**"
        promise = f"{row.promised:.2f} → {row.achieved:.2f}" if row.promised and row.achieved else "–"
        name = f"{row.name}{', second try' if row.again else ''}"
        most = f"{row.most:.2f}, {row.replayed:.2f}" if row.most and row.replayed else "–"
        lines.append(f"| {name} | {row.expected} | {found} | {stall} | {promise} | {most} | {row.others:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Prints a line per script; 0 if at least nine in ten are right and every promise was kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", type=int, choices=(1, 2), default=1, help="2: other scripts with the same problems")
    parser.add_argument("--variant", type=int, choices=(0, 1), default=0, help="of set 1")
    parser.add_argument("--markdown", metavar="FILE", help="write the table here too")
    parser.add_argument("--show", action="store_true", help="print what the doctor says")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    module = "staged" if args.set == 1 else "staged2"
    scripts = importlib.import_module(module).SCRIPTS

    rows = []
    for name in args.names or scripts:
        one = row(name, scripts[name][0], module, args.variant, args.show)
        print(line(one), flush=True)
        if not one.good:
            one = replace(row(name, scripts[name][0], module, args.variant, args.show), again=True)
            print(line(one), flush=True)
        rows.append(one)
        if args.markdown:
            Path(args.markdown).write_text(markdown(rows))
    right = sum(row.expected == row.found for row in rows)
    promised = [row for row in rows if row.kept is not None]
    kept = sum(bool(row.kept) for row in promised)
    late = [row for row in rows if row.enough is not None]
    enough = sum(bool(row.enough) for row in late)
    print(f"{right} of {len(rows)} right; {kept} of {len(promised)} promises within {LEAST} to {MOST}")
    print(f"{enough} of {len(late)} promise half of what replayed batches give")
    return 0 if right >= 0.9 * len(rows) and kept == len(promised) and enough == len(late) else 1


if __name__ == "__main__":
    sys.exit(main())
