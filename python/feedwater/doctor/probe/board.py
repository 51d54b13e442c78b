"""Counters of one process that fetches samples, in a small mapped file: read from outside, alive after a kill."""

from __future__ import annotations

import mmap
import os
from threading import get_ident
from time import perf_counter_ns, process_time_ns, thread_time_ns

from . import pictures, proc, settings

FIELDS = (
    "fetches",
    "samples",
    "wall_ns",
    "collate_ns",
    "rest_ns",
    "longest_ns",
    "begun_ns",
    "ended_ns",
    "looked_wall_ns",
    "cpu_ns",
    "queued_ns",
    "looked_threads_ns",
    "process_cpu_ns",
    "broken",
    "decoded",
    "decode_ns",
    "pixels",
    "read_bytes",
    "disk_bytes",
)
"""In the file's order, as doubles, all as of the last close look. rest: between fetches. looked_wall, cpu, queued: of
fetches that were looked at closely; looked_threads: CPU time of all threads in those. process_cpu: of all, always.
decode: CPU time of the threads that decoded, in all fetches.
"""

CLOSELY = 4
"""The first fetches, all looked at closely."""
LOOK_NS = 200_000_000
"""Between two close looks at fetches: what costs more than a clock."""


class Board:
    """This process's counters; made by the thread that fetches, before its first fetch."""

    def __init__(self) -> None:
        self.pid, self._thread = os.getpid(), get_ident()
        with open(f"{settings.FOLDER}/board-{os.getppid()}-{self.pid}", "w+b") as file:
            file.truncate(8 * len(FIELDS))
            self._file = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")
        self._counts = dict.fromkeys(FIELDS, 0.0)
        self._counts["begun_ns"] = perf_counter_ns()
        self._queueing = proc.Queueing()
        self._pictures = pictures.counts.copy()
        self._reading = proc.Reading()
        self._read, self._disk = self._reading.nbytes()
        self._cpu = process_time_ns()
        self._began = self._left = self._looked = 0
        self._clocks: tuple[int, int, int] | None = None

    def begin_fetch(self) -> None:
        """A fetch begins."""
        now = self._began = perf_counter_ns()
        if self._left:
            self._counts["rest_ns"] += now - self._left
        if now - self._looked > LOOK_NS or self._counts["fetches"] < CLOSELY:
            self._clocks = self._read_clocks()

    def end_fetch(self, samples: int, collate_ns: int) -> None:
        """A fetch ended."""
        now, counts = perf_counter_ns(), self._counts
        wall = now - self._began
        counts["fetches"] += 1
        counts["samples"] += samples
        counts["wall_ns"] += wall
        counts["collate_ns"] += collate_ns
        if counts["fetches"] > 1 and wall > counts["longest_ns"]:  # the first opens and imports
            counts["longest_ns"] = wall
        self._left = now
        if self._clocks is not None:
            self._look_closely(self._clocks, wall)
            self._looked, self._clocks = now, None

    def _read_clocks(self) -> tuple[int, int, int]:
        """Of this thread: queued, computed; computed by all threads."""
        if self._thread != get_ident():
            self._thread = get_ident()
            self._queueing.close()
            self._queueing = proc.Queueing()
        return self._queueing.ns(), thread_time_ns(), process_time_ns()

    def _look_closely(self, before: tuple[int, int, int], wall: int) -> None:
        counts = self._counts
        queued, cpu, process = self._read_clocks()
        counts["looked_wall_ns"] += wall
        counts["queued_ns"] += queued - before[0]
        counts["cpu_ns"] += cpu - before[1]
        counts["looked_threads_ns"] += process - before[2]
        counts["process_cpu_ns"] = process - self._cpu
        read, disk = self._reading.nbytes()
        counts["read_bytes"], counts["disk_bytes"] = read - self._read, disk - self._disk
        for name, count in pictures.counts.items():
            counts[name] = count - self._pictures[name]
        counts["ended_ns"] = self._left
        for place, name in enumerate(FIELDS):
            self._file[place] = counts[name]
