"""What Linux says about this process and this machine. What cannot be read is 0."""

from __future__ import annotations

import os
from collections.abc import Collection

PAGE = os.sysconf("SC_PAGE_SIZE")
NO_FILE = -1


def read_text(path: str) -> str:
    """A small file, or nothing."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


class File:
    """A file of /proc that stays open: a reading costs a few microseconds, not a hundred."""

    def __init__(self, path: str) -> None:
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError:
            self._file = NO_FILE

    def read_fields(self) -> list[bytes]:
        """Its words; none where it cannot be read."""
        if self._file == NO_FILE:
            return []
        try:
            return os.pread(self._file, 512, 0).split()
        except OSError:
            return []

    def close(self) -> None:
        """Gives the file back."""
        if self._file != NO_FILE:
            os.close(self._file)
            self._file = NO_FILE


class Queueing(File):
    """How long the thread that made this was runnable without running."""

    def __init__(self) -> None:
        super().__init__("/proc/thread-self/schedstat")

    def ns(self) -> int:
        """Since the thread began."""
        fields = self.read_fields()
        return int(fields[1]) if len(fields) > 1 else 0


class Reading(File):
    """What the process that made this has read."""

    def __init__(self) -> None:
        super().__init__("/proc/self/io")

    def nbytes(self) -> tuple[int, int]:
        """Through read calls, and from a device. Page cache and network file systems have no device."""
        fields = self.read_fields()
        return (int(fields[1]), int(fields[9])) if len(fields) > 9 else (0, 0)


class Resident(File):
    """Memory of the process that made this."""

    def __init__(self) -> None:
        super().__init__("/proc/self/statm")

    def nbytes(self) -> int:
        """What is in memory now."""
        fields = self.read_fields()
        return int(fields[1]) * PAGE if len(fields) > 1 else 0


def main_queueing_ns() -> int:
    """The same of the process's first thread, read from anywhere."""
    fields = read_text(f"/proc/self/task/{os.getpid()}/schedstat").split()
    return int(fields[1]) if len(fields) > 1 else 0


def network_bytes() -> int:
    """Received by all interfaces that this process sees, loopback too."""
    lines = read_text("/proc/net/dev").splitlines()[2:]
    return sum(int(line.split(":")[1].split()[0]) for line in lines)


def core_seconds(cores: Collection[int]) -> list[float]:
    """user nice system idle iowait irq softirq steal of these cores, or of all where /proc/stat has none of them."""
    ticks, names = os.sysconf("SC_CLK_TCK"), {f"cpu{core}" for core in cores}
    lines = [line.split() for line in read_text("/proc/stat").splitlines() if line.startswith("cpu")]
    own = [line for line in lines if line[0] in names] or lines[:1]
    return [sum(int(line[column]) for line in own) / ticks for column in range(1, 9)]


def read_machine(cores: Collection[int]) -> dict[str, float]:
    """Core-seconds that these cores were busy and idle; bytes received; times this container was held back."""
    user, nice, system, idle, disk, irq, soft, stolen = core_seconds(cores)
    held = read_text("/sys/fs/cgroup/cpu.stat").partition("nr_throttled ")[2].split()
    return {
        "busy_s": user + nice + system + irq + soft,
        "idle_s": idle,
        "disk_s": disk,
        "stolen_s": stolen,
        "network_bytes": network_bytes(),
        "throttled": int(held[0]) if held else 0,
    }


def children_s(name: str) -> float:
    """CPU seconds of live children of that name."""
    total = 0.0
    for pid in read_text(f"/proc/self/task/{os.getpid()}/children").split():
        head, _, rest = read_text(f"/proc/{pid}/stat").rpartition(") ")
        if head.endswith(f"({name}"):
            fields = rest.split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total
