"""On a machine with a CUDA GPU: how long a real ResNet-50 loop stands still for data, by three instruments.

    python bench/gpu/main.py FOLDER [--batch 256] [--steps 100] [--rounds 3] [--json FILE]

FOLDER holds photographs in class folders. PyTorch's DataLoader runs with each number of workers that may be its best;
the best one and Feedwater on the same cores then take turns. Idle is told by the product's meter (CUDA events), by a
trace of torch.profiler, and by feedwater-nvml. The meter is judged by the trace: what it says against the idle of the
trace less that of the same loop with its first batch again and again. Then the doctor looks at the DataLoader's loop:
its verdict, and how much longer steps take under it. Where there is no GPU it says so and ends with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import machine

LOOP = Path(__file__).resolve().with_name("loop.py")
WAYS = ("dataloader", "feedwater", "device")
RUN_S = 1200


class Bench:
    """The runs of one GPU and folder."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._fixed = [args.folder, "--batch", str(args.batch), "--steps", str(args.steps), "--nvml", nvml()]
        self.workers = 0

    def loop(self, way: str, *more: str, before: tuple[str, ...] = ()) -> dict[str, Any]:
        """What loop.py tells."""
        command = [
            *before,
            sys.executable,
            str(LOOP),
            *self._fixed,
            way,
            "--workers",
            str(self.workers),
            *more,
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=RUN_S)
        lines = done.stdout.splitlines()
        if not lines:  # the doctor has exit codes of its own for a loop that ran
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}")
        told: dict[str, Any] = json.loads(lines[-1])
        return told

    def best(self) -> dict[int, float]:
        """Images per second of the DataLoader, by workers; the best number is used from then on."""
        rates = {}
        for self.workers in sorted({2, 4, machine.CORES // 2, machine.CORES, machine.CORES * 3 // 2} - {0, 1}):
            rates[self.workers] = self.loop("dataloader")["images_s"]
        self.workers = max(rates, key=lambda workers: rates[workers])
        return rates

    def traced(self, way: str, folder: str, *more: str) -> dict[str, Any]:
        """The meter against the trace, per step."""
        run, ready = (self.loop(way, *more, "--trace", f"{folder}/trace.json", *again) for again in ((), ("--again",)))
        return judged(run, ready)

    def doctor(self, folder: str) -> dict[str, Any]:
        """What the doctor says of the DataLoader's loop, and how long a step takes with it and without."""
        verdict = Path(folder) / "verdict.json"
        command = (sys.executable, "-m", "feedwater.doctor", "--json", str(verdict), "--")
        bare, probed = self.loop("dataloader"), self.loop("dataloader", before=command)
        said = json.loads(verdict.read_text())
        told = {name: said.get(name) for name in ("verdict", "cause", "idle", "wait", "ceiling")}
        return {**told, "step_s": bare["step_s"], "step_with_doctor_s": probed["step_s"]}


def nvml() -> str:
    """feedwater-nvml, beside the program or on PATH; "" if it is not there."""
    beside = Path(machine.program()).with_name("feedwater-nvml")
    return str(beside) if beside.is_file() else shutil.which("feedwater-nvml") or ""


def judged(run: dict[str, Any], ready: dict[str, Any]) -> dict[str, Any]:
    """The meter's error as a share of the step: against the idle that is gone when data is always ready."""
    idle_s, always_s = (told["trace"]["step_s"] - told["trace"]["busy_s"] for told in (run, ready))
    truth_s, meter_s = idle_s - always_s, run["meter_idle_s"]
    step_s = run["trace"]["step_s"]
    return {
        "step_s": step_s,
        "trace_idle_s": idle_s,
        "idle_with_data_ready_s": always_s,
        "truth_s": truth_s,
        "meter_s": meter_s,
        "error": None if meter_s is None else (meter_s - truth_s) / step_s,
        "in_next_s": run["trace"]["waiting_idle_s"],
    }


def medians(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each number that all runs know; readings of NVML too."""
    flat = [{**run, **run["nvml"]} for run in runs]
    names = [name for name, value in flat[0].items() if isinstance(value, (int, float, type(None)))]
    known = {name: [run[name] for run in flat if run[name] is not None] for name in names}
    return {name: statistics.median(values) if len(values) == len(runs) else None for name, values in known.items()}


def share(value: float | None) -> str:
    """For people; "?" is unknown."""
    return "?" if value is None else f"{value:.1%}"


def text(found: dict[str, Any]) -> str:
    """The tables."""
    lines = [f"{found['gpu']}, batch {found['batch']}, DataLoader with {found['workers']} workers", ""]
    lines.append(
        f"{'':12}{'images/s':>10}{'step ms':>9}{'wait':>8}{'idle, meter':>13}{'busy, NVML':>12}{'SMs busy':>10}"
    )
    for way in WAYS:
        m = found["runs"][way]
        wait = m["wait_s"] / m["step_s"]
        lines.append(
            f"{way:12}{m['images_s']:10.0f}{m['step_s'] * 1e3:9.1f}{share(wait):>8}{share(m['meter_share']):>13}"
            f"{share(m['utilisation']):>12}{share(m['sm_activity']):>10}"
        )
    names = ("step", "idle", "data ready", "truth", "meter", "error", "idle in next")
    lines += ["", f"{'ms a step':12}" + "".join(f"{name:>13}" for name in names)]
    for way in WAYS:
        t = found["traces"][way]
        parts = [
            t[name] for name in ("step_s", "trace_idle_s", "idle_with_data_ready_s", "truth_s", "meter_s", "in_next_s")
        ]
        cells = ["?" if seconds is None else f"{seconds * 1e3:.2f}" for seconds in parts]
        cells.insert(5, share(t["error"]))
        lines.append(f"{way:12}" + "".join(f"{cell:>13}" for cell in cells))
    d = found["doctor"]
    longer = d["step_with_doctor_s"] / d["step_s"] - 1
    lines += [
        "",
        f"doctor: {d['verdict']}, {d['cause']}, idle {share(d['idle'])}; steps under it are {longer:+.1%} longer",
    ]
    lines.append(f"meter: {found['runs']['dataloader']['meter_us']:.1f} µs of CPU time a step")
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="photographs in class folders")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="file for everything that was measured")
    args = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        raise SystemExit(f"no CUDA GPU here (torch {torch.__version__}): nothing was measured")
    bench = Bench(args)
    found: dict[str, Any] = {"gpu": torch.cuda.get_device_name(0), "batch": args.batch, "cores": machine.CORES}
    found["rates"], found["workers"] = bench.best(), bench.workers
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _, way in machine.turns(args.rounds, WAYS):
        runs[way].append(bench.loop(way))
    found["runs"] = {way: medians(runs[way]) for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        found["traces"] = {way: bench.traced(way, folder) for way in WAYS}
        found["doctor"] = bench.doctor(folder)
    print(f"{machine.settings()}\n{text(found)}\nload average {os.getloadavg()[0]:.1f}")
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
