"""With the real agent: however loops end, nothing is left behind, here or in the agent, and nothing hangs."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import make_photos
from digest import digest

import feedwater
from feedwater import Loader
from feedwater._agent.process import agent
from feedwater._device.registration import Registered
from feedwater._frameworks.accelerate import JoinedLoop
from feedwater._pass import Pass
from feedwater.transforms import RandomHorizontalFlip, RandomResizedCrop

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("real")

TRAIN = [RandomResizedCrop(32), RandomHorizontalFlip()]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 pictures."""
    return make_photos(tmp_path_factory.mktemp("data"), 100)


def make(data: Path, **options: Any) -> Loader[Any]:
    return Loader(data, TRAIN, **{"batch_size": 10, "shuffle": True, "seed": 5, "memory": 8 << 20, **options})


class Footprint(NamedTuple):
    """What this process and its agent hold of the system."""

    handles: int
    threads: int
    mappings: int
    agents_handles: int
    agents_mappings: int

    def back_at(self, before: Footprint) -> bool:
        """Whether it is no more than before. The agent keeps a data set that nobody uses for a minute, per pipeline."""
        return self._replace(agents_handles=0) == before._replace(agents_handles=0) and (
            self.agents_handles <= before.agents_handles + 3
        )


def footprint() -> Footprint:
    pid = agent.pid
    assert pid is not None
    return Footprint(
        handles=len(os.listdir("/proc/self/fd")),
        threads=len(os.listdir("/proc/self/task")),
        mappings=mappings("self"),
        agents_handles=handles(pid),
        agents_mappings=mappings(pid),
    )


def mappings(pid: Any) -> int:
    """Slots that a process maps."""
    return Path(f"/proc/{pid}/maps").read_text().count("feedwater-slots")


def handles(pid: int) -> int:
    """Open files of a process, without the pictures that it reads just now."""
    names = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            names.append(os.readlink(entry))
        except FileNotFoundError:  # closed meanwhile
            continue
    return sum(not name.endswith(".jpg") for name in names)


def until(holds: Callable[[], bool], why: Callable[[], Any]) -> None:
    """Waits for what another process is doing; a minute at most."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, why()
        os.sched_yield()


class OopsError(Exception):
    """Of the training loop."""


def break_off(loader: Loader[Any]) -> None:
    for step, _ in enumerate(loader):
        if step == loader.last.epoch % 4:  # type: ignore[union-attr]
            break


def first_only(loader: Loader[Any]) -> None:
    next(iter(loader))


def fail(loader: Loader[Any]) -> None:
    with pytest.raises(OopsError):
        for _ in loader:
            raise OopsError


def whole(loader: Loader[Any]) -> None:
    assert len(list(loader)) == 10


@pytest.mark.parametrize("turn", [break_off, first_only, fail, whole])
def test_a_hundred_passes_leave_nothing(data: Path, turn: Callable[[Loader[Any]], None]) -> None:
    loader = make(data)
    turn(loader)
    gc.collect()
    before, serial = footprint(), agent.serial
    for _ in range(99 if turn is not whole else 20):
        turn(loader)
    epoch = loader.last.epoch + 1
    assert digest(loader) == digest(make(data), [epoch])
    gc.collect()
    until(lambda: footprint().back_at(before), lambda: (footprint(), before))
    slots = loader._engine.feed.session.slots
    assert slots is not None
    assert slots.count_unleased() == slots.count
    assert agent.serial == serial, "one agent did it all"


@pytest.mark.parametrize("end", ["close", "del"])
def test_a_hundred_loaders_leave_nothing(data: Path, end: str) -> None:
    kept = make(data)
    image, _ = next(iter(kept))
    before, content = footprint(), image.clone()
    goroutines = []
    gc.disable()  # so that a reference cycle cannot hide
    try:
        for number in range(100):
            loader = make(data, batch_size=5 + number % 7, local_workers=1 + number % 2)
            batch, _ = next(iter(loader))
            if end == "close":
                loader.close()
            del loader, batch
        until(lambda: footprint().back_at(before), lambda: (footprint(), before))
        goroutines.append(stacks())
    finally:
        gc.enable()
    kept.close()
    kept = make(data)
    next(iter(kept))
    goroutines.append(stacks())
    # A pipeline for each number of workers stays: that many goroutines, and those that the last Loader is served by.
    assert len(goroutines[0]) <= len(goroutines[1]) + 8, "\n\n".join(goroutines[0])
    assert torch.equal(image, content)


def stacks() -> list[str]:
    """The goroutines of the agent, which this ends. (SIGQUIT makes a Go program say what it is doing.)"""
    process = agent._process
    assert process is not None
    log = os.dup(process.log)
    os.kill(process.child.pid, signal.SIGQUIT)
    assert process.child.wait(60) is not None
    text = os.pread(log, 1 << 24, 0).decode()
    os.close(log)
    return [block for block in text.split("\n\n") if re.match(r"goroutine \d+ ", block) and "feedwater/" in block]


def test_every_batch_of_an_epoch_may_be_kept(data: Path) -> None:
    loader = make(data, memory=10 * 40960)
    next(iter(loader))
    gc.collect()
    before = footprint()
    kept = [[(image, image.clone()) for image, _ in loader] for _ in range(5)]
    for epoch in kept:
        for image, copy in epoch:
            assert torch.equal(image, copy)
    assert loader.stats().copied_batches > 0
    kept.clear()
    del image, copy, epoch
    until(lambda: footprint().back_at(before), lambda: (footprint(), before))


def test_batches_outlive_everything(data: Path) -> None:
    for _ in range(20):
        loader = make(data)
        image, _ = next(iter(loader))
        copy, pid = image.clone(), agent.pid
        assert pid is not None
        gone = os.pidfd_open(pid)
        loader.close()
        assert agent.pid is None
        assert select.select([gone], [], [], 30)[0]
        os.close(gone)
        assert torch.equal(image, copy), "the agent took the memory along"


def test_an_agent_that_is_told_to_end_takes_nothing_along(data: Path) -> None:
    loader = make(data)
    expected = digest(make(data), [1])
    image, _ = next(iter(loader))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        copy = image.clone()
        pid = agent.pid
        assert pid is not None
        gone = os.pidfd_open(pid)
        os.kill(pid, number)
        assert select.select([gone], [], [], 30)[0]
        os.close(gone)
        agent._deaths.clear()
        assert torch.equal(image, copy), number.name
        list(loader)
        loader.set_epoch(0)
    assert digest(loader, [1]) == expected


def test_a_live_loader_in_a_fork_is_an_error_and_a_new_one_works(data: Path) -> None:
    from test_processes import in_child

    loader = make(data)
    it = iter(loader)
    image, _ = next(it)
    expected = digest(make(data), [1])

    def child() -> str:
        assert int(image.sum()) > 0
        with pytest.raises(feedwater.ForkedError, match="make a Loader in the process that iterates it"):
            next(it)
        fresh = make(data)
        text = digest(fresh, [1])
        fresh.close()
        return text

    assert in_child(child) == expected
    assert len(list(it)) == 9
    assert digest(loader) == expected


@pytest.mark.parametrize("kind", [Loader, Pass, JoinedLoop, Registered], ids=lambda kind: kind.__name__)
def test_what_an_interrupt_kept_from_being_made_ends_in_silence(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    kind.__new__(kind)
    assert not told


INTERRUPTED = """
import hashlib, json, os, sys
import feedwater
t = feedwater.transforms
steps = [t.RandomResizedCrop(32), t.RandomHorizontalFlip()]
loader = feedwater.Loader(sys.argv[1], steps, batch_size=10, shuffle=True, seed=5, memory=8 << 20)
seen, struck, told, batch = {}, 0, 0, None

