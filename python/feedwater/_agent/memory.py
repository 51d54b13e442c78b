"""Files without a name: for the slots, for the agent's log, for answers. And how much memory there is to spare.

The kernel refuses such files in more ways than one would think: seccomp filters memfd_create, containers give 64 KB of
/dev/shm, limits on file sizes count for memory files too. So each way is tried in turn, and the error names them all.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from ..errors import AgentError

__all__ = ["available_bytes", "create_scratch_file", "create_shared_file", "oom_kills", "slot_allowance"]

SHM = "/dev/shm"  # noqa: S108 (files there have no name)
_GIB = 1 << 30
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW = 1033, 0x2, 0x4


def create_shared_file(size: int) -> tuple[int, bool]:
    """A file of size bytes for slots, and whether its room is reserved.

    A memory file is sparse: pages count from the first write on. It is sealed against shrinking, so that nobody can
    turn a read of a live tensor into SIGBUS. A file in a file system is reserved at once instead: a full file system
    is ENOSPC here and not SIGBUS at some later batch. (Never reserve a memory file: inside a memory limit that wakes
    the OOM killer, which takes the trainer.)
    """
    refused = []
    for place in _list_places():
        try:
            return (_create_memfd(size), False) if place is None else (_reserve_file(place, size), True)
        except OSError as error:
            refused.append(f"{place or 'memfd_create'}: {error.strerror or error}{_explain_shortage(error, size)}")
    raise AgentError("no shared memory for the slots: " + "; ".join(refused))


def create_scratch_file(name: str) -> int:
    """An empty file without a name, for a log or an answer."""
    refused = []
    for place in _list_places():
        try:
            if place is None:
                return os.memfd_create(f"feedwater-{name}", os.MFD_CLOEXEC)
            return os.open(place, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            refused.append(f"{place or 'memfd_create'}: {error.strerror or error}{_explain_shortage(error, 0)}")
    raise AgentError(f"no file for the agent's {name}: " + "; ".join(refused))


def _list_places() -> list[str | None]:
    """Where unnamed files may live, best first; None is memory."""
    import tempfile

    directories = [SHM, os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir()]
    return [None, *dict.fromkeys(place for place in directories if place)]


def _create_memfd(size: int) -> int:
    file = os.memfd_create("feedwater-slots", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(file, size)
        fcntl.fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)
    except BaseException:
        os.close(file)
        raise
    return file


def _reserve_file(directory: str, size: int) -> int:
    file = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, 0, size)
    except BaseException:
        os.close(file)
        raise
    return file


def _explain_shortage(error: OSError, size: int) -> str:
    import resource

    if error.errno == errno.EFBIG:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        return f" (RLIMIT_FSIZE of {limit:,} bytes counts for memory files too: raise it with ulimit -f, need {size:,})"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f" (all {resource.getrlimit(resource.RLIMIT_NOFILE)[0]} file handles are open: raise ulimit -n)"
    if error.errno == errno.ENOSPC:
        return f" (need {size:,} bytes; pass memory= to use less)"
    return ""


def slot_allowance(memory: int | None) -> int:
    """Bytes that slots may take: what the user allows, or 1 GiB, or a quarter of what is left where that is less."""
    return memory if memory is not None else min(_GIB, available_bytes() // 4)


def available_bytes() -> int:
    """Bytes that this process may still take: what the machine has free, and what its control groups leave."""
    room = _meminfo_available()
    for directory in _cgroup_directories():
        limit = _read_number(directory / "memory.max", directory / "memory.limit_in_bytes")
        usage = _read_number(directory / "memory.current", directory / "memory.usage_in_bytes")
        if limit is not None and usage is not None:
            room = min(room, max(0, limit - usage + _file_cache(directory)))
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    return room // max(1, int(ranks) if ranks.isdigit() else 1)


def oom_kills() -> int:
    """How often the kernel killed something in this process's control groups for want of memory."""
    total = 0
    for directory in _cgroup_directories():
        for name in ("memory.events", "memory.oom_control"):
            try:
                lines = (directory / name).read_text().splitlines()
            except OSError:
                continue
            total += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return total


def _meminfo_available() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # a sandbox without /proc
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return _GIB


def _file_cache(directory: Path) -> int:
    """Bytes of file cache that the group gives back when asked for memory."""
    try:
        stat = dict(line.split() for line in (directory / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return 0
    kinds = ("inactive_file", "active_file")
    return sum(int(stat.get(f"total_{kind}", stat.get(kind, "0"))) for kind in kinds)


def _cgroup_directories() -> list[Path]:
    """The memory control group of this process and all above it, of either version."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory") and "memory" not in controllers.split(","):
            continue
        root = Path("/sys/fs/cgroup") / ("memory" if controllers else "")
        here = root / path.lstrip("/")
        found += [place for place in (here, *here.parents) if place == root or root in place.parents]
    return found


def _read_number(*files: Path) -> int | None:
    """The number in the first of the files that exists; None if it is not a number ("max")."""
    for file in files:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        return int(text) if text.isdigit() else None
    return None
