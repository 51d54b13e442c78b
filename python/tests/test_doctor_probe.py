"""What the doctor's probe sees inside a script: frames, timed calls, the GPU's clock; and that it lets go."""

from __future__ import annotations

import gc
import os
import time
import weakref
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from sim_gpu import SimClock, SimGpu

from feedwater._meter.idle import Meter
from feedwater._meter.marks import Marks
from feedwater.doctor.probe import backward, loaders, proc
from feedwater.doctor.probe import loop as loops
from feedwater.doctor.probe.frames import Frames
from feedwater.doctor.probe.looks import WINDOW_STEPS, Looks
from feedwater.doctor.probe.loop import Loop
from feedwater.doctor.probe.stream import Row, Stream

torch = pytest.importorskip("torch")

ABOUT = {"workers": 1, "prefetch": 2, "iterable": False}


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
        frames.look_around()
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
        frames.look_around()
        gone = weakref.ref(batch)
        del batch
        gc.collect()
        return gone()

    assert step() is None


def test_graphs_without_backward() -> None:
    frames = Frames()
    out = graph()
    assert frames.look_around()
    with torch.no_grad():
        assert not frames.look_around()
    kept = [graph()]
    frames.begin_pass()
    assert not frames.look_around(), "what training left behind"
    out = graph()
    assert frames.look_around()
    out = None  # noqa: F841
    assert not frames.look_around()
    kept.append(graph())
    assert frames.look_around()


def test_passes_without_backward() -> None:
    loop, frames, looked = Loop(dict(ABOUT)), Frames(), []
    for trains in (True, False):
        loop.begin_pass(1)
        loss = graph()
        if trains:
            loss.backward()
            backward.passes[0] += 1
        loop.look_at_frames(frames.look_around)
        looked.append((loop.frames, loop.without_backward))
    assert looked == [(1, 0), (2, 1)]


class LossMeter:
    """As scripts have them."""

    def __init__(self) -> None:
        self.sum: Any = 0.0


def test_a_graph_that_grows_in_a_meter_is_named() -> None:
    frames = Frames()
    meter, sums = LossMeter(), {"loss": torch.zeros(())}
    for _ in range(5):
        for _ in range(20):
            loss = graph()
            meter.sum += loss
            sums["loss"] = sums["loss"] + loss
        frames.look_around()
    grown = {name.split(" at ")[0] for name, sizes in frames.dump()["graphs"].items() if sizes[-1] > 100}
    assert grown == {"meter.sum", "sums['loss']"}


