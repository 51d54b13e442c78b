"""Runs of peers, measured from outside: when their lines came, CPU time of all their processes, and kills."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import count
from contestants import Contestant

import machine
from peer import BATCH, Settings

PEER = Path(__file__).resolve().parent / "peer.py"
SILENT_S = 60
"""A run that says nothing for so long hangs."""
LEAVE_S = 10
"""What a run may take to end by itself."""
KILL_AT, PACE_S = 6, 0.05
"""Batches before a worker is killed, and what the loop computes meanwhile for each."""


@dataclass
class Run:
    """What one process of a peer did."""

    started: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    batches: list[dict[str, Any]] = field(default_factory=list)
    cpu: dict[int, float] = field(default_factory=dict)
    """CPU time of the whole tree after so many batches."""
    state: Any = None
    ended: bool = False
    error: str = ""

    @property
    def ids(self) -> list[int]:
        """The ids of all samples."""
        return [one for batch in self.batches for one in batch["ids"]]

    @property
    def first_s(self) -> float:
        """From opening the loader to its first batch."""
        return float(self.batches[0]["ended"]) - self.started


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def worker(pid: int, pattern: str) -> int | None:
    """The descendant that has worked most, of those whose command line has the pattern."""
    fitting = []
    for one in family(pid)[1:]:
        try:
            line = Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if re.search(pattern, line):
            fitting.append(one)
    return max(fitting, key=lambda one: machine.cpu_seconds([one], children=False), default=None)


Watcher = Callable[[int, int], None]
"""Is called after each batch, with the process's id and the number of batches so far."""


def run(python: str, module: str, settings: Settings, marks: tuple[int, ...] = (), at: Watcher | None = None) -> Run:
    """Runs a peer to its end. CPU time is looked at after so many batches as marks has."""
    result = Run()
    environment = {**os.environ, "FEEDWATER_BINARY": machine.program(), "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [python, str(PEER), module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(asdict(settings)))
        process.stdin.close()
        patience = 0
        try:
            _follow(process, result, marks, at)
            patience = LEAVE_S
        finally:
            _end(process, patience)
        errors.seek(0)
        if not result.ended and not result.error:
            result.error = last_error(errors.read())
    return result


def _follow(process: subprocess.Popen[str], result: Run, marks: tuple[int, ...], at: Watcher | None) -> None:
    """Reads lines until the last one, or none comes for long."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            text = lines.get(timeout=SILENT_S)
        except queue.Empty:
            result.error = f"hangs: nothing for {SILENT_S} s"
            return
        if text is None:
            return
        line = json.loads(text)
        if line["event"] == "start":
            result.started, result.versions = line["at"], line["versions"]
        elif line["event"] == "state":
            result.state = line["state"]
        elif line["event"] == "end":
            result.ended = True
            return  # what it started may hold its output open
        else:
            result.batches.append(line)
            if len(result.batches) in marks:
                result.cpu[len(result.batches)] = machine.cpu_seconds([process.pid])
            if at is not None:
                at(process.pid, len(result.batches))


def _end(process: subprocess.Popen[str], patience: float) -> None:
    """Ends what is left of a run after so many seconds: its process, and those that it started."""
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        for pid in family(process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait(30)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def last_error(text: str) -> str:
    """The line of an exception at the end of what was printed, shortened."""
    lines = [line for line in text.splitlines() if re.match(r"[\w.]*(Error|Exception|Interrupt|Exit)\b", line)]
    return (lines or text.splitlines() or ["ended without a word"])[-1].strip()[:160]


def speed(python: str, contestant: Contestant, settings: Settings) -> dict[str, Any]:
    """A run over several epochs, of which all but the first count."""
    skip, last = settings.samples // BATCH, settings.epochs * settings.samples // BATCH
    done = run(python, contestant.module, settings, (skip, last))
    if not done.ended or len(done.batches) != last:
        raise RuntimeError(f"{contestant.name}: {done.error or f'{len(done.batches)} batches and not {last}'}")
    for epoch in range(settings.epochs):
        found = count.of_epoch(settings.samples, done.ids[epoch * settings.samples : (epoch + 1) * settings.samples])
        if found != count.Samples(0, 0):
            raise RuntimeError(f"{contestant.name}: epoch {epoch} is no epoch: {found}")
    waits = [batch["ended"] - batch["began"] for batch in done.batches[skip:]]
    images = (last - skip) * BATCH
    hundredths = statistics.quantiles(waits, n=100)
    return {
        "rate": images / (done.batches[-1]["ended"] - done.batches[skip - 1]["ended"]),
        "cpu": (done.cpu[last] - done.cpu[skip]) / images * 1000,
        "wait_p50": hundredths[49],
        "wait_p99": hundredths[98],
        "first": done.first_s,
        "versions": done.versions,
    }


def resume(python: str, contestant: Contestant, settings: Settings) -> dict[str, Any]:
    """Saves at half an epoch, and goes on in another process."""
    if contestant.resumes:
        return {"no": contestant.resumes}
    half = settings.samples // BATCH // 2
    before = run(python, contestant.module, Settings(**{**asdict(settings), "save_at": half}))
    if before.state is None:
        return {"error": before.error}
    after = run(python, contestant.module, Settings(**{**asdict(settings), "state": before.state}))
    if not after.ended or not after.batches:
        return {"error": after.error or "no batch"}
    found = count.of_epoch(settings.samples, before.ids, after.ids)
    return {"first": after.first_s, **asdict(found)}


def kill(python: str, contestant: Contestant, settings: Settings) -> dict[str, Any]:
    """Kills a worker amid an epoch."""
    if not contestant.worker:
        return {"no": "no processes of its own"}
    killed: list[int] = []

    def at(pid: int, number: int) -> None:
        if number == KILL_AT and (victim := worker(pid, contestant.worker)) is not None:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    paced = {**asdict(settings), "pace_s": PACE_S, "services": contestant.services, "workers": max(2, settings.workers)}
    done = run(python, contestant.module, Settings(**paced), at=at)
    if not killed:
        return {"error": f"no process to kill. {done.error}".strip()}
    if not done.ended:
        return {"stops": done.error, "batches": len(done.batches)}
    waits = [batch["ended"] - batch["began"] for batch in done.batches[KILL_AT:]]
    return {"longest": max(waits, default=0.0), **asdict(count.of_epoch(settings.samples, done.ids))}
