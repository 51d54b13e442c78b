"""What the agent is told of the loop's steps."""

from __future__ import annotations

import math
import multiprocessing
import re
import socket
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from sim_gpu import SimClock, SimGpu

from feedwater._arguments.job_name import name_of
from feedwater._common.ranks import Ranks
from feedwater._meter import pulse as reports
from feedwater._meter.idle import Meter
from feedwater._meter.pace import Pace
from feedwater._order.steps import RangeOrder, Step


def told(fake: Any) -> list[list[float]]:
    """All steps that the agent was told of: number, step, wait, idle, transfer."""
    return [step for line in fake.log("pulse") for step in line["pulse"]]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is told by itself."""
    monkeypatch.setattr(reports, "EVERY_S", 0.0)


def test_every_turn_is_told_once(fake: Any, at_once: None) -> None:
    fake.set(samples=60, window=4)
    with fake.loader(num_replicas=2, rank=1, batch_size=10) as loader:
        for _ in range(2):
            for _ in loader:
                pass
        fake.until(lambda: len(told(fake)) == 4)
        stats = loader.stats()
    steps = told(fake)
    # 3 steps an epoch on both ranks; what comes before the first batch of a pass is no turn.
    assert [step[0] for step in steps] == [1, 2, 4, 5]
    assert all(0 <= wait <= step for _, step, wait, _, _ in steps)
    assert sum(wait for _, _, wait, _, _ in steps) <= stats.wait_s
    assert all(math.isnan(step[3]) for step in steps), "no GPU: unknown, never 0"
    head = fake.log("pulse")[-1]
    assert (head["rank"], head["world"], head["samples"]) == (1, 2, 10)
    assert head["window"] == 4 and head["blocked"] < 0


def test_what_lies_between_two_passes_is_no_step(fake: Any, at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimClock()
    monkeypatch.setattr("feedwater._meter.pace.perf_counter", clock)
    with fake.loader() as loader:
        loader.peek()
        for _ in range(3):
            for _ in zip(range(3), loader):  # broken off
                clock.spend(1.0)
            clock.spend(60.0)  # an evaluation
        fake.until(lambda: len(told(fake)) == 6)
        assert loader.stats().step_s == 6.0
    assert [step for _, step, _, _, _ in told(fake)] == [1.0] * 6


def test_few_are_sent(fake: Any) -> None:
    fake.set(samples=1000, window=4)
    began = time.monotonic()
    with fake.loader(batch_size=10) as loader:
        for _ in loader:
            pass
        took = time.monotonic() - began
    assert len(fake.log("pulse")) <= took / reports.EVERY_S + 1


def test_a_blocked_loop_is_told_of(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "BLOCKED_S", 0.0)
    fake.set(until_blocked=True)
    with fake.loader(timeout=30, start_timeout=30) as loader:
        next(iter(loader))
        fake.until(lambda: any(line["blocked"] >= 0 for line in fake.log("pulse")))


class Meanwhile:
    """A Feed of which only what Pulse needs is there, and a link that keeps what is told."""

    def __init__(self) -> None:
        self.session, self.link, self.window, self.packets = self, self, 8, list[bytes]()

    def count_ready(self) -> int:
        return 3

    def send_lossy(self, packet: bytes) -> None:
        self.packets.append(packet)

    def steps(self) -> list[tuple[float, ...]]:
        return [step for packet in self.packets for step in reports._STEP.iter_unpack(packet[reports._HEAD.size :])]


def test_idle_belongs_to_its_step(monkeypatch: pytest.MonkeyPatch, at_once: None) -> None:
    clock = SimClock()
    monkeypatch.setattr("feedwater._meter.pace.perf_counter", clock)
    gpu = SimGpu(clock)
    pace, feed = Pace(Meter(lambda: gpu)), Meanwhile()
    pulse = reports.Pulse(pace, feed)  # type: ignore[arg-type]
    pulse.begin_pass(RangeOrder(1000, 10, "short", None), 10, Ranks(0, 1))
    waits = [0.0, 0.05, 0.0, 0.5, 0.0, 0.0]
    for number, wait in enumerate(waits):
        entered = pace.enter_next()
        clock.spend(wait)
        pace.note_arrival()
        pace.leave_next(entered)
        pulse.note_step(Step(2, 10 * number, 10, 10 * number, 10, 10))
        gpu.launch(0.1)
        clock.spend(0.001)
    gpu.synchronize()
    pulse.note_wait(1.0)
    steps = feed.steps()
    assert [step[0] for step in steps] == [201, 202, 203, 204, 205]
    # The GPU has 0.3 s of work when the loop begins to wait for the fourth batch: only for the rest it stands still.
    assert [round(step[3], 3) for step in steps] == [0.0, 0.0, 0.253, 0.0, 0.0]
    assert [round(step[2], 3) for step in steps] == waits[1:]


def test_idle_that_stays_unknown_keeps_no_step_back(at_once: None) -> None:
    clock = SimClock()
    gpu = SimGpu(clock)
    pace, feed = Pace(Meter(lambda: gpu)), Meanwhile()
    pulse = reports.Pulse(pace, feed)  # type: ignore[arg-type]
    pulse.begin_pass(RangeOrder(10000, 10, "short", None), 10, Ranks(0, 1))
    gpu.free[0, 0] = math.inf  # the GPU hangs: no mark is ever reached
    for number in range(200):
        pace.leave_next(pace.enter_next())
        pulse.note_step(Step(0, 10 * number, 10, 10 * number, 10, 10))
    steps = feed.steps()
    assert len(steps) >= 200 - reports.OVERDUE - 1
    assert all(math.isnan(step[3]) for step in steps)


@pytest.mark.parametrize(
    ("order", "batch", "numbers"), [((95, 10, "short", None), 10, [12, 13, 14]), (None, None, None)]
)
def test_numbers_are_the_same_on_all_ranks(order: Any, batch: int | None, numbers: list[int] | None) -> None:
    seen = []
    for rank in range(3):
        ranks = Ranks(rank, 3)
        pulse = reports.Pulse(Pace(), Meanwhile())  # type: ignore[arg-type]
        if order is not None:
            pulse.begin_pass(RangeOrder(*order), batch, ranks)
        steps = [Step(3, start, 30, start + rank * 10, 10, 10, np.arange(10)) for start in (0, 30, 60)]
        seen.append([pulse.step_number(step) for step in steps])
    assert seen[0] == seen[1] == seen[2] == sorted(set(seen[0]))
    assert numbers is None or seen[0] == numbers


def test_job_names(monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = {"/home/me/train.py": "train", "/a/trainer/__main__.py": "trainer", "-c": "python", "": "python"}
    for script, name in scripts.items():
        monkeypatch.setattr(sys, "argv", [script])
        assert name_of(None, 2) == name_of("none", 2) == name
    assert name_of("mine", 1) == "mine"


def test_each_run_of_a_sweep_is_a_job_and_all_its_ranks_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["sweep.py"])
    alone = name_of(None, 1)
    command = [sys.executable, "-c", "from feedwater._arguments.job_name import name_of; print(name_of(None, 1))"]
    assert re.fullmatch(r"sweep-[0-9a-f]{6}", alone) and alone == name_of("none", 1)
    assert alone[-6:] != subprocess.check_output(command, text=True).strip()[-6:], "two runs of one rank"

    monkeypatch.setenv("RANK", "0")
    assert name_of(None, 1) == "sweep", "a rank that does not know the others yet"
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu-1")
    names = set()
    for address in ("gpu-1 29500", "gpu-1 29501", "gpu-2 29500", "127.0.0.1 29500"):
        for name, value in zip(("MASTER_ADDR", "MASTER_PORT"), address.split()):
            monkeypatch.setenv(name, value)
        assert name_of(None, 8) == name_of(None, 1), "all ranks"
        names.add(name_of(None, 8))
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu-2")
    names.add(name_of(None, 8))
    assert len(names) == 5


def test_processes_that_one_program_started_may_be_ranks_that_do_not_know_it_yet() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(name_of, (None, 1)) == name_of(None, 2)