def test_the_gpu_rests_until_the_first_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop waits for the GPU at the end of a step, and computes at the beginning of the next before it copies."""
    item = torch.Tensor.item

    def slow(tensor: Any) -> Any:
        time.sleep(0.001)
        return item(tensor)

    slow.__name__ = "item"
    monkeypatch.setattr(torch.Tensor, "item", slow)
    monkeypatch.setattr(torch.Tensor, "to", to := (lambda tensor, *args: tensor))
    to.__name__ = "to"
    looks, loop, one = Looks(), Loop(dict(ABOUT)), torch.ones(())
    loop.stream.meter._marks = Marks(SimpleNamespace(record_mark=lambda *_: None))  # type: ignore[arg-type]
    loop.steps = 21
    looks.note_step(loop)
    for computes in (0.0, 0.005):
        one.item()
        looks.note_entry()
        looks.note_step(loop)
        before = looks.seen["after_ns"]
        time.sleep(computes)
        one.to("cuda")
        one.to("cuda")
        assert looks.seen["after_ns"] - before >= computes * 1e9
    after = looks.seen["after_ns"]
    looks.note_entry()
    looks.note_step(loop)
    one.to("cuda")
    assert looks.seen["after_ns"] == after, "nothing was waited for"
    looks.close_window()


def test_steps_between_close_looks_are_counted() -> None:
    loop = Loop({**ABOUT, "workers": 2})
    close, now = [], 0
    while loop.steps < 400:
        now += 20_000_000
        if loop.steps >= loop.look_by or now >= loop.look_at:
            close.append(loop.steps)
            loop.leave_next(loop.enter_next(None), None)
            loop.end_look(now)
        else:
            loop.count_step(now - 1000, now)
    rows = loop.dump()["rows"]
    assert close[:12] == list(range(12)) and set(range(30, 200, 20)) <= set(close), "the first, and where bursts are"
    assert 60 < len(close) < 100 and len(rows) > 380
    assert sum(len(row) > 2 for row in rows) > 50, "those that were looked at are not crowded out"
    assert len({step % 4 for step in close[20:]}) == 4, "not always the same step of a cycle"


def test_the_model_is_found() -> None:
    frames = Frames()

    def step(model: Any) -> None:
        frames.look_around()
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
    loop.stream.meter._marks = Marks(SimpleNamespace())  # type: ignore[arg-type]
    for _ in range(40):
        loop.steps += 1
        looks.note_entry()
        looks.note_step(loop)
        loop.end_look(loop.steps)
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
    looks.note_step(loop)
    assert dict(vars(torch.Tensor)) == before, "there is no GPU to wait for"
    loop.stream.meter._marks = Marks(SimpleNamespace())  # type: ignore[arg-type]
    looks.note_step(loop)
    assert dict(vars(torch.Tensor)) != before
    looks.close_window()
    assert dict(vars(torch.Tensor)) == before


def test_the_gpus_clock() -> None:
    """The loop waits 15 ms of 20 in next; the GPU is busy 20 of 20, and then, with less work, idle 10."""
    for work, idle in ((0.020, 0.0), (0.010, 0.010)):
        clock = SimClock()
        gpu: Any = SimGpu(clock)
        stream = Stream(Meter(lambda gpu=gpu: gpu, closely=True))
        rows = []
        for step in range(20):
            stream.enter_next()
            clock.spend(0.015)
            row = Row(15_000_000, 20_000_000, 1, 0, False)
            rows.append(row)
            stream.leave_next(row, step)
            gpu.launch(work, 0)
            clock.spend(0.005)
        gpu.synchronize()
        stream.read_marks()
        late = rows[5:]
        assert stream.unknown == ""
        assert all(row.idle_ns == pytest.approx(idle * 1e9, abs=2) for row in late)
        assert all(row.gpu_ns == pytest.approx(20e6, abs=2) for row in late)
        assert all(row.dry == (work < 0.005) for row in late)


def test_further_streams_are_measured_but_those_of_other_libraries() -> None:
    for foreign in (False, True):
        clock = SimClock()
        gpu: Any = SimGpu(clock)
        if foreign:
            gpu.foreign.add((0, 9))
        stream = Stream(Meter(lambda gpu=gpu: gpu, closely=True))
        for step in range(20):
            stream.enter_next()
            clock.spend(0.01)
            row = Row(10_000_000, 20_000_000, 0, 0, False)
            stream.leave_next(row, step)
            gpu.launch(0.01)
            gpu.read_loss()
            gpu.launch(0.004, stream=(0, 9))
        gpu.synchronize()
        stream.read_marks()
        assert stream.unknown == ("the program works on a stream that torch did not make" if foreign else "")
        assert row.idle_ns == (None if foreign else pytest.approx(6e6, rel=0.01))


class Iterator:
    """As much of a DataLoader's iterator as the queue needs."""

    def __init__(self) -> None:
        self._task_info: dict[int, Any] = {0: (0,), 1: (0, "batch"), 2: (0,)}
        self.size = 0
        self._data_queue = SimpleNamespace(qsize=self.fill)

    def fill(self) -> int:
        self.size += 1
        return min(self.size, 2)


def test_a_function_that_asks_for_its_names_keeps_them() -> None:
    frames = Frames()
    loss = torch.ones(1, requires_grad=True) * 2
    names = locals()
    frames.begin_pass()
    frames.look_around()
    assert names["loss"] is loss


def test_batches_and_samplers_that_answer_to_any_name() -> None:
    class Anything(dict[str, Any]):
        __getattr__ = dict.get

    assert loops.count_bytes(Anything(x=torch.zeros(3))) == 12 and loops.first_shape(Anything(x=torch.zeros(3))) == (3,)
    sampler = torch.utils.data.BatchSampler(range(9), 4, drop_last=False)
    sampler.batch_size = [4, 2]  # type: ignore[assignment]
    about = loaders.describe_loader(torch.utils.data.DataLoader(Slow(), batch_sampler=sampler))
    assert about["batch_size"] == 0 and not about["iterable"]


def test_whose_collate_fn_it_is() -> None:
    def made(**arguments: Any) -> Any:
        return loaders.describe_loader(torch.utils.data.DataLoader(Slow(), **arguments))["own_collate"]

    assert not made() and not made(batch_size=None) and not made(collate_fn=torch.utils.data.default_collate)
    assert not made(collate_fn=partial(torch.utils.data.default_collate))
    assert made(collate_fn=list) and made(collate_fn=lambda samples: torch.utils.data.default_collate(samples))


def test_a_burst_waits_until_the_queue_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loops.count_queue(Iterator()) == (2, 1), "one in the queue, one behind a batch that is not there"
    assert loops.count_queue(object()) == (-1, 0)
    slept: list[float] = []
    monkeypatch.setattr(loops, "sleep", slept.append)
    loop = Loop(dict(ABOUT))
    loop.steps = 30
    loop.begin_pass(1)
    iterator = Iterator()
    assert loop.enter_next(iterator)[1] == 3
    assert iterator.size >= 2 and loop.dump()["steps"] == 30


