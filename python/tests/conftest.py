"""Fixtures: the fake agent, and generated pictures."""

from __future__ import annotations

import json
import multiprocessing.forkserver
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import feedwater
from feedwater._agent.process import agent

HERE = Path(__file__).parent
SIZE = 8

# Programs that tests start find the package too.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")])


@pytest.fixture(scope="session", autouse=True)
def lists(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Lists of files are kept below pytest's folder, and none in the user's cache or in shared memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEEDWATER_CACHE_DIR", str(tmp_path_factory.mktemp("lists")))
        yield


@pytest.fixture(autouse=True)
def modes_of_torch() -> Iterator[None]:
    """No test leaves a mode of torch on, as of a default device, which later tests would run under."""
    yield
    torch, left = sys.modules.get("torch"), 0
    while torch is not None and torch._C._len_torch_function_stack():
        torch._C._pop_torch_function_stack()
        left += 1
    assert not left


# A shell's background jobs ignore SIGINT, and so would all programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Fake:
    """The fake agent of one test; see fake_agent.py."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self._monkeypatch = directory, monkeypatch
        program = directory / "feedwater"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {HERE / "fake_agent.py"} "$@"\n')
        program.chmod(0o755)
        self.data = directory / "data"
        self.data.mkdir()
        monkeypatch.setenv("FEEDWATER_BINARY", str(program))
        monkeypatch.setenv("FAKE_AGENT_DIR", str(directory))
        self.set()

    def set(self, **spec: Any) -> None:
        """How the next agent behaves."""
        self._monkeypatch.setenv("FAKE_AGENT", json.dumps(spec))

    def log(self, kind: str | None = None) -> list[dict[str, Any]]:
        """What agents were told, in order."""
        file = self.directory / "log"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [line for line in lines if kind is None or kind in line]

    def until(self, told: Callable[[], Any]) -> None:
        """Waits until agents have been told something; a minute at most."""
        end = time.monotonic() + 60
        while not told():
            assert time.monotonic() < end, self.log()
            os.sched_yield()

    def unreaped(self) -> list[int]:
        """Agents of this test that are children of this process still, dead or alive."""
        return [line["pid"] for line in self.log("start") if line["pid"] in children()]

    def loader(self, **options: Any) -> feedwater.Loader[Any]:
        """A Loader on the fake data set, of 8 x 8 pictures."""
        options.setdefault("batch_size", 10)
        transform = options.pop("transform", feedwater.transforms.CenterCrop(SIZE))
        return feedwater.Loader(self.data, transform, **options)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The fake agent in place of the real one."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    yield Fake(tmp_path, monkeypatch)
    stop_agent()


@pytest.fixture
def folder(fake: Any) -> Any:
    """torchvision's ImageFolder of the fake data set: 10 classes of 10 samples."""
    datasets = pytest.importorskip("torchvision.datasets")
    for c in range(10):
        (fake.data / f"class{c}").mkdir()
        for i in range(10):
            (fake.data / f"class{c}" / f"{i}.jpg").touch()
    return datasets.ImageFolder(fake.data)


def stop_agent() -> None:
    """Ends the process's agent, so that the next test starts its own."""
    process, agent._process = agent._process, None
    if process is not None:
        process.end_process(1)
    agent._deaths.clear()
    agent._users.clear()


def children() -> list[int]:
    """Processes whose parent is this one."""
    return [int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]


@pytest.fixture
def fork_server() -> Iterator[None]:
    """A server of forked processes that this test starts has the environment of this test, and none later has it."""
    server = multiprocessing.forkserver._forkserver
    server._stop()
    yield
    server._stop()


# -- the real agent ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def binary() -> str:
    """The feedwater program. It must be there: FEEDWATER_BINARY, or bin/feedwater of the repository (make build)."""
    path = Path(os.environ.get("FEEDWATER_BINARY") or HERE.parents[1] / "bin" / "feedwater")
    assert path.is_file(), f"{path} is missing: run make build, or set FEEDWATER_BINARY"
    return str(path)


@pytest.fixture(scope="session")
def testnode() -> str:
    """The program that takes flags of nodes for tests: TEST_NODE_BINARY, else bin/feedwater-testnode."""
    path = Path(os.environ.get("TEST_NODE_BINARY") or HERE.parents[1] / "bin" / "feedwater-testnode")
    assert path.is_file(), f"{path} is missing: run make build-testnode, or set TEST_NODE_BINARY"
    return str(path)


@pytest.fixture
def reference_arithmetic() -> Iterator[None]:
    """torch computes as on the CPUs that pixels of tensors were verified on."""
    from reference import arithmetic

    with arithmetic():
        yield


@pytest.fixture
def real(binary: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Loaders of this test use the real agent."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FEEDWATER_BINARY", binary)
    yield binary
    stop_agent()


def photographs() -> Path | None:
    """The photographs, in class folders: FEEDWATER_PHOTOS, or shared/data/photos beside the repository."""
    given = os.environ.get("FEEDWATER_PHOTOS")
    if given:
        return Path(given)
    beside = HERE.parents[2] / "shared" / "data" / "photos"
    return beside if beside.is_dir() else None


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of JPEGs in class folders: the photographs, else generated ones of many kinds."""
    return photographs() or make_photos(tmp_path_factory.mktemp("photos"), 120)


def make_photos(folder: Path, count: int) -> Path:
    """JPEGs of mixed sizes, grey and in colour, of all common kinds of subsampling, over five classes."""
    import numpy as np
    import PIL.Image

    for number in range(count):
        rng = np.random.default_rng(number)
        height, width = (int(side) for side in rng.integers(40, 500, 2))
        coarse = rng.integers(0, 256, (max(2, height // 16), max(2, width // 16), 3), dtype=np.uint8)
        picture = PIL.Image.fromarray(coarse).resize((width, height), PIL.Image.Resampling.BICUBIC)
        noisy = np.asarray(picture).astype(int) + rng.integers(-8, 9, (height, width, 3))
        picture = PIL.Image.fromarray(noisy.clip(0, 255).astype(np.uint8))
        if number % 10 == 9:
            picture = picture.convert("L")
        place = folder / f"class{number % 5}"
        place.mkdir(exist_ok=True)
        options = {"subsampling": ("4:4:4", "4:2:0", "4:2:2")[number % 3]} if picture.mode == "RGB" else {}
        picture.save(place / f"{number:04}.jpg", quality=int(rng.integers(60, 97)), **options)
    return folder


class Node:
    """A running `feedwater serve` of this machine."""

    def __init__(self, binary: str, arguments: list[str], environment: dict[str, str]) -> None:
        command = [binary, "serve", *arguments, "--http", "127.0.0.1:0", "--workers", "1"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
        self.log: list[str] = []
        self._told: dict[str, str] = {}
        self._listens = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._listens.wait(60) and "listening" in self._told, "".join(self.log)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"msg=(listening|http) addr=(\S+)", line):
                self._told[found[1]] = found[2]
            if "listening" in self._told:
                self._listens.set()
        self._listens.set()

    @property
    def port(self) -> str:
        """host:port, if it listens on one."""
        return self._told["listening"]

    def metric(self, name: str) -> float:
        """One number of its /metrics."""
        with urllib.request.urlopen(f"http://{self._told['http']}/metrics", timeout=60) as page:
            lines = page.read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def stop(self) -> None:
        """Ends it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self._reader.join(60)


class Nodes:
    """Nodes of this machine, each with one worker."""

    def __init__(self, binary: str, directory: Path) -> None:
        self._binary, self._directory = binary, directory
        self.running: list[Node] = []

    def start(
        self, data: Path, *flags: str, name: str = "photos", listen: str = "", binary: str = "", **environment: str
    ) -> str:
        """Starts a node, on a unix socket if listen names no port; its address. binary: another program."""
        address = listen or f"unix:{self._directory}/node{len(self.running)}.sock"
        arguments = ["--data", f"{name}={data}", "--listen", address, *flags]
        self.running.append(Node(binary or self._binary, arguments, environment))
        return self.running[-1].port if listen else address

    def stop(self) -> None:
        """Ends them all."""
        for node in self.running:
            node.stop()


@pytest.fixture
def nodes(binary: str, tmp_path: Path) -> Any:
    """Starts real nodes."""
    made = Nodes(binary, tmp_path)
    yield made
    made.stop()
