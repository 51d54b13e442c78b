"""What the doctor's probe sees inside a script: frames, timed calls, the GPU's clock; and that it lets go."""

from __future__ import annotations

import gc
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from sim_gpu import SimClock, SimGpu

from feedwater.doctor.probe import loop as loops
from feedwater.doctor.probe.frames import Frames
from feedwater.doctor.probe.looks import WINDOW_STEPS, Looks
from feedwater.doctor.probe.loop import Loop
from feedwater.doctor.probe.stream import Row, Stream

torch = pytest.importorskip("torch")

ABOUT = {"workers": 1, "prefetch": 2}


def graph() -> Any:
    return (torch.ones(2, requires_grad=True) * 2).sum()


def test_a_graph_that_grows_is_named() -> None:
    frames = Frames()
    total, losses, fine = torch.zeros(()), [], 0.0
    for _ in range(5):
        for _ in range(20):
            loss = graph()
            total = total + loss
            losses.append(loss)
            fine += loss.item()
        frames.look()
    names = {name.split(" at ")[0]: sizes for name, sizes in frames.dump()["graphs"].items()}
    assert names["losses"] == [20, 40, 60, 80, 100]
    assert names["total"] == sorted(names["total"]) and names["total"][-1] > 100
    assert len(set(names["loss"])) == 1, "the loss of a step is no leak"
    assert "fine" not in names
    assert all(" at test_doctor_probe.py:" in name for name in frames.dump()["graphs"])


def test_looking_keeps_nothing_alive() -> None:
    frames = Frames()

    def step() -> Any:
        batch = graph()
        frames.look()
        gone = weakref.ref(batch)
        del batch
        gc.collect()
        return gone()

    assert step() is None


def test_graphs_without_backward() -> None:
    frames = Frames()
    for _ in range(4):
        out = graph()
        frames.look()
    assert (frames.looks, frames.without_backward) == (4, 4)
    with torch.inference_mode():
        out = torch.ones(2)  # noqa: F841
        frames.look()
    assert frames.without_backward == 4


def test_the_model_is_found() -> None:
    frames = Frames()

    def step(model: Any) -> None:
        frames.look()
        assert model is not None

    step(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.Linear(4, 2)).to(memory_format=torch.channels_last))
    assert frames.model["name"] == "Sequential" and frames.model["convolutions"] == 1
    assert frames.model["parameters"] == 26 and not frames.model["half"]


def test_a_window_times_calls_that_wait_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    item = torch.Tensor.item

    def slow(tensor: Any) -> Any:
        time.sleep(0.001)
        return item(tensor)

    slow.__name__ = "item"
    monkeypatch.setattr(torch.Tensor, "item", slow)
    before = dict(vars(torch.Tensor)), torch.cuda.synchronize
    looks, loop, one = Looks(), Loop(dict(ABOUT)), torch.ones(())
    for _ in range(40):
        loop.steps += 1
        looks.entered()
        looks.step(loop)
        loop.looked(loop.steps)
        assert one.item() == 1.0
    assert (dict(vars(torch.Tensor)), torch.cuda.synchronize) == before
    seen = looks.dump()
    assert seen["look"]["steps"] == WINDOW_STEPS
    assert seen["look"]["waited_ns"] >= WINDOW_STEPS * 1_000_000
    assert 0 < seen["look"]["after_ns"] < seen["look"]["ns"]
    (line, took), *_ = seen["lines"]["waits"]
    assert ":" in line and line.split("/")[-1].startswith("test_doctor_probe.py") and took > 0


def test_a_window_that_is_open_at_the_end_is_closed() -> None:
    before = dict(vars(torch.Tensor))
    looks, loop = Looks(), Loop(dict(ABOUT))
    loop.steps = 21
    looks.step(loop)
    assert dict(vars(torch.Tensor)) != before
    looks.close()
    assert dict(vars(torch.Tensor)) == before


def test_the_gpus_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop waits 15 ms of 20 in next; the GPU is busy 20 of 20, and then, with less work, idle 10."""
    for work, idle in ((0.020, 0.0), (0.010, 0.010)):
        clock = SimClock()
        gpu: Any = SimGpu(clock)
        stream = Stream()
        stream.gpu = gpu
        current = SimpleNamespace(query=lambda gpu=gpu, clock=clock: clock.now >= gpu.free_at)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda current=current: current)
        rows = []
        for step in range(20):
            stream.enter()
            clock.spend(0.015)
            row = Row(15_000_000, 20_000_000, 1, 0, False)
            rows.append(row)
            stream.leave(row, step)
            gpu.launch(work, 0)
            clock.spend(0.005)
        gpu.synchronize()
        stream.settle()
        late = rows[5:]
        assert stream.unknown == ""
        assert all(row.idle_ns == pytest.approx(idle * 1e9, abs=2) for row in late)
        assert all(row.gpu_ns == pytest.approx(20e6, abs=2) for row in late)
        assert all(row.dry == (work < 0.005) for row in late)


def test_further_streams_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimClock()
    gpu: Any = SimGpu(clock)
    gpu.other_work = "the program uses further streams"
    stream = Stream()
    stream.gpu = gpu
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(query=lambda: True))
    for step in range(10):
        stream.enter()
        clock.spend(0.01)
        stream.leave(Row(1, 2, 0, 0, False), step)
    stream.settle()
    assert stream.unknown == "the program uses further streams"


class Iterator:
    """As much of a DataLoader's iterator as the queue needs."""

    def __init__(self) -> None:
        self._task_info: dict[int, Any] = {0: (0,), 1: (0, "batch"), 2: (0,)}
        self.size = 0
        self._data_queue = SimpleNamespace(qsize=self.fill)

    def fill(self) -> int:
        self.size += 1
        return min(self.size, 2)


def test_a_burst_waits_until_the_queue_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loops.queue(Iterator()) == (2, 1), "one in the queue, one behind a batch that is not there"
    assert loops.queue(object()) == (-1, 0)
    slept: list[float] = []
    monkeypatch.setattr(loops, "sleep", slept.append)
    loop = Loop(dict(ABOUT))
    loop.steps = 30
    loop.begin(1)
    iterator = Iterator()
    assert loop.enter(iterator)[1] == 3
    assert iterator.size >= 2 and loop.dump()["steps"] == 30