class Slow(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Samples that say when they were begun; a loop waits for them."""

    def __len__(self) -> int:
        return 200

    def __getitem__(self, i: int) -> tuple[int, float]:
        began = time.monotonic()
        time.sleep(0.004)
        return i, began


def watched(loop: Loop, batches: Any, times: int) -> list[tuple[int, float, bool]]:
    """Index and beginning of so many samples, and whether workers were at rest when next had returned them."""
    seen = []
    for _ in range(times):
        entered = loop.enter_next(batches)
        index, began = next(batches)
        loop.leave_next(entered, None)
        seen.append((int(index), float(began), loop._hold is not None))
    return seen


def resting(*, persistent: bool) -> tuple[Loop, Any]:
    """A loop that waits for two workers, and its loader."""
    loader = torch.utils.data.DataLoader(Slow(), num_workers=2, persistent_workers=persistent)
    return Loop({**ABOUT, "workers": 2}), loader


def test_workers_rest_while_steps_with_data_ready_are_watched() -> None:
    loop, loader = resting(persistent=False)
    batches = iter(loader)
    loop.begin_pass(1)
    seen = watched(loop, batches, 30)
    assert not any(rests for *_, rests in seen), "no burst yet"
    entered = loop.enter_next(batches)
    held = time.monotonic()
    seen += [(*map(float, next(batches)), True)]  # type: ignore[list-item]
    loop.leave_next(entered, None)
    seen += watched(loop, batches, 3)
    released = time.monotonic()
    assert [rests for *_, rests in seen[30:]] == [True, True, True, False]
    rest = watched(loop, batches, 150)
    assert [index for index, *_ in seen + rest] == list(range(184)), "all of them, in order"
    assert not any(held < began < released - 0.001 for _, began, _ in rest), "a worker began while they were to rest"
    assert loop.dump()["held_ns"] > 0


@pytest.mark.parametrize(("queued", "rests"), [(0.1, False), (0.3, True)])
def test_workers_rest_where_the_loop_has_no_core(monkeypatch: pytest.MonkeyPatch, queued: float, rests: bool) -> None:
    monkeypatch.setattr(loops.proc, "main_queueing_ns", lambda: int(queued * time.perf_counter_ns()))
    loop, loader = resting(persistent=False)
    batches = iter(loader)
    loop.begin_pass(1)
    loop.steps = 29
    loop._waited_ns, loop._took_ns = 0, 10
    watched(loop, batches, 2)
    assert (loop._hold is not None) is rests
    loop.release_workers()
    assert len([*batches]) == 198


@pytest.mark.parametrize("persistent", [False, True])
def test_a_pass_that_is_broken_off_while_workers_rest(persistent: bool) -> None:
    loop, loader = resting(persistent=persistent)
    for _ in range(2):
        batches = iter(loader)
        loop.begin_pass(1)
        loop.steps = 29
        loop._waited_ns, loop._took_ns = 9, 10
        watched(loop, batches, 3)
        assert loop._hold is not None
    loop.release_workers()
    assert [int(index) for index, _ in batches] == list(range(3, 200))


def test_the_last_batches_of_a_pass_are_not_waited_for_at_rest() -> None:
    loop, loader = resting(persistent=False)
    batches = iter(loader)
    loop.begin_pass(1)
    watched(loop, batches, 197)
    loop.steps = 30
    assert [index for index, *_ in watched(loop, batches, 3)] == [197, 198, 199]
    assert next(batches, None) is None


def test_steps_that_refill_the_queue_are_not_counted() -> None:
    loop, loader = resting(persistent=False)
    batches = iter(loader)
    loop.begin_pass(1)
    watched(loop, batches, 34)
    rows = len(loop.dump()["rows"])
    watched(loop, batches, 4)
    assert len(loop.dump()["rows"]) == rows
    watched(loop, batches, 1)
    assert len(loop.dump()["rows"]) == rows + 1


STAT = """\
cpu  100 0 50 800 40 5 5 0 0 0
cpu1 10 0 0 80 10 0 0 0 0 0
cpu2 20 0 0 70 10 0 0 0 0 0
cpu12 60 0 0 20 20 0 0 0 0 0
intr 1 2 3
"""


@pytest.mark.parametrize(
    ("cores", "busy", "idle"),
    [([1], 10, 80), ([1, 2], 30, 150), ([2, 12, 40], 80, 90), ([40], 160, 800), ([], 160, 800)],
)
def test_what_other_cores_do_does_not_count(
    monkeypatch: pytest.MonkeyPatch, cores: list[int], busy: float, idle: float
) -> None:
    """Those of a job that is bound to some; where the kernel hides them it is all."""
    monkeypatch.setattr(proc, "read_text", lambda path: STAT if path == "/proc/stat" else "")
    monkeypatch.setattr(proc, "network_bytes", lambda: 0)
    ticks = os.sysconf("SC_CLK_TCK")
    read = proc.read_machine(cores)
    assert (read["busy_s"] * ticks, read["idle_s"] * ticks) == pytest.approx((busy, idle))


def test_a_machine_that_tells_nothing_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "read_text", lambda path: "")
    monkeypatch.setattr(proc, "network_bytes", lambda: 0)
    assert set(proc.read_machine([0]).values()) == {0}
