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
    "cpu_ns",
    "queued_ns",
    "collate_ns",
    "rest_ns",
    "process_cpu_ns",
    "looked_wall_ns",
    "looked_cpu_ns",
    "looked_threads_ns",
    "begun_ns",
    "ended_ns",
    "broken",
    "decoded",
    "decode_ns",
    "pixels",
    "read_bytes",
    "disk_bytes",
    "read_samples",
    "longest_ns",
)
"""In the file's order, as doubles. rest: between fetches. process_cpu: of all threads, always.
looked_…: of single fetches, where threads are all of the process. read_…: over the first read_samples samples."""

LOOK_NS = 100_000_000
"""Between two looks at what costs more than a clock."""


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
        self._left = self._looked = self._threads = 0

    def enter(self) -> tuple[int, int, int]:
        """A fetch begins."""
        if self._thread != get_ident():
            self._thread = get_ident()
            self._queueing.close()
            self._queueing = proc.Queueing()
        queued, cpu, now = self._queueing.ns(), thread_time_ns(), perf_counter_ns()
        if now - self._looked > LOOK_NS:
            self._threads = process_time_ns()
        if self._left:
            self._counts["rest_ns"] += now - self._left
        return now, cpu, queued

    def leave(self, entered: tuple[int, int, int], samples: int, collate_ns: int) -> None:
        """A fetch ended."""
        now, counts = perf_counter_ns(), self._counts
        wall = now - entered[0]
        counts["fetches"] += 1
        counts["samples"] += samples
        counts["wall_ns"] += wall
        cpu = thread_time_ns() - entered[1]
        counts["cpu_ns"] += cpu
        counts["queued_ns"] += self._queueing.ns() - entered[2]
        counts["collate_ns"] += collate_ns
        if counts["fetches"] > 1:  # the first opens and imports
            counts["longest_ns"] = max(counts["longest_ns"], wall)
        for name, count in pictures.counts.items():
            counts[name] = count - self._pictures[name]
        if self._threads:
            self._look(counts, wall, cpu)
            self._looked, self._threads = now, 0
        counts["ended_ns"] = self._left = now
        for place, name in enumerate(FIELDS):
            self._file[place] = counts[name]

    def _look(self, counts: dict[str, float], wall: int, cpu: int) -> None:
        process = process_time_ns()
        counts["process_cpu_ns"] = process - self._cpu
        counts["looked_threads_ns"] += process - self._threads
        counts["looked_cpu_ns"] += cpu
        counts["looked_wall_ns"] += wall
        read, disk = self._reading.nbytes()
        counts["read_bytes"], counts["disk_bytes"] = read - self._read, disk - self._disk
        counts["read_samples"] = counts["samples"]
