"""feedwater doctor: runs a command with the probe in all its Pythons, then says what its data path costs.

The command keeps its terminal, its input and output and its exit code; the verdict goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from . import report, rules, screen
from .gpus import Gpus
from .verdict import Verdict

INJECT = Path(__file__).resolve().parent / "inject"
LOOK_S = 0.5
FIRST_STEPS = 200
TRIED = {"num_workers", "prefetch_factor", "pin_memory", "persistent_workers", "batch_size", "in_order"}
"""Arguments of DataLoader that --try takes."""
USAGE = 2
SHELL_SIGNAL = 128


def main(arguments: list[str] | None = None) -> int:
    """Exit code: the command's if it is not 0; else 0 healthy or not the data, 3 data-bound, 1 errors or unknown."""
    options = _parse_options(arguments)
    with _open_folder(options.keep) as folder, Gpus() as gpus:
        code = _run_command(options, folder, gpus)
        verdict = rules.judge(report.read_report(folder, code, gpus.list_gpus()))
    if options.json != "-" or not options.quiet:
        _print_line(f"\n{verdict}")
    if options.advice:
        _print_line(f"\n{screen.format_advice(verdict)}")
    if options.json:
        _write_verdict(options.json, verdict)
    return verdict.exit_code if code == 0 else code if code > 0 else SHELL_SIGNAL - code


def _parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="feedwater doctor",
        description="Runs a training command, unchanged, and says whether its data loading is what it waits for.",
        epilog="Exit code: the command's own if it is not 0; else 0 healthy or not the data, 3 data-bound, 1 errors or "
        "unknown.",
    )
    add = parser.add_argument
    add("--json", metavar="FILE", help="write the verdict as JSON; - for standard output")
    add("--quiet", action="store_true", help="with --json -: no text")
    add("--advice", action="store_true", help="what becomes of the usual tips here, each with the reason")
    add("--try", dest="tried", metavar="NAME=VALUE,…", default="", help="give every DataLoader these arguments, to see")
    add(
        "--replay",
        metavar="N",
        type=int,
        default=0,
        help="serve N steps from cached batches: the true ceiling. THE TRAINING RESULT IS VOID",
    )
    add(
        "--no-bursts",
        action="store_true",
        help="never hold the loop to fill its queue; the ceiling is then an estimate",
    )
    add("--keep", metavar="FOLDER", help="keep what was measured, as files in this folder")
    add("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="for example: python train.py --epochs 1")
    options = parser.parse_args(arguments)
    if options.command[:1] == ["--"]:
        del options.command[0]
    if not options.command:
        parser.error("no command: feedwater doctor -- python train.py")
    if options.json and options.json != "-" and not os.access(Path(options.json).absolute().parent, os.W_OK):
        parser.error(f"--json {options.json}: its folder is missing, or cannot be written")
    if options.replay < 0:
        parser.error("--replay: needs a number of steps")
    for pair in filter(None, options.tried.split(",")):
        name, _, value = pair.partition("=")
        if name not in TRIED or not value:
            parser.error(f"--try {pair}: needs NAME=VALUE, with NAME one of {', '.join(sorted(TRIED))}")
    return options


@contextmanager
def _open_folder(keep: str | None) -> Iterator[str]:
    if keep:
        try:
            os.makedirs(keep, exist_ok=True)
        except OSError as error:
            raise SystemExit(f"feedwater doctor: --keep {keep}: {error.strerror}") from error
        if any(Path(keep).glob("run-*.json")):
            raise SystemExit(f"feedwater doctor: --keep {keep}: holds another run; give an empty folder")
        yield os.path.abspath(keep)
        return
    folder = tempfile.mkdtemp(prefix="feedwater-doctor-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _hook_environment(options: argparse.Namespace, folder: str) -> dict[str, str]:
    env = {
        **os.environ,
        "FEEDWATER_DOCTOR_DIR": folder,
        "FEEDWATER_DOCTOR_BURSTS": "0" if options.no_bursts else "1",
        "FEEDWATER_DOCTOR_REPLAY": str(options.replay),
        "FEEDWATER_DOCTOR_TRY": options.tried,
    }
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(INJECT), env.get("PYTHONPATH")]))
    return env


def _run_command(options: argparse.Namespace, folder: str, gpus: Gpus) -> int:
    """Runs the command to its end, in this process group: Ctrl-C reaches it by itself."""
    with _pass_signals() as target:
        try:
            env = _hook_environment(options, folder)
            process = subprocess.Popen(options.command, env=env, close_fds=False)  # noqa: S603
        except OSError as error:
            name = options.command[0]
            hint = f"; perhaps: python {name}" if name.endswith(".py") and os.path.isfile(name) else ""
            raise SystemExit(f"feedwater doctor: cannot run {name!r}: {error.strerror}{hint}") from error
        target.append(process)
        told = False
        while True:
            try:
                return process.wait(None if told else LOOK_S)
            except subprocess.TimeoutExpired:
                told = _first_verdict(folder, gpus)


def _first_verdict(folder: str, gpus: Gpus) -> bool:
    """Prints it once a process has done enough steps; says whether it has."""
    if not any(Path(folder).glob("run-*.json")):
        return False
    found = report.read_report(folder, gpus=gpus.list_gpus())
    if not any(loop["steps"] >= FIRST_STEPS for run in found.runs for loop in run.about["loops"]):
        return False
    verdict = rules.judge(found)
    best = next((f"; do: {action.do}" for action in verdict.actions), "")
    rest = f"{verdict.cause}{best} (after {FIRST_STEPS} steps; more at the end)"
    _print_line(f"\n{screen.first_line(verdict)}\n{textwrap.fill(rest, screen.WIDTH)}")
    return True


@contextmanager
def _pass_signals() -> Iterator[list[subprocess.Popen[bytes]]]:
    """The terminal's signals are the command's affair, which gets them too; what is sent to the doctor is passed on."""
    target: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        for process in target:
            process.send_signal(number)

    wanted: dict[signal.Signals, Any] = {
        signal.SIGINT: _ignore_signal,
        signal.SIGQUIT: _ignore_signal,
        signal.SIGTERM: forward,
        signal.SIGHUP: forward,
        signal.SIGUSR1: forward,
        signal.SIGUSR2: forward,
    }
    old: dict[signal.Signals, Any] = {}
    for number, handler in wanted.items():
        if signal.getsignal(number) is not signal.SIG_IGN:  # the command would inherit that, and shall
            old[number] = signal.signal(number, handler)
    try:
        yield target
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _ignore_signal(_number: int, _frame: FrameType | None) -> None:
    """Not SIG_IGN, which the command would inherit."""


def _print_line(words: str) -> None:
    """To whoever runs the doctor; standard output is the command's."""
    sys.stderr.write(words + "\n")


def _write_verdict(place: str, verdict: Verdict) -> None:
    found = json.dumps(verdict.to_dict(), indent=1, default=str)
    if place == "-":
        sys.stdout.write(found + "\n")
        return
    try:
        Path(place).write_text(found + "\n")
    except OSError as error:
        _print_line(f"feedwater doctor: --json {place}: {error.strerror}")


if __name__ == "__main__":
    sys.exit(main())