def note():
    image, label = batch
    digest = hashlib.sha256(image.tobytes()).hexdigest()
    seen.setdefault(str(loader.last.epoch), {})[str(loader.last.position)] = digest

it = iter(loader)
batch = next(it)
note()
print("begin", flush=True)
while told < int(sys.argv[2]):
    try:
        while True:  # within the try, since its jump back may be where the interpreter raises
            if told < struck:  # from here on the next one may strike
                told = struck
                print(told, flush=True)
            for batch in it:
                note()
            if told == int(sys.argv[2]):
                break
            it = iter(loader)
    except KeyboardInterrupt:
        # Was a batch returned and not noted? Then it is the last one, and made again it is the same.
        samples = loader.replay_batch(loader.last.position)
        digest = hashlib.sha256(b"".join(sample.image.tobytes() for sample in samples)).hexdigest()
        assert seen.setdefault(str(loader.last.epoch), {}).setdefault(str(loader.last.position), digest) == digest
        struck += 1
slots = loader._engine.feed.session.slots
batch = None
assert slots.count_unleased() == slots.count
assert feedwater._agent.process.agent.serial == 1, "the agent was left alone"
print(json.dumps([seen, loader.stats().batches]), flush=True)
"""


def test_interrupts_of_the_terminal_lose_nothing(data: Path) -> None:
    strikes, chance = 60, random.Random(3)
    program = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", INTERRUPTED, str(data), str(strikes)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "begin\n"
        for number in range(strikes):
            select.select([program.stdout], [], [], chance.uniform(0, 0.02))  # nothing comes: somewhere in the loop
            os.killpg(program.pid, signal.SIGINT)
            assert select.select([program.stdout], [], [], 60)[0], "an interrupt was lost"
            line = program.stdout.readline()
            assert line == f"{number + 1}\n", line or program.communicate(timeout=60)[1]  # its errors, if it ended
        seen, batches = json.loads(program.stdout.read())
        _, errors = program.communicate(timeout=60)
        assert (program.returncode, errors) == (0, "")
    finally:
        program.kill()
        program.communicate()
    assert sorted(map(int, seen)) == list(range(len(seen)))
    assert batches == 10 * len(seen), "none was lost and none came twice"
    loader = make(data)
    for epoch in sorted(map(int, seen)):
        loader.set_epoch(epoch)
        for image, _ in loader:
            pixels = image.permute(0, 2, 3, 1).contiguous().numpy()
            assert loader.last is not None
            assert seen[str(epoch)].pop(str(loader.last.position)) == hashlib.sha256(pixels).hexdigest()
    assert not any(seen.values())
