"""Shared memory where it is refused: each case in a process of its own, under a system call filter or a limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from feedwater import AgentError
from feedwater._agent import memory

PREAMBLE = """
import ctypes, errno, os, resource, struct, sys
libc = ctypes.CDLL(None, use_errno=True)

def refuse(*numbers, error=errno.EPERM):
    "System calls of these numbers fail from now on."
    code = struct.pack("HBBI", 0x20, 0, 0, 0)
    for number in numbers:
        code += struct.pack("HBBI", 0x15, 0, 1, number) + struct.pack("HBBI", 0x06, 0, 0, 0x50000 | error)
    code += struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
    text = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(text))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())

MEMFD_CREATE, PIDFD_OPEN = 319, 434
"""
RUN = """
import sys
sys.path.insert(0, {tests!r})
import feedwater
loader = feedwater.Loader({data!r}, feedwater.transforms.CenterCrop(8), batch_size=16, memory=64 << 20)
seen = sorted(i for _ in loader for i in loader.last.indices.tolist())
assert seen == list(range(100)), seen
slots = loader._engine.feed.session.slots
print(slots.reserved, slots.count)
loader.close()
"""

only_x86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter is written for one architecture")


def run(fake: Any, before: str, **environment: str) -> subprocess.CompletedProcess[str]:
    script = PREAMBLE + before + RUN.format(tests=str(Path(__file__).parent), data=str(fake.data))
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


@only_x86
@pytest.mark.parametrize(
    ("before", "reserved"),
    [
        ("", False),
        ("refuse(MEMFD_CREATE)", True),
        ("refuse(PIDFD_OPEN, error=errno.ENOSYS)", False),
        ("refuse(MEMFD_CREATE, PIDFD_OPEN)", True),
    ],
)
def test_batches_come_although_calls_are_refused(fake: Any, before: str, reserved: bool) -> None:
    result = run(fake, before)
    assert result.returncode == 0, result.stderr
    first, count = result.stdout.split()
    assert first == str(reserved)
    # What a file system reserves is taken whether it is used or not: no more than the window needs.
    assert int(count) == (7 if reserved else 64)
    assert fake.log("env")[-1]["env"] == (None if "PIDFD_OPEN" in before else "4")


@only_x86
def test_without_dev_shm_the_temporary_folder_serves(fake: Any, tmp_path: Path) -> None:
    # /dev/shm is looked for by its name; a name that is no folder is as good as none.
    before = "refuse(MEMFD_CREATE)\nimport feedwater._agent.memory as m\nm.SHM = '/nonexistent'\n"
    result = run(fake, before, TMPDIR=str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[0] == "True"


@only_x86
def test_nothing_at_all_names_every_way_and_why(fake: Any) -> None:
    before = (
        "refuse(MEMFD_CREATE)\nimport feedwater._agent.memory as m, tempfile\n"
        "m.SHM = tempfile.tempdir = '/nonexistent'\n"
    )
    result = run(fake, before, XDG_RUNTIME_DIR="")
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("feedwater.errors.AgentError: no ")
    assert "memfd_create: Operation not permitted" in last
    assert "/nonexistent: No such file or directory" in last


def test_a_limit_on_file_sizes_counts_for_memory_too_and_is_named(fake: Any) -> None:
    result = run(fake, "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))")
    assert result.returncode == 1
    assert "RLIMIT_FSIZE of 65,536 bytes" in result.stderr.strip().splitlines()[-1]


def test_no_file_handles_left_is_named(fake: Any) -> None:
    for limit in range(4, 24):
        result = run(
            fake,
            f"import feedwater.transforms, json, tempfile\nresource.setrlimit(resource.RLIMIT_NOFILE, ({limit},) * 2)",
        )
        if result.returncode == 0:
            break
        last = result.stderr.strip().splitlines()[-1]
        assert "AgentError" in last, last
        assert "ulimit -n" in last, last
    else:
        pytest.fail("24 handles are not enough")
    assert limit > 6


def test_a_full_file_system_is_an_error_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setattr(os, "memfd_create", full)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(AgentError, match=r"No space left on device \(need 4,096 bytes; pass memory= to use less\)"):
        memory.create_shared_file(4096)
    assert len(os.listdir("/proc/self/fd")) == before


def test_slots_cannot_be_cut_short_under_a_reader() -> None:
    file, reserved = memory.create_shared_file(8192)
    try:
        assert not reserved
        with pytest.raises(PermissionError):
            os.ftruncate(file, 4096)
        with pytest.raises(PermissionError):
            os.ftruncate(file, 16384)
    finally:
        os.close(file)


def test_room_is_what_the_control_groups_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "memory.max": "1000000",
        "memory.current": "900000",
        "memory.stat": "anon 1\ninactive_file 300000\nactive_file 50000\n",
        "memory.events": "low 0\noom 3\noom_kill 2\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(memory, "_cgroup_directories", lambda: [tmp_path])
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert memory.available_bytes() == 450_000
    assert memory.oom_kills() == 2
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert memory.available_bytes() == 112_500, "the ranks of this machine share it"
    (tmp_path / "memory.max").write_text("max")
    assert memory.available_bytes() > 1_000_000


def test_room_of_this_machine_is_found() -> None:
    assert memory.available_bytes() > 1 << 20
    assert memory.oom_kills() >= 0
    json.dumps([str(place) for place in memory._cgroup_directories()])
