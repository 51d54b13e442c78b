"""Forks, and every way a process can end: the agent is gone with it, and nothing of ours stands in the way."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE, make_photos
from expect import check, order

import feedwater
from feedwater._agent.process import agent

pytest.importorskip("torch")

BEGIN = f"""
import ctypes, gc, os, signal, sys, threading
sys.path.insert(0, {str(HERE)!r})
if "torch" in os.environ["NEEDS"]:
    import torch
import feedwater
from feedwater._agent.process import agent
loader = feedwater.Loader(os.environ["DATA"], feedwater.transforms.CenterCrop(8), batch_size=10, shuffle=True)
it = iter(loader)
image, label = next(it)
next(it)
print(agent.pid, flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def hundred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 pictures."""
    return make_photos(tmp_path_factory.mktemp("hundred"), 100)


@pytest.fixture(params=["fake agent", "real agent"])
def data(request: pytest.FixtureRequest) -> Path:
    """A data set of 100 pictures; and the agent that programs of the test use."""
    if request.param == "fake agent":
        made: Path = request.getfixturevalue("fake").data
        return made
    request.getfixturevalue("real")
    folder: Path = request.getfixturevalue("hundred")
    return folder


def start(data: Path, code: str, **options: Any) -> tuple[subprocess.Popen[str], int]:
    """A program that has read two batches and goes on with code; and a handle of its agent."""
    program = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", BEGIN + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DATA": str(data), "NEEDS": "torch" if "tensors" in code else ""},
        **options,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    handle = os.pidfd_open(int(program.stdout.readline()))
    program.stdin.write("go on\n")
    program.stdin.flush()
    return program, handle


def gone(handle: int, seconds: float = 30) -> bool:
    """Whether the process ends in time."""
    return bool(select.select([handle], [], [], seconds)[0])


ENDS = {
    "the end, amid an epoch": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "an exception": ("1 / 0", 1),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "SIGSEGV": ("ctypes.string_at(0)", -signal.SIGSEGV),
    "another program": ("os.execv('/bin/true', ['true'])", 0),
    "the loader dropped, tensors alive": ("del loader, it; gc.collect(); assert int(image.sum()) > 0  # tensors", 0),
    "close, then tensors": ("loader.close(); assert int(image.sum()) > 0  # tensors", 0),
    "everything in a cycle": ("loader.me = loader; loader.image = image", 0),
    "a thread that iterates": ("threading.Thread(target=lambda: [None for _ in it], daemon=True).start()", 0),
    "garbage collection off": ("gc.disable(); loader.me = loader; del loader", 0),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_agent_ends_with_the_program(data: Path, name: str) -> None:
    code, expected = ENDS[name]
    program, handle = start(data, code)
    try:
        _, errors = program.communicate(timeout=60)
        assert program.returncode == expected, errors
        assert gone(handle), "the agent lives on"
        if name != "an exception":
            assert errors == ""
        else:
            assert errors.strip().splitlines()[-1].startswith("ZeroDivisionError")
    finally:
        os.close(handle)


@pytest.mark.parametrize("fork", ["os.fork()", "ctypes.CDLL(None).fork()"])
def test_the_agent_ends_although_forked_children_live_on(data: Path, fork: str) -> None:
    code = f"""
if {fork} == 0:
    sys.stdin.read()
    os._exit(0)
print(flush=True)
signal.pause()
"""
    program, handle = start(data, code)
    try:
        assert program.stdout is not None
        program.stdout.readline()
        program.kill()
        assert gone(handle), "the agent waits for the child"
    finally:
        os.close(handle)
        program.communicate()


def test_a_ctrl_c_of_the_terminal_is_not_for_the_agent(data: Path) -> None:
    code = """
try:
    print(flush=True)
    while True:
        signal.pause()
except KeyboardInterrupt:
    seen = [i for _ in it for i in loader.last.indices.tolist()]
    print(len(seen), agent.serial, flush=True)
"""
    program, handle = start(data, code, start_new_session=True)
    try:
        assert program.stdout is not None
        program.stdout.readline()
        os.killpg(program.pid, signal.SIGINT)
        out, errors = program.communicate(timeout=60)
        assert out.split() == ["80", "1"], errors
        assert gone(handle)
    finally:
        os.close(handle)


def test_a_program_without_standard_handles(data: Path, tmp_path: Path) -> None:
    # Then the agent's sockets and files have the numbers 0, 1, 2 …, which are others in the agent.
    script = """
import os, sys
os.closerange(0, 100)
import feedwater
loader = feedwater.Loader(sys.argv[1], feedwater.transforms.CenterCrop(8), batch_size=10)
text = str(sorted(i for _ in loader for i in loader.last.indices.tolist()))
loader.close()
with open(sys.argv[2], "w") as file:
    file.write(text)
"""
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script, str(data), str(out)], timeout=120, check=False)
    assert done.returncode == 0
    assert out.read_text() == str(list(range(100)))


def in_child(function: Any) -> str:
    """What function returns in a forked child, which then ends as Python programs do, with all its handlers."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read)
            os.write(write, str(function()).encode())
            status = 0
        finally:
            os.close(write)
            agent._at_exit()
            os._exit(status)
    os.close(write)
    with open(read) as pipe:
        text = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return text


def test_a_live_loader_in_a_forked_child_is_an_error_and_the_parent_goes_on(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    it = iter(loader)
    image, _ = next(it)
    first = loader.last.indices

    def child() -> str:
        check(image, first)  # what was inherited can be read
        try:
            next(it)
        except feedwater.ForkedError as error:
            text = str(error)
        loader.close()
        loader.__del__()
        return text

    assert "make a Loader in the process that iterates it" in in_child(child)
    seen = first.tolist() + [i for _ in it for i in loader.last.indices.tolist()]
    assert seen == order(0)
    assert len(fake.log("start")) == 1, "the parent's agent was left alone"


def test_a_loader_not_yet_used_may_be_used_in_the_child(fake: Any) -> None:
    used, fresh = fake.loader(), fake.loader(shuffle=True)
    next(iter(used))

    def child() -> list[int]:
        seen = [i for _ in fresh for i in fresh.last.indices.tolist()]
        fresh.close()
        return seen

    assert in_child(child) == str(order(0))
    whole = [i for _ in fresh for i in fresh.last.indices.tolist()]
    assert whole == order(0)


def test_a_pickled_copy_works_in_a_forked_child(fake: Any) -> None:
    import pickle

    loader = fake.loader(shuffle=True)
    next(iter(loader))

    def child() -> list[int]:
        copy = pickle.loads(pickle.dumps(loader))
        seen = [i for _ in copy for i in copy.last.indices.tolist()]
        copy.close()
        return seen

    assert in_child(child) == str(order(0)[10:])


def test_many_children_do_not_disturb(fake: Any) -> None:
    import multiprocessing

    loader = fake.loader(shuffle=True)
    it = iter(loader)
    next(it)
    children = [multiprocessing.get_context("fork").Process(target=sys.exit) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert 10 + sum(len(label) for _, label in it) == 100
    assert len(fake.log("start")) == 1


def test_a_program_that_reaps_all_children_itself(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    it = iter(loader)
    next(it)
    pid = agent.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[0] == pid
    assert 10 + sum(len(label) for _, label in it) == 100
    pid = agent.pid
    assert pid is not None
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        os.kill(pid, signal.SIGKILL)
        assert sum(len(label) for _, label in loader) == 100
    finally:
        signal.signal(signal.SIGCHLD, before)
    loader.close()


def test_importing_loads_nothing_heavy() -> None:
    script = """
import sys, numpy
before = set(sys.modules)
import feedwater
heavy = {"torch", "torchvision", "grpc", "google.protobuf", "PIL", "multiprocessing", "asyncio"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
feedwater.Loader, feedwater.transforms, feedwater.SampleError
assert not heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_no_thread_is_started(fake: Any) -> None:
    before = len(os.listdir("/proc/self/task"))
    next(iter(fake.loader()))
    assert len(os.listdir("/proc/self/task")) == before
