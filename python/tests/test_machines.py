"""What machines and programs do that a Loader must not mind: handles, limits, signals that stop, default devices."""

from __future__ import annotations

import ast
import contextlib
import ctypes
import errno
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from conftest import make_photos
from expect import check

import feedwater
from feedwater._agent import child, feed, link, memory
from feedwater._agent.process import agent
from feedwater._common import waits
from feedwater._meter import pace
from feedwater._python import pool

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("torchvision.datasets")
v1 = pytest.importorskip("torchvision.transforms")
v2 = pytest.importorskip("torchvision.transforms.v2")
from torch.utils.data import BatchSampler, RandomSampler, Subset, WeightedRandomSampler  # noqa: E402

PACKAGE = Path(feedwater.__file__).parent

BEGIN = """
import os, resource, signal, sys
import feedwater
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
def loader(**options):
    return feedwater.Loader(sys.argv[1], feedwater.transforms.CenterCrop(8), batch_size=10, **options)
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 pictures."""
    return make_photos(tmp_path_factory.mktemp("pictures"), 30)


def run(code: str, pictures: Path, *flags: str, **environment: str) -> str:
    """What a program prints that uses the package; it must end without an error and without a word."""
    program = subprocess.run(
        [sys.executable, "-W", "error", *flags, "-c", BEGIN + code, str(pictures)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        env={**os.environ, **environment},
        check=False,
    )
    assert (program.returncode, program.stderr) == (0, ""), program.stderr
    return program.stdout


# -- handles -----------------------------------------------------------------------------------------------------------


def test_nothing_of_the_package_calls_select() -> None:
    """select() takes no handles from 1024 on."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.Attribute) and node.attr in ("select", "SelectSelector")
            imported = isinstance(node, ast.ImportFrom) and node.module in ("select", "selectors")
            if imported or named:
                found.append(f"{path.name}:{node.lineno}")
    assert not found


def test_a_program_with_more_than_1024_open_files(real: str, pictures: Path) -> None:
    code = """
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
with loader() as made:
    next(iter(made))
print(held[-1] > 1024)
"""
    assert run(code, pictures) == "True\n"


def test_inheritable_handles_above_the_limit_are_closed_in_the_agent(real: str, pictures: Path) -> None:
    code = """
import contextlib
from feedwater._agent.process import agent
read, write = os.pipe()
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
for number in (255, 256, 300):
    os.dup2(write, number, inheritable=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
with loader() as made:
    next(iter(made))
    held = set()
    for fd in os.listdir(f"/proc/{agent.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # the agent closes some meanwhile
            held.add(os.readlink(f"/proc/{agent.pid}/fd/{fd}"))
    print(os.readlink(f"/proc/self/fd/{write}") in held)
"""
    assert run(code, pictures) == "False\n"


def test_what_cannot_start_for_want_of_handles_says_so(real: str, pictures: Path) -> None:
    code = """
resource.setrlimit(resource.RLIMIT_NOFILE, (8, hard))
try:
    next(iter(loader()))
except feedwater.Error as error:
    print(error)
"""
    assert "ulimit -n" in run(code, pictures)


# -- time that did not pass for us -------------------------------------------------------------------------------------


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_only_time_in_which_the_process_ran_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(waits, "monotonic", clock)
    waited = waits.Waited(1.0)
    for passed, counted in ((1, 1), (0.5, 1.5), (2, 3.5), (3600, 5.5), (1, 6.5), (13, 8.5)):
        clock.now += passed
        assert waited.end_turn() == counted
    assert waited.stopped_s == 3598 + 11
    clock.now += 500
    waited.skip_turn()
    assert (waited.end_turn(), waited.stopped_s) == (8.5, 3598 + 11)


@pytest.mark.parametrize("stops", [1, 3])
def test_a_trainer_that_was_stopped_amid_a_batch_goes_on(
    fake: Any, monkeypatch: pytest.MonkeyPatch, stops: int
) -> None:
    clock, left = Clock(), [stops]
    receive = link.Link.receive

    def stopped(link: Any, flags: int = 0) -> bool:
        if left[0] and loader.stats().batches:
            if not flags:  # it blocks
                left[0] -= 1
                clock.now += 1000
            return False
        return receive(link, flags)

    monkeypatch.setattr(waits, "monotonic", clock)
    monkeypatch.setattr(feed, "SLACK_S", 0)
    monkeypatch.setattr(link.Link, "receive", stopped)
    monkeypatch.setattr(pace, "perf_counter", clock)
    loader = fake.loader(timeout=8)
    seen = [i for _ in loader for i in loader.last.indices.tolist()]
    assert seen == list(range(100)) and not left[0]
    assert loader.stats().wait_s <= 2 * stops, "it is no wait for data"
    assert loader.stats().step_s <= 2 * stops


def test_a_call_of_a_trainer_that_was_stopped_is_answered(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, left = Clock(), [True]
    receive = link.Link.receive

    def stopped(link: Any, flags: int = 0) -> bool:
        if left.pop() if left else False:
            clock.now += 5000
            return False
        return receive(link, flags)

    monkeypatch.setattr(waits, "monotonic", clock)
    monkeypatch.setattr(link.Link, "receive", stopped)
    assert next(iter(fake.loader(start_timeout=10))) is not None
    assert not left


def test_an_agent_is_given_its_time_to_end_by_who_was_stopped(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    ended = child._await_end

    def stopped(pidfd: int, timeout: float) -> bool:
        monkeypatch.setattr(child, "_await_end", lambda pidfd, timeout: ended(pidfd, 60))
        clock.now += 100
        return False

    loader = fake.loader()
    next(iter(loader))
    process = agent._process
    monkeypatch.setattr(waits, "monotonic", clock)
    monkeypatch.setattr(child, "_await_end", stopped)
    loader.close()
    assert process is not None and not process.forced


class Ending:
    """A process that ends at the end of so many joins, during the first of which this one is stopped."""

    def __init__(self, clock: Clock, joins: int) -> None:
        self.exitcode: int | None = None
        self.clock, self.left, self.stop_s = clock, joins, 100.0

    def join(self, timeout: float) -> None:
        if timeout:
            self.clock.now += self.stop_s or timeout + 1e-6
            self.stop_s, self.left = 0, self.left - 1
            self.exitcode = None if self.left else 0


@pytest.mark.parametrize(("joins", "code"), [(1, 0), (5, 0), (15, None)])
def test_a_process_for_python_is_given_its_time_to_end_by_who_was_stopped(
    monkeypatch: pytest.MonkeyPatch, joins: int, code: int | None
) -> None:
    clock = Clock()
    monkeypatch.setattr(waits, "monotonic", clock)
    process, turn_s = Ending(clock, joins), pool.TURN_S
    pool._await_end(process, waits.Waited(turn_s, turn_s))
    assert process.exitcode == code


STOPPED = """
import logging
from feedwater._agent.link import Link
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
from feedwater._agent.process import agent
options = {"batch_size": 1, "nodes": sys.argv[2], "memory": 4 * 4096, "timeout": 2, "start_timeout": 60}
it = iter(feedwater.Loader(sys.argv[1], feedwater.transforms.CenterCrop(8), **options))
next(it)
print("agent", agent.pid, flush=True)
sys.stdin.readline()
receive = Link.receive
def waits(link, flags=0):
    if not flags:
        Link.receive = receive
        print("waits", flush=True)
    return receive(link, flags)
Link.receive = waits
print("batches", 1 + sum(1 for _ in it))
"""


def line(program: Any, begin: str) -> str:
    """The next line of a program's output that begins so; its log has lines there too."""
    seen = []
    for text in iter(program.stdout.readline, ""):
        if text.startswith(begin):
            return str(text)
        seen.append(text)
    raise AssertionError(f"no {begin!r}: {seen} {program.stderr.read()}")


def test_a_trainer_and_its_agent_that_are_stopped_for_longer_than_the_timeout_go_on(
    real: str, nodes: Any, pictures: Path
) -> None:
    address = nodes.start(pictures)
    trainer = subprocess.Popen(
        [sys.executable, "-c", BEGIN + STOPPED, "photos", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert trainer.stdin is not None
    both = [trainer.pid]
    try:
        both.append(int(line(trainer, "agent").split()[1]))
        nodes.running[0].process.send_signal(signal.SIGSTOP)  # so that there is a batch that does not come
        trainer.stdin.write("\n")
        trainer.stdin.flush()
        line(trainer, "waits")
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(3)  # by the machine's clock, which nobody can set for all of them
        for pid in both:
            os.kill(pid, signal.SIGCONT)
        line(trainer, "this process was stopped")
        nodes.running[0].process.send_signal(signal.SIGCONT)
        assert line(trainer, "batches") == "batches 30\n"
    finally:
        trainer.kill()
        trainer.communicate()
        for pid in both[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)  # it sees that its trainer is gone


# -- aliasing ----------------------------------------------------------------------------------------------------------


def tensors(batch: Any) -> list[Any]:
    return list(batch.values() if isinstance(batch, dict) else batch)


@pytest.mark.parametrize("fields", [("image", "label", "index"), {"image": "x", "label": "y", "index": "i"}])
def test_a_peek_is_a_copy(fake: Any, fields: Any) -> None:
    expected = [tensors(batch) for batch in fake.loader(fields=fields)]
    loader = fake.loader(fields=fields)
    passing = iter(loader)
    for batch in expected:
        for _ in range(2):
            for tensor in tensors(loader.peek()):
                tensor.mul_(0)
        assert all(torch.equal(a, b) for a, b in zip(tensors(next(passing)), batch, strict=True))
    assert loader.peek() is None


def test_a_peek_under_inference_mode_leaves_nothing_of_that_mode(fake: Any) -> None:
    seen = []

    def transform(batch: Any, rng: Any) -> Any:
        seen.append(torch.is_inference_mode_enabled())
        return batch[0].float() * 1.0, batch[1]

    for options in ({}, {"batch_transform": transform}):
        loader = fake.loader(**options)
        with torch.inference_mode():
            assert loader.peek() is not None
        weight = torch.ones((), requires_grad=True)
        images, _ = next(iter(loader))
        (images.float() * weight).sum().backward()  # "Inference tensors cannot be saved for backward" else
        with torch.inference_mode():  # a validation loop
            images, labels = next(iter(loader))
            assert not images.is_inference() and not labels.is_inference()
    assert seen and not any(seen)


def test_what_is_done_to_a_batchs_indices_is_not_done_to_the_loaders(fake: Any) -> None:
    loader = fake.loader(fields=("image", "index"))
    _, index = next(iter(loader))
    index.zero_()
    assert loader.last.indices.tolist() == list(range(10))


# -- modes of torch ----------------------------------------------------------------------------------------------------

CROP = [v2.CenterCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])]
LOOKS: dict[str, Any] = {
    "float": v2.Compose(CROP),
    "bytes": v2.Compose(CROP[:2]),
    "first generation": v1.Compose([v1.CenterCrop(16), v1.ToTensor(), v1.Normalize([0.5], [0.5])]),
    "erasing": v2.Compose([*CROP, v2.RandomErasing(p=1, value=0.5)]),
    "half": v2.Compose([*CROP, v2.ConvertImageDtype(torch.bfloat16)]),
}


@pytest.fixture
def elsewhere() -> Iterator[None]:
    """Tensors are made on another device than the CPU, where nobody says which."""
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


def batches(pictures: Path, *, device: str | None = None, **options: Any) -> list[list[Any]]:
    torch.set_default_device(device)
    try:
        options = {"transform": v2.Compose(CROP), "batch_size": 8, **options}
        with feedwater.Loader(options.pop("source", pictures), **options) as loader:
            return [tensors(batch) for batch in loader]
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize("look", LOOKS)
def test_the_default_device_is_no_matter(real: str, pictures: Path, look: str) -> None:
    expected, got = (batches(pictures, device=device, transform=LOOKS[look]) for device in (None, "meta"))
    assert all(torch.equal(a, b) for one, other in zip(expected, got, strict=True) for a, b in zip(one, other))
    assert {tensor.device.type for batch in got for tensor in batch} == {"cpu"}


def test_samplers_and_mixing_draw_the_same_whatever_the_default_device(real: str, pictures: Path) -> None:
    folder = datasets.ImageFolder(pictures)
    mix = v2.MixUp(num_classes=5)
    for options in (
        {"sampler": RandomSampler(folder)},
        {"sampler": WeightedRandomSampler(torch.ones(30), 30)},
        {"batch_sampler": BatchSampler(RandomSampler(folder), 8, drop_last=False), "batch_size": None},
        {"batch_transform": mix},
        {"source": Subset(folder, [3, 1, 2]), "fields": ("image", "label", "valid"), "tail": "valid"},
    ):
        expected, got = (batches(pictures, device=device, **options) for device in (None, "meta"))
        assert all(torch.equal(a, b) for one, other in zip(expected, got, strict=True) for a, b in zip(one, other))


# -- samplers ----------------------------------------------------------------------------------------------------------


def test_negative_indices_count_from_the_end(fake: Any) -> None:
    loader = fake.loader(sampler=[-1, -2, 5], batch_size=3)
    images, labels = next(iter(loader))
    assert loader.last.indices.tolist() == [99, 98, 5]
    assert labels.tolist() == [9, 8, 5]
    check(images, [99, 98, 5], 0, repeats=range(3))
    assert np.array_equal(loader.replay(99).image, loader.replay(99, repeat=0).image)
    with pytest.raises(feedwater.DataError, match=r"gave index -101, but the data set has samples 0 to 99"):
        next(iter(fake.loader(sampler=[-101], batch_size=3)))
    lists = fake.loader(batch_sampler=[[-1, 0], [1, -3]], batch_size=None)
    assert [lists.last.indices.tolist() for _ in lists] == [[99, 0], [1, 97]]


def test_negative_indices_of_a_subset_count_from_its_end(real: str, pictures: Path) -> None:
    folder = datasets.ImageFolder(pictures)
    for subset in (Subset(folder, range(-4, 0)), Subset(Subset(folder, range(10, 30)), [-4, -3, -2, -1])):
        with feedwater.Loader(subset, v2.PILToTensor(), batch_size=1, fields=("image", "label", "index")) as loader:
            for (image, label, index), (expected, target) in zip(loader, subset, strict=True):
                assert np.array_equal(image[0].permute(1, 2, 0), np.asarray(expected))
                assert (label.item(), index.item()) == (target, list(range(26, 30))[loader.last.position])
    with pytest.raises(feedwater.DataError, match="reach from -31"):
        feedwater.Loader(Subset(folder, [-31]), v2.PILToTensor(), batch_size=1)


# -- classes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["here", "nodes", "both"])
def test_empty_classes_have_their_labels(real: str, nodes: Any, tmp_path: Path, where: str) -> None:
    root = tmp_path / "root"
    for name in ("a", "b", "c", "d"):
        (root / name).mkdir(parents=True)
        for number in range(0 if name in ("b", "d") else 3):
            PIL.Image.new("RGB", (20, 20), (number, 2, 3)).save(root / name / f"{number}.png")
    folder = datasets.ImageFolder(root, allow_empty=True)
    options: dict[str, Any] = {"batch_size": 6}
    if where != "here":
        options |= {"nodes": nodes.start(root), "local_workers": 1 if where == "both" else "auto"}
    with feedwater.Loader(folder, v2.PILToTensor(), **options) as loader:
        for _ in range(2):
            _, labels = next(iter(loader))
            assert labels.tolist() == folder.targets == [0, 0, 0, 2, 2, 2]
        assert loader.classes == folder.classes == ["a", "b", "c", "d"]
        assert loader.replay(4).label == 2
    with feedwater.Loader(root, v2.PILToTensor(), batch_size=6) as loader:
        with pytest.raises(feedwater.DataError, match=r"no picture .* in the folder b, d"):  # as ImageFolder(root) says
            next(iter(loader))
        assert not (root / "b").rmdir() and not (root / "d").rmdir()
    with feedwater.Loader(root, v2.PILToTensor(), batch_size=6) as loader:
        assert next(iter(loader))[1].tolist() == [0, 0, 0, 1, 1, 1]


class Sometimes:
    """A sampler that gives nothing in odd epochs."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter(range(10) if self.epoch % 2 == 0 else ())

    def __len__(self) -> int:
        return 10


def test_an_epoch_for_which_a_sampler_gives_nothing_is_an_error(fake: Any) -> None:
    loader = fake.loader(sampler=Sometimes(), batch_size=10)
    assert len(list(loader)) == 1
    for _ in range(2):
        with pytest.raises(feedwater.DataError, match=r"Sometimes gave nothing in epoch 1, .*set_epoch\(epoch \+ 1\)"):
            list(loader)
    loader.set_epoch(2)
    assert len(list(loader)) == 1
    lists = fake.loader(batch_sampler=Used([[1, 2], [3]]), batch_size=None)
    assert len(list(lists)) == 2
    with pytest.raises(feedwater.DataError, match=r"Used gave nothing in epoch 1, .*An iterator is used up"):
        list(lists)


class Used:
    """An iterator in place of a sampler."""

    def __init__(self, lists: list[list[int]]) -> None:
        self._lists = iter(lists)

    def __iter__(self) -> Iterator[list[int]]:
        return self._lists

    def __len__(self) -> int:
        return 2


# -- what programs do around a loop ------------------------------------------------------------------------------------

PROGRAMS = {
    "the working folder changes after the Loader was made": """
os.chdir(os.path.dirname(sys.argv[1])); sys.argv[1] = os.path.basename(sys.argv[1])
made = loader(); os.chdir("/")
print(sum(1 for _ in made))
""",
    "the working folder is removed": """
import tempfile
os.chdir(tempfile.mkdtemp()); os.rmdir(os.getcwd())
print(sum(1 for _ in loader()))
""",
    "standard streams are closed, or None": """
os.close(0)
out, sys.stdin, sys.stdout, sys.stderr = sys.stdout, None, None, None
steps = sum(1 for _ in loader())
print(steps, file=out)
""",
    "the environment is emptied": """
binary = os.environ["FEEDWATER_BINARY"]
os.environ.clear(); os.environ["FEEDWATER_BINARY"] = binary
print(sum(1 for _ in loader()))
""",
    "an embedded interpreter has no argv": """
made = loader()
del sys.argv
print(sum(1 for _ in made))
""",
    "children are not waited for": """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
with loader() as made:
    print(sum(1 for _ in made))
""",
    "a timer strikes all the time": """
struck = []
signal.signal(signal.SIGALRM, lambda *_: struck.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
steps = sum(1 for _ in loader())
signal.setitimer(signal.ITIMER_REAL, 0)
assert struck
print(steps)
""",
    "a scheduler signals the process group": """
signal.signal(signal.SIGTERM, lambda *_: None); signal.signal(signal.SIGUSR1, lambda *_: None)
os.setpgid(0, 0)
it = iter(loader()); next(it)
os.killpg(0, signal.SIGTERM); os.killpg(0, signal.SIGUSR1)
print(1 + sum(1 for _ in it))
""",
    "a limit of file sizes": """
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
print(sum(1 for _ in loader()))
""",
    "one core": """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(sum(1 for _ in loader()))
""",
    "a umask that leaves nothing": """
os.umask(0o777)
print(sum(1 for _ in loader()))
""",
    "a tracer, a profiler, a low limit of recursion": """
sys.settrace(lambda *_: None); sys.setprofile(lambda *_: None); sys.setrecursionlimit(120)
print(sum(1 for _ in loader()))
""",
    "numpy raises for every overflow": """
import numpy
numpy.seterr(all="raise")
print(sum(1 for _ in loader(sampler=range(30), seed=2**63, batch_transform=lambda batch, rng: batch)))
""",
    "the collector is frozen, then off, and batches lie in cycles": """
import gc
made = loader(); it = iter(made); next(it)
gc.freeze(); gc.disable()
for batch in it:
    cycle = {"batch": batch}; cycle["self"] = cycle
print(sum(1 for _ in made))
""",
    "a generator over the Loader is closed early": """
made = loader()
def batches():
    yield from made
some = batches(); next(some); some.close()
for _ in range(2):
    try:
        for _ in made: raise ValueError
    except ValueError: pass
print(sum(1 for _ in made))
""",
    "a loop in another thread, and in an event loop": """
import asyncio, threading
made, counts = loader(), []
thread = threading.Thread(target=lambda: counts.append(sum(1 for _ in made))); thread.start(); thread.join()
async def main():
    it = iter(made)
    while await asyncio.to_thread(next, it, None) is not None: counts.append(1)
asyncio.run(main())
assert counts == [3, 1, 1, 1], counts
print(3)
""",
    "another thread is amid importing torch": """
import importlib.machinery, types
made = loader(sampler=list(range(30)), batch_transform=lambda batch, rng: batch); it = iter(made); next(it)
half = types.ModuleType("torch")
half.__spec__ = importlib.machinery.ModuleSpec("torch", None); half.__spec__._initializing = True
sys.modules["torch"] = half
assert made.peek() is not None
print(1 + sum(1 for _ in it))
""",
    "copies of Loaders and of iterators": """
import copy, pickle
made = loader(shuffle=True); it = iter(made); next(it)
assert [len(list(copy.deepcopy(made))), len(list(pickle.loads(pickle.dumps(made)))), len(list(it))] == [2, 2, 2]
assert len(list(copy.copy(made))) == 3
copy.deepcopy(iter(made)); pickle.loads(pickle.dumps(iter(made)))
print(len(list(made)))
""",
    "Loaders inside each other and side by side": """
first, second = loader(), loader()
assert sum(1 for _ in first for _ in second) == 9
print(sum(1 for _ in zip(first, second)))
""",
    "a batch is wanted while the interpreter exits": """
import atexit
made = loader()
atexit.register(lambda: print(len(list(made))))
""",
    "a fork with the Loader alive": """
it = iter(loader()); next(it)
child = os.fork()
if child == 0:
    try: next(it)
    except feedwater.ForkedError: os._exit(sum(1 for _ in loader()))
    os._exit(99)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
print(1 + sum(1 for _ in it))
""",
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_what_programs_do_around_a_loop_is_no_matter(real: str, pictures: Path, kind: str) -> None:
    assert run(PROGRAMS[kind], pictures) == "3\n"


NOWHERE = {"HOME": "/proc", "XDG_CACHE_HOME": "/proc/cache", "FEEDWATER_CACHE_DIR": "", "TMPDIR": "/proc"}
"""But memory that outlives a process: where that is, tests say, so that they leave nothing in /dev/shm."""
INTERPRETERS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "no asserts, no docstrings": (("-OO",), {}),
    "development mode": (("-X", "dev", "-X", "faulthandler"), {}),
    "no folder that can be written": ((), NOWHERE),
    "the C locale": ((), {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "a hash seed": ((), {"PYTHONHASHSEED": "0"}),
}


def private(folder: Path) -> Path:
    """The folder, which nobody else may enter."""
    folder.chmod(0o700)
    return folder


@pytest.mark.parametrize("kind", INTERPRETERS)
def test_how_the_interpreter_was_started_is_no_matter(
    real: str, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    flags, environment = INTERPRETERS[kind]
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(private(tmp_path)))
    assert run("print(sum(1 for _ in loader(shuffle=True)))", pictures, *flags, **environment) == "3\n"


IN_CREATE, IN_NONBLOCK = 0x100, 0o4000


class Arrivals:
    """The files that are made in a folder, as inotify tells."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle = libc.inotify_init1(IN_NONBLOCK)
        assert libc.inotify_add_watch(self._handle, os.fsencode(folder), IN_CREATE) > 0

    def names(self) -> list[str]:
        """Those so far; may be asked once."""
        told, names = os.read(self._handle, 1 << 16), []
        os.close(self._handle)
        while told:
            size = int.from_bytes(told[12:16], sys.byteorder)
            names.append(os.fsdecode(told[16 : 16 + size].rstrip(b"\0")))
            told = told[16 + size :]
        return names


RANKS = """
sys.stdin.readline()
print([sum(1 for _ in loader(shuffle=True)) for _ in range(3)])
"""


def test_loaders_and_ranks_without_a_folder_for_lists_scan_once(real: str, pictures: Path, tmp_path: Path) -> None:
    kept = private(tmp_path) / "feedwater" / "snapshots"
    for folder in (kept.parent, kept):
        folder.mkdir(0o700)
    lists = Arrivals(kept)
    environment = {**os.environ, **NOWHERE, "XDG_RUNTIME_DIR": str(tmp_path)}
    environment |= {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"}
    with contextlib.ExitStack() as ends:
        ranks = []
        for rank in range(4):
            command = [sys.executable, "-c", BEGIN + RANKS, str(pictures)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            ranks.append(subprocess.Popen(command, env={**environment, "RANK": str(rank)}, cwd="/", **pipes))
            ends.enter_context(ranks[-1])
            ends.callback(ranks[-1].kill)
        for program in ranks:  # all at once
            program.stdin.write("\n")
            program.stdin.flush()
        told = [program.communicate(timeout=120)[0] for program in ranks]
    assert told == ["[1, 1, 1]\n"] * 4
    assert len([name for name in lists.names() if name.endswith(".tmp")]) == 1, "each scan writes a list"


def test_the_package_in_a_zip_file_works(real: str, pictures: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "feedwater.zip", "w") as archive:
        for path in PACKAGE.rglob("*.py"):
            archive.write(path, path.relative_to(PACKAGE.parent))
    told = run(
        "print('.zip' in feedwater.__file__, sum(1 for _ in loader()))", pictures, PYTHONPATH=f"{archive.filename}"
    )
    assert told == "True 3\n"


@pytest.mark.parametrize("where", ["arguments", "environment"])
def test_files_of_connections_are_found_wherever_the_program_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    for name in ("token", "ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {}
    if where == "arguments":
        tls = {"ca": "ca.pem", "cert": Path("cert.pem"), "key": "key.pem", "server_name": "node"}
        given = {"token_file": "token", "tls": tls}
    variables = {"TOKEN_FILE": "token", "TLS_SERVER_NAME": "node"}
    variables |= {f"TLS_{name.upper()}": f"{name}.pem" for name in ("ca", "cert", "key")}
    for name, value in variables.items() if where == "environment" else ():
        monkeypatch.setenv(f"FEEDWATER_{name}", value)
    loader = feedwater.Loader("root/x", CROP, batch_size=1, nodes="node:1", **given)
    monkeypatch.chdir("/")
    said = pickle.loads(pickle.dumps(loader._config.trust)).open_members()
    assert said["token_file"] == f"{tmp_path}/token"
    assert said["tls"] == {"server_name": "node"} | {k: f"{tmp_path}/{k}.pem" for k in ("ca", "cert", "key")}


def test_an_image_folder_that_cannot_be_found_from_here_is_told(
    pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pictures.parent)
    folder = datasets.ImageFolder(pictures.name)
    monkeypatch.chdir("/")
    with pytest.raises(feedwater.DataError, match=r"no such folder \(looked from /\)"):
        feedwater.Loader(folder, CROP, batch_size=1)


@pytest.mark.parametrize(("rank", "world"), [("x", "2"), ("0", "two"), ("5", "2"), ("1.0", "2")])
def test_a_launcher_that_says_nonsense_is_named(
    fake: Any, monkeypatch: pytest.MonkeyPatch, rank: str, world: str
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", world)
    with pytest.raises(ValueError, match=f"RANK='{rank}' and WORLD_SIZE='{world}'.*pass rank= and num_replicas="):
        next(iter(fake.loader()))
    assert next(iter(fake.loader(rank=0, num_replicas=1))) is not None


def test_a_sandbox_without_proc_has_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(path: Path, *_: Any, **__: Any) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(memory.Path, "read_text", hidden)
    assert memory.available_bytes() > 1 << 20


def test_what_limits_address_space_is_said_where_the_agent_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    monkeypatch.setattr(child.resource, "getrlimit", lambda _: (1 << 30, 1 << 30))
    assert "ulimit -v limits to 1,073,741,824 bytes" in child._explain_start_error(error)
    monkeypatch.setattr(child.resource, "getrlimit", lambda _: (-1, -1))
    assert "no memory is left" in child._explain_start_error(error) and "ulimit" not in child._explain_start_error(
        error
    )


def counted(pictures: str, python: bool, answer: Any) -> None:
    """How many batches a process has, or the error."""
    options = {"python": kept, "python_workers": 1} if python else {}
    try:
        with feedwater.Loader(pictures, feedwater.transforms.CenterCrop(8), batch_size=10, **options) as loader:
            answer.send(sum(1 for _ in loader))
    except feedwater.Error as error:
        answer.send(str(error))


def kept(sample: dict[str, Any], rng: Any) -> dict[str, Any]:
    return sample


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.usefixtures("fork_server")
def test_a_daemonic_process_has_batches_and_is_told_of_python(real: str, pictures: Path, method: str) -> None:
    context = multiprocessing.get_context(method)
    for python in (False, True):
        mine, theirs = context.Pipe()
        process = context.Process(target=counted, args=(str(pictures), python, theirs), daemon=True)
        process.start()
        told = mine.recv()
        process.join()
        assert told == 3 if not python else "this one is daemonic" in told and "batch_transform" in told


def test_a_program_from_standard_input_may_have_functions_of_modules(real: str, pictures: Path) -> None:
    code = f"""
import feedwater, test_machines
def own(sample, rng): return sample
print(len(next(iter(feedwater.Loader({str(pictures)!r}, python=test_machines.kept, python_workers=1, batch_size=1)))))
try:
    feedwater.Loader({str(pictures)!r}, python=own, batch_size=1)
except TypeError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True, timeout=120, check=True)
    assert told.stdout.startswith("2\n") and "put it into a file and import it from there" in told.stdout


# -- more modes of torch -----------------------------------------------------------------------------------------------


def test_a_loop_may_be_compiled_checked_for_anomalies_and_deterministic(real: str, pictures: Path) -> None:
    code = """
import warnings
warnings.simplefilter("ignore")
import torch
from torchvision.transforms import v2
steps = v2.Compose([v2.CenterCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
made = feedwater.Loader(sys.argv[1], steps, batch_size=10, batch_transform=v2.MixUp(num_classes=5))
plain = [float(images.sum()) for images, _ in made]
torch.use_deterministic_algorithms(True); torch.autograd.set_detect_anomaly(True); torch.set_num_threads(1)
made.set_epoch(0)
step = torch.compile(lambda images: images.sum(), backend="eager")
assert [float(step(images)) for images, _ in made] == plain
print(len(plain))
"""
    assert run(code, pictures) == "3\n"


def test_a_default_type_that_is_not_there_is_refused_by_name(pictures: Path) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(feedwater.UnsupportedTransformError, match="make float64"):
            feedwater.Loader(pictures, v1.ToTensor(), batch_size=1)
        assert feedwater.Loader(pictures, LOOKS["float"], batch_size=1) is not None
    finally:
        torch.set_default_dtype(torch.float32)
