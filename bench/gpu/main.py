"""On a machine with a CUDA GPU: how long a real ResNet-50 loop stands still for data, by three instruments.

    python bench/gpu/main.py [FOLDER] [--steps 60] [--rounds 2] [--seconds 420] [--out FILE] [--json FILE]

FOLDER holds photographs in class folders, and is made where it is left out. PyTorch's DataLoader runs with each number
of workers that may be its best; the best one and Feedwater on the same cores then take turns. Idle is told by the
product's meter (CUDA events), by a trace of torch.profiler, and by feedwater-nvml. The meter is judged by the trace:
what it says against the idle of the trace less that of the same loop with its first batch again and again. Then the
doctor looks at the DataLoader's loop: its verdict, and how much longer steps take under it. What does not fit into the
time is left out, and said. Where there is no GPU it says so and ends with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from needs import check_gpu
from part import OutOfTimeError, Part, begin, make_parser

import machine

LOOP = Path(__file__).resolve().with_name("loop.py")
WAYS = ("dataloader", "feedwater", "device")
TRACED = ("dataloader", "device")
LEAST_S = 20
"""No run is begun with less time left."""


class FailedRunError(Exception):
    """A run ended with an error."""


class Bench:
    """The runs of one GPU and folder."""

    def __init__(self, part: Part, args: argparse.Namespace) -> None:
        self._part = part
        self._fixed = [args.folder, "--batch", str(args.batch), "--steps", str(args.steps), "--warm", str(args.warm)]
        self._fixed += ["--nvml", nvml()]
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
        code, lines = run_within(self._part.left_s(LEAST_S), command)
        if not lines:  # the doctor has exit codes of its own for a loop that ran
            raise FailedRunError(f"{' '.join(command)}: exit code {code}")
        told: dict[str, Any] = json.loads(lines[-1])
        if "error" in told:
            raise FailedRunError(told["error"])
        return told

    def best(self) -> dict[int, float]:
        """Images per second of the DataLoader, by workers; the best number is used from then on."""
        rates = {}
        try:
            for self.workers in sorted({machine.CORES, machine.CORES // 2, machine.CORES * 3 // 2} - {0, 1}):
                rates[self.workers] = self.loop("dataloader")["images_s"]
        finally:
            self.workers = max(rates, key=lambda workers: rates[workers], default=machine.CORES)
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


def run_within(seconds: float, command: list[str]) -> tuple[int, list[str]]:
    """Exit code and lines of a command. One that takes longer is ended with all that it started: OutOfTimeError."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise OutOfTimeError(f"{Path(command[1]).name} took longer than the {seconds:.0f} s that were left") from None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    return child.returncode, out.splitlines()


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
    for way, m in found["runs"].items():
        wait = m["wait_s"] / m["step_s"]
        lines.append(
            f"{way:12}{m['images_s']:10.0f}{m['step_s'] * 1e3:9.1f}{share(wait):>8}{share(m['meter_share']):>13}"
            f"{share(m['utilisation']):>12}{share(m['sm_activity']):>10}"
        )
    names = ("step", "idle", "data ready", "truth", "meter", "error", "idle in next")
    lines += ["", f"{'ms a step':12}" + "".join(f"{name:>13}" for name in names)]
    for way, t in found["traces"].items():
        parts = [
            t[name] for name in ("step_s", "trace_idle_s", "idle_with_data_ready_s", "truth_s", "meter_s", "in_next_s")
        ]
        cells = ["?" if seconds is None else f"{seconds * 1e3:.2f}" for seconds in parts]
        cells.insert(5, share(t["error"]))
        lines.append(f"{way:12}" + "".join(f"{cell:>13}" for cell in cells))
    if found["runs"]:
        lines += ["", f"meter: {next(iter(found['runs'].values()))['meter_us']:.1f} µs of CPU time a step"]
    d = found.get("doctor")
    if d is None:
        return "\n".join(lines)
    longer = d["step_with_doctor_s"] / d["step_s"] - 1
    lines += [
        f"doctor: {d['verdict']}, {d['cause']}, idle {share(d['idle'])}; steps under it are {longer:+.1%} longer",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    parser = make_parser(__doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warm", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", help="file for everything that was measured")
    args = parser.parse_args()
    check_gpu("measured", args.out)
    import torch

    found: dict[str, Any] = {"gpu": torch.cuda.get_device_name(0), "batch": args.batch, "cores": machine.CORES}
    with tempfile.TemporaryDirectory() as folder:
        part = begin(args, folder)
        part.say(machine.settings())
        late = measure(Bench(part, args), found, args.rounds, folder)
        part.say(f"{text(found)}\nload average {os.getloadavg()[0]:.1f}")
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1))
    if late:
        part.say(f"the rest was not measured: {late}")
        raise SystemExit(1)


def measure(bench: Bench, found: dict[str, Any], rounds: int, folder: str) -> str:
    """Puts everything into found, what is asked of it first; why it ended early, or ""."""
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    found["workers"], found["traces"], late = machine.CORES, {}, ""
    try:
        found["rates"] = bench.best()
        found["workers"] = bench.workers
        for way in TRACED:
            found["traces"][way] = bench.traced(way, folder)
        for _, way in machine.turns(rounds, WAYS):
            runs[way].append(bench.loop(way))
        found["doctor"] = bench.doctor(folder)
    except (OutOfTimeError, FailedRunError) as error:
        late = str(error)
    found["runs"] = {way: medians(told) for way, told in runs.items() if told}
    return late


if __name__ == "__main__":
    main()
