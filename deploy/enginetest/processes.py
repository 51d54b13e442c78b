"""Processes that tests start: each is ended by its own number, and what it says is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

END_WITHIN = 15.0
"""Seconds from SIGTERM to SIGKILL."""


def await_that(what: str, question: Callable[[], T], within: float, says: Callable[[], str] = str) -> T:
    """The first true answer of question; an AssertionError after so many seconds, with what `says` has to say."""
    end = time.monotonic() + within
    while not (answer := question()):
        assert time.monotonic() < end, f"{what}: not within {within:g} s\n{says()}"
        time.sleep(0.02)
    return answer


class Process:
    """A program in the background. What it says goes to a file."""

    def __init__(self, command: Sequence[str | Path], log: Path, env: dict[str, str] | None = None, **options: object):
        self.log, self.name = log, str(command[0])
        with log.open("ab") as out:
            self._process = subprocess.Popen(  # type: ignore[call-overload]
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, **options
            )
        self.pid: int = self._process.pid

    def said(self) -> str:
        """All that it has said."""
        return self.log.read_text(errors="replace")

    def ended(self) -> int | None:
        """Its code, once it has ended."""
        code: int | None = self._process.poll()
        return code

    def wait(self, within: float) -> int:
        """Its code; it has to end within so many seconds."""
        await_that(f"{self.name} ends", lambda: self.ended() is not None, within, self.tail)
        code: int = self._process.returncode
        return code

    def send(self, number: int) -> None:
        """Sends a signal, if it is still there."""
        if self.ended() is None:
            os.kill(self.pid, number)

    def stop(self, first: int = signal.SIGTERM) -> None:
        """Ends it: in order, then by force."""
        self.send(signal.SIGCONT)
        self.send(first)
        try:
            self._process.wait(END_WITHIN)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            self._process.wait()

    def tail(self) -> str:
        """The last lines that it said."""
        return self.said()[-3000:]


def running() -> Iterator[tuple[int, Path]]:
    """All processes, as /proc has them."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name), entry


def with_variable(name: str, value: str) -> list[int]:
    """The processes that were started with a variable of this value."""
    entry, found = f"{name}={value}".encode(), []
    for pid, place in running():
        try:
            if entry in (place / "environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:  # it has ended, or is another's
            continue
    return found


def parent_of(pid: int) -> int:
    """The process that started it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def started_at(pid: int) -> float:
    """When it started, as time.time() counts, to a hundredth of a second."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    up = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")
