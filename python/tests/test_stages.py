"""The stage table: on a clock moved by hand, with real torch modules, loaders and optimizers."""

from __future__ import annotations

import copy
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sim_gpu import SimClock, SimGpu

import feedwater
import feedwater._meter.gpu_events
import feedwater._stages.timeline
from feedwater._stages.hooks import _goes_elsewhere
from feedwater._stages.timeline import Host

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

MS = 1e-3


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimClock:
    clock = SimClock()
    monkeypatch.setattr(feedwater._stages.timeline, "perf_counter", clock)
    return clock


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Whatever a test does, torch is afterwards as it was."""
    before = taps()
    yield
    assert taps() == before


def taps() -> list[Any]:
    module, loaders = sys.modules["torch.nn.modules.module"], sys.modules["torch.utils.data.dataloader"]
    optimizers = sys.modules["torch.optim.optimizer"]
    return [
        torch.autograd.backward,
        "to" in vars(torch.Tensor),
        "cuda" in vars(torch.Tensor),
        loaders.DataLoader.__iter__,
        loaders._BaseDataLoaderIter.__next__,
        feedwater._pass.Pass.__next__,
        module._has_any_global_hook(),
        len(optimizers._global_optimizer_pre_hooks) + len(optimizers._global_optimizer_post_hooks),
    ]


class Data(Dataset):  # type: ignore[type-arg]
    """Samples that take so long each."""

    def __init__(self, clock: SimClock, seconds: float, number: int = 20) -> None:
        self.clock, self.seconds, self.number = clock, seconds, number

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> Any:
        self.clock.spend(self.seconds)
        return torch.ones(4)


def loader(clock: SimClock, seconds: float, number: int = 20) -> Any:
    return DataLoader(Data(clock, seconds, number), batch_size=None)


class Work(torch.autograd.Function):
    """Takes time forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Any, clock: SimClock, forward: float, backward: float) -> Any:
        ctx.clock, ctx.seconds = clock, backward
        clock.spend(forward)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        ctx.clock.spend(ctx.seconds)
        return grad * 2, None, None, None


class Model(nn.Module):
    def __init__(self, clock: SimClock, forward: float = 3 * MS, backward: float = 5 * MS) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 1)
        self.clock, self.seconds = clock, (forward, backward)
        self.failing = False

    def forward(self, x: Any) -> Any:
        y = Work.apply(self.inner(x), self.clock, *self.seconds)
        if self.failing:
            raise ZeroDivisionError
        return y


class Optimizer(torch.optim.SGD):
    """Takes 2 ms."""

    def __init__(self, model: Any, clock: SimClock, failing: bool = False) -> None:
        super().__init__(model.parameters(), lr=0.001)
        self.clock, self.failing = clock, failing

    def step(self, closure: Any = None) -> Any:
        self.clock.spend(2 * MS)
        if self.failing:
            raise ZeroDivisionError
        return super().step(closure)


def train(clock: SimClock, model: Any, optimizer: Any, batch: Any) -> None:
    """3 + 1 + 5 + 2 ms: forward, other, backward, optimizer."""
    loss = model(batch).sum()
    clock.spend(1 * MS)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def means(stages: Any) -> dict[str, float]:
    """Milliseconds per stage, those that are not 0."""
    return {row.stage: round(row.mean_s * 1e3, 6) for row in stages.rows() if row.mean_s}


WHOLE = {"data wait": 4.0, "forward": 3.0, "backward": 5.0, "optimizer": 2.0, "other": 1.0, "step": 15.0}


@pytest.mark.parametrize("given", [True, False])
def test_every_stage_gets_its_time(clock: SimClock, given: bool) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    data = loader(clock, 4 * MS)
    with feedwater.stages(*((model, optimizer) if given else ())) as s:
        for _ in range(2):
            for batch in data:
                train(clock, model, optimizer, batch)
            clock.spend(100)  # between two passes
    assert means(s) == WHOLE
    assert s.wait_s == pytest.approx(4 * MS)
    table = s.to_dict()
    assert json.loads(json.dumps(table)) == table
    assert (table["clock"], table["left_out"]) == ("host", {"warm-up": 1 if given else 4})
    assert table["steps"] == s.steps == 40 - (1 if given else 4)
    assert table["stages"]["backward"] == pytest.approx(
        {"mean_s": 5 * MS, "p50_s": 5 * MS, "p99_s": 5 * MS, "share": 1 / 3}
    )
    assert not table["notes"]


def test_the_table(clock: SimClock) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    with feedwater.stages(model, optimizer) as s:
        assert "no whole step" in str(s) and s.rows() == [] and s.to_dict()["step"] is None
        data = loader(clock, 4 * MS, 101)
        for step, batch in enumerate(data):
            train(clock, model, optimizer, batch)
            clock.spend(85 * MS if step == 50 else 0)
    assert str(s).splitlines() == [
        "stage              mean ms    p50 ms    p99 ms    share",
        "data wait             4.00      4.00      4.00    25.2%",
        "host-to-device        0.00      0.00      0.00     0.0%",
        "forward               3.00      3.00      3.00    18.9%",
        "backward              5.00      5.00      5.00    31.5%",
        "optimizer             2.00      2.00      2.00    12.6%",
        "other                 1.85      1.00      1.85    11.7%",
        "step                 15.85     15.00     15.85   100.0%",
        "100 steps by the host's clock, blocked in next 4.00 ms a step; left out: 1 warm-up",
    ]


def test_our_loader(fake: Any, clock: SimClock, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    data = fake.loader()
    take = data._engine.feed.take_batch
    monkeypatch.setattr(data._engine.feed, "take_batch", lambda *a: clock.spend(4 * MS) or take(*a))
    with feedwater.stages(model, optimizer) as s:
        for _ in range(2):
            for _ in data:
                train(clock, model, optimizer, torch.ones(4))
            clock.spend(100)
        for _ in DataLoader(feedwater.RemoteDataset(data), batch_size=None):
            train(clock, model, optimizer, torch.ones(4))
    assert means(s) == WHOLE
    assert s.steps == 2 * len(data) - 1
    assert [dict(loop.left_out) for loop in s._timeline.loops] == [{"warm-up": 1}] * 2


def test_worker_processes_and_persistent_ones(clock: SimClock) -> None:
    data = DataLoader(Data(clock, 0), batch_size=4, num_workers=1, persistent_workers=True)
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    with feedwater.stages(model, optimizer) as s:
        for _ in range(2):
            for batch in data:
                train(clock, model, optimizer, batch)
            clock.spend(100)
        for batch in data:  # broken off: no step is as long as what comes after it
            train(clock, model, optimizer, batch)
            break
        clock.spend(100)
        for batch in data:
            train(clock, model, optimizer, batch)
    assert means(s) == {"forward": 3.0, "backward": 5.0, "optimizer": 2.0, "other": 1.0, "step": 11.0}
    assert s.steps == 14


# -- the GPU's clock ---------------------------------------------------------------------------------------------------


def test_by_the_gpus_clock(clock: SimClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Submitting takes 1 ms; a wait of 25 ms in which the GPU has 9 ms of work left costs 16."""
    gpu = SimGpu(clock)
    monkeypatch.setattr(feedwater._meter.gpu_events, "find_gpu", lambda: gpu)
    model, host = Model(SimClock()), SimClock()
    optimizer = Optimizer(model, host)
    model.register_forward_hook(lambda *_: gpu.launch(3 * MS, 0))
    for spend in (model.clock, host):
        monkeypatch.setattr(spend, "spend", lambda seconds: gpu.launch(seconds, 0))
    model.seconds = (0, 5 * MS)
    with feedwater.stages(model, optimizer) as s:
        for batch in loader(clock, 25 * MS):
            train(clock, model, optimizer, batch)
    assert s.clock == "gpu"
    gpu.synchronize()
    assert means(s) == {"data wait": 16.0, "forward": 3.0, "backward": 5.0, "optimizer": 2.0, "step": 26.0}
    assert s.wait_s == pytest.approx(25 * MS)


@pytest.mark.parametrize("pinned", [False, True])
def test_a_copy_by_the_gpus_clock(clock: SimClock, monkeypatch: pytest.MonkeyPatch, pinned: bool) -> None:
    """6 ms in the stream. From pageable memory the host waits for the 3 ms of work before it, which are no copy."""
    gpu = SimGpu(clock)
    monkeypatch.setattr(feedwater._meter.gpu_events, "find_gpu", lambda: gpu)
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *_: gpu.copy(6 * MS, pinned=pinned) or tensor)
    with feedwater.stages(Model(clock)) as s:
        for batch in loader(clock, 4 * MS):
            gpu.launch(3 * MS, 0)
            batch.to("cuda")
            gpu.launch(10 * MS, 0)
    gpu.synchronize()
    assert {name: ms for name, ms in means(s).items() if name != "data wait"} == pytest.approx(
        {"host-to-device": 6.0, "other": 13.0, "step": 19.0 + means(s).get("data wait", 0)}, abs=0.02
    )


def test_a_gpu_that_comes_into_use_later_takes_over(clock: SimClock, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = SimGpu(clock)
    present: list[Any] = [None]
    monkeypatch.setattr(feedwater._meter.gpu_events, "find_gpu", lambda: present[0])
    with feedwater.stages(Model(clock)) as s:
        for step, _ in enumerate(loader(clock, 4 * MS)):
            gpu.launch(1 * MS)
            assert s.clock == ("gpu" if step > 7 else "host")
            if step == 7:
                present[0] = gpu
    gpu.synchronize()
    assert s.steps == 20 - 8 - 1


def test_work_on_another_stream_counts_where_it_is_waited_for(clock: SimClock, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = SimGpu(clock)
    monkeypatch.setattr(feedwater._meter.gpu_events, "find_gpu", lambda: gpu)
    model = Model(clock)
    with feedwater.stages(model) as s:
        for batch in loader(clock, 4 * MS):
            gpu.place = (0, 7)
            model(batch)
            gpu.place = (0, 0)
        gpu.launch(0.001, stream=(0, 9))
    assert means(s) == {"data wait": 4.0, "other": 3.0, "step": 7.0}
    assert "counts where the loop's stream waits for it" in str(s)
    assert "the program uses further streams" in str(s)


def test_a_loop_that_changes_streams_is_not_counted(clock: SimClock, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = SimGpu(clock)
    monkeypatch.setattr(feedwater._meter.gpu_events, "find_gpu", lambda: gpu)
    with feedwater.stages(Model(clock)) as s:
        for step, _ in enumerate(loader(clock, 4 * MS)):
            gpu.place = (0, step % 2)
    assert s.steps == 0
    assert s.to_dict()["left_out"] == {"warm-up": 1, "on several streams or GPUs": 19}


def test_events_that_fail_end_the_measuring_and_not_the_training(
    clock: SimClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("no timing here")

    for name in ("mark", "until", "none"):
        gpu = SimGpu(clock)
        monkeypatch.setattr(feedwater._meter.gpu_events, "find_gpu", lambda gpu=gpu: gpu)
        model = Model(clock)
        if name == "mark":
            monkeypatch.setattr(gpu, "record_mark", fail)
        if name == "none":  # a CUDA graph is being captured all the time
            monkeypatch.setattr(gpu, "record_mark", lambda *_: None)
        with monkeypatch.context() as patch, feedwater.stages(model) as s:
            if name == "until":
                patch.setattr("sim_gpu.SimMark.until", fail)
            for batch in loader(clock, 4 * MS):
                model(batch).sum().backward()
            assert s.steps == 0
            assert ("no timing here" in str(s)) == (name != "none")


# -- loops of all kinds ------------------------------------------------------------------------------------------------


def test_evaluation_inside_and_between(clock: SimClock) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    data, held_out = loader(clock, 4 * MS), loader(clock, 50 * MS, 7)
    with feedwater.stages() as s:
        for epoch in range(3):
            for step, batch in enumerate(data):
                train(clock, model, optimizer, batch)
                if step == 9 and epoch:
                    with torch.no_grad():
                        for held in held_out:
                            model(held)
            for held in held_out:
                model(held)
    assert means(s) == WHOLE
    left_out = s.to_dict()["left_out"]
    assert left_out == {"with another loop inside": 2, "warm-up": 4} and s.steps == 54
    assert "evaluation" in str(s)


def test_loops_in_a_loop_show_the_inner_one(clock: SimClock) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    with feedwater.stages(model, optimizer) as s:
        inner = loader(clock, 4 * MS, 8)
        for _ in loader(clock, 30 * MS, 5):
            for batch in inner:
                train(clock, model, optimizer, batch)
    assert means(s) == WHOLE and s.steps == 39


def test_two_loaders_in_one_step_are_one_wait(clock: SimClock) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    with feedwater.stages(model, optimizer) as s:
        for batch, _ in zip(loader(clock, 3 * MS), loader(clock, 1 * MS)):
            train(clock, model, optimizer, batch)
    assert means(s) == WHOLE and s.steps == 19 and not s.to_dict()["notes"]


def test_a_loop_that_begins_anew_after_a_break(clock: SimClock) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    data = loader(clock, 4 * MS)
    with feedwater.stages(model, optimizer) as s:
        for _ in range(4):
            for step, batch in enumerate(data):
                if step == 10:
                    break
                train(clock, model, optimizer, batch)
            clock.spend(100)
    assert means(s) == WHOLE and s.steps == 39


def test_a_loop_that_was_under_way(clock: SimClock) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    it = iter(loader(clock, 4 * MS))
    with feedwater.stages(model, optimizer) as s:
        for _ in range(5):
            train(clock, model, optimizer, next(it))
    clock.spend(100)
    train(clock, model, optimizer, next(it))
    with s:
        for batch in it:
            train(clock, model, optimizer, batch)
    assert means(s) == WHOLE and s.steps == 4 - 1 + 14


def test_gradient_accumulation(clock: SimClock) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    with feedwater.stages(model, optimizer) as s:
        for step, batch in enumerate(loader(clock, 4 * MS, 41)):
            model(batch).sum().backward()
            if step % 4 == 3:
                optimizer.step()
    rows = {row.stage: row for row in s.rows()}
    assert rows["optimizer"].mean_s == pytest.approx(0.5 * MS) and rows["optimizer"].p50_s == 0
    assert rows["optimizer"].p99_s == pytest.approx(2 * MS)


def test_several_models_and_optimizers(clock: SimClock) -> None:
    for given in (True, False):
        one, two, loss = Model(clock), Model(clock, 7 * MS, 11 * MS), nn.MSELoss()
        loss.register_forward_hook(lambda *_: clock.spend(1 * MS))
        optimizers = [Optimizer(one, clock), Optimizer(two, clock)]
        with feedwater.stages(*([[one, two], optimizers] if given else [])) as s:
            for batch in loader(clock, 4 * MS):
                for model, optimizer in zip((one, two), optimizers):
                    loss(model(batch), torch.zeros(1)).backward()
                    optimizer.step()
        assert means(s) == {
            "data wait": 4.0,
            "forward": 10.0,
            "backward": 16.0,
            "optimizer": 4.0,
            "other": 2.0,
            "step": 36.0,
        }


def test_what_is_not_given_is_other(clock: SimClock) -> None:
    one, two = Model(clock), Model(clock)
    with feedwater.stages(one, Optimizer(one, clock)) as s:
        other = Optimizer(two, clock)
        for batch in loader(clock, 4 * MS):
            two(one(batch).expand(4)).sum().backward()
            other.step()
    assert means(s) == {"data wait": 4.0, "forward": 3.0, "backward": 10.0, "other": 5.0, "step": 22.0}


def test_a_module_that_comes_late_is_other_and_no_model_is_said(clock: SimClock) -> None:
    with feedwater.stages() as s:
        for _ in loader(clock, 4 * MS):
            clock.spend(3 * MS)
    assert means(s) == {} or "no model was seen" in str(s)
    first, late = Model(clock), Model(clock)
    with feedwater.stages() as s:
        for step, batch in enumerate(loader(clock, 4 * MS)):
            first(batch)
            if step > 8:
                late(batch)
    assert means(s)["forward"] == 3.0 and means(s)["other"] > 0


def test_modules_that_are_transforms_of_samples_are_data(clock: SimClock) -> None:
    class Transformed(Data):
        def __getitem__(self, index: int) -> Any:
            return transform(super().__getitem__(index)).detach()

    transform, model = Model(clock), Model(clock)
    with feedwater.stages() as s:
        for _ in DataLoader(Transformed(clock, 1 * MS), batch_size=None):
            model(torch.ones(4))
    assert means(s) == {"data wait": 4.0, "forward": 3.0, "step": 7.0}


def test_a_closure_and_recomputation(clock: SimClock) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    with feedwater.stages(model, optimizer) as s:
        for batch in loader(clock, 4 * MS):

            def closure(batch: Any = batch) -> Any:
                loss = checkpoint(model, batch.requires_grad_(), use_reentrant=True).sum()
                loss.backward()
                return loss

            optimizer.step(closure)
    assert means(s) == {"data wait": 4.0, "forward": 3.0, "backward": 8.0, "optimizer": 2.0, "step": 17.0}


# -- faults ------------------------------------------------------------------------------------------------------------


def test_exceptions_that_the_program_catches(clock: SimClock) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    bad = Work.backward

    def fail(ctx: Any, grad: Any) -> Any:
        clock.spend(5 * MS)
        raise ZeroDivisionError

    with feedwater.stages(model, optimizer) as s:
        for step, batch in enumerate(loader(clock, 4 * MS, 40)):
            model.failing, optimizer.failing = step == 10, step == 20
            Work.backward = staticmethod(fail if step == 30 else bad)  # type: ignore[method-assign]
            try:
                train(clock, model, optimizer, batch)
            except ZeroDivisionError:
                clock.spend(1000)
    rows = {row.stage: row for row in s.rows()}
    assert s.to_dict()["left_out"] == {"warm-up": 1, "broken off inside a stage": 1}, "the optimizer's"
    assert rows["forward"].mean_s == pytest.approx(3 * MS)
    assert rows["optimizer"].p99_s <= 2.001 * MS and rows["backward"].p99_s <= 5.001 * MS
    assert rows["other"].mean_s * s.steps == pytest.approx(2000 + (s.steps - 1) * MS, rel=1e-6)
    assert "an exception that was caught" in str(s)


def test_an_exception_that_ends_the_loop_or_comes_from_the_data(clock: SimClock) -> None:
    class Broken(Data):
        def __getitem__(self, index: int) -> Any:
            if index == 7:
                raise OSError("unreadable")
            return super().__getitem__(index)

    model = Model(clock)
    optimizer = Optimizer(model, clock)
    with pytest.raises(OSError, match="unreadable"), feedwater.stages(model, optimizer) as s:
        for batch in DataLoader(Broken(clock, 4 * MS), batch_size=None):
            train(clock, model, optimizer, batch)
    assert means(s) == WHOLE and s.steps == 6
    assert not model._forward_hooks and not model._forward_pre_hooks


def test_other_threads_are_not_the_loop(clock: SimClock) -> None:
    model, other = Model(clock), Model(clock, 100 * MS, 100 * MS)
    optimizer = Optimizer(model, clock)

    def beside() -> None:
        for batch in loader(clock, 100 * MS, 1):
            other(batch).sum().backward()
            Optimizer(other, clock).step()

    with feedwater.stages([model, other]) as s:
        for batch in loader(clock, 4 * MS):
            train(clock, model, optimizer, batch)
            thread = threading.Thread(target=beside)
            thread.start()
            thread.join()
    assert means(s) == {**WHOLE, "other": 303.0, "step": 317.0}


def test_nothing_grows_where_no_loader_is_asked(clock: SimClock) -> None:
    model = Model(clock)
    with feedwater.stages(model) as s:
        for batch in loader(clock, 4 * MS):
            model(batch)
        for _ in range(3000):
            model(batch)
        assert len(s._timeline._marks) < 1000
    assert means(s) == {"data wait": 4.0, "forward": 3.0, "step": 7.0} and s.steps == 19


def test_forked_children_are_not_the_loop(clock: SimClock) -> None:
    model = Model(clock)
    with feedwater.stages(model) as s:
        for batch in loader(clock, 4 * MS, 2):
            model(batch)
        before = len(s._timeline._marks)
        child = os.fork()
        if not child:
            model(batch)
            os._exit(len(s._timeline._marks) - before)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_blocks_inside_blocks(clock: SimClock) -> None:
    model = Model(clock)
    optimizer = Optimizer(model, clock)
    with feedwater.stages(model, optimizer) as s, feedwater.stages() as t:
        with pytest.raises(feedwater.Error, match="measured already"), s:
            pass
        for batch in loader(clock, 4 * MS):
            train(clock, model, optimizer, batch)
    assert means(s) == means(t) == WHOLE


def test_models_are_copied_and_saved_with_their_hooks(clock: SimClock) -> None:
    model = nn.Linear(4, 1)
    with feedwater.stages(model) as s:
        for step, batch in enumerate(loader(clock, 4 * MS)):
            model(batch)
            if step == 3:
                average = copy.deepcopy(model)
                file = io.BytesIO()
                torch.save(model, file)
                file.seek(0)
                loaded = torch.load(file, weights_only=False)
    assert torch.equal(average(batch), model(batch)) and torch.equal(loaded(batch), model(batch))
    assert s.steps == 19


def test_training_is_the_same_measured_or_not(clock: SimClock) -> None:
    def trained(measured: bool) -> Any:
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 1))
        optimizer = torch.optim.AdamW(model.parameters())
        data = DataLoader(torch.randn(64, 4), batch_size=4, shuffle=True)
        with feedwater.stages() if measured else torch.enable_grad():
            for batch in data:
                model(batch).sum().backward()
                optimizer.step()
        return [*model.parameters(), torch.get_rng_state()]

    assert all(torch.equal(a, b) for a, b in zip(trained(True), trained(False)))


@pytest.mark.filterwarnings("ignore:Using .torch.compile")
@pytest.mark.parametrize("way", ["wrapped", "in place", "only the inside", "found"])
def test_compiled_models(clock: SimClock, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """One graph, no break; forward where it can be seen, other where it cannot."""
    torch._dynamo.reset()
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)

        def run(*args: Any) -> Any:
            clock.spend(3 * MS)
            return graph.forward(*args)

        return run

    inside = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    inside.register_forward_hook(lambda module, args, out: out.to(torch.float64))
    if way == "in place":
        model = inside
        model.compile(backend=backend, fullgraph=True)
    else:
        model = torch.compile(inside, backend=backend, fullgraph=True)
    given = {"wrapped": model, "in place": model, "only the inside": inside, "found": None}[way]
    with feedwater.stages(given) as s:
        for batch in loader(clock, 4 * MS):
            model(batch).sum().backward()
    seen = "other" if way == "only the inside" else "forward"
    assert means(s) == {"data wait": 4.0, seen: 3.0, "step": 7.0}
    assert len(graphs) <= (2 if way == "found" else 1)
    torch._dynamo.reset()


# -- copies to a device ------------------------------------------------------------------------------------------------


def test_copies_to_a_device_are_seen(clock: SimClock, monkeypatch: pytest.MonkeyPatch) -> None:
    with feedwater.stages(Model(clock)) as s:
        for batch in loader(clock, 4 * MS):
            with pytest.raises((RuntimeError, AssertionError)):
                batch.to("no such device")
            assert batch.to("meta").is_meta and batch.to(device="meta", dtype=torch.float64).is_meta
            assert batch.to(torch.float64).dtype == torch.float64
    assert s.steps == 19


@pytest.mark.parametrize(
    ("args", "kwargs", "there"),
    [
        (("cuda",), {}, True),
        (("cuda:1", torch.float16), {}, True),
        ((torch.device("cuda", 1),), {"non_blocking": True}, True),
        ((0,), {}, True),
        ((), {"device": "mps"}, True),
        ((torch.ones(1, device="meta"),), {}, True),
        ((), {"other": torch.ones(1, device="meta")}, True),
        (("cpu",), {}, False),
        ((torch.device("cpu"),), {}, False),
        ((torch.float16,), {}, False),
        ((torch.ones(1),), {}, False),
        ((), {"dtype": torch.float16}, False),
        ((), {"device": None}, False),
    ],
)
def test_where_a_copy_goes(args: Any, kwargs: Any, there: bool) -> None:
    assert _goes_elsewhere("to", args, kwargs) is there
    assert _goes_elsewhere("cuda", (), {})


def test_a_copy_takes_its_time(clock: SimClock, monkeypatch: pytest.MonkeyPatch) -> None:
    to = torch.Tensor.to
    monkeypatch.setattr(torch.Tensor, "to", lambda *a: clock.spend(6 * MS) or to(*a))
    before = torch.Tensor.to
    with feedwater.stages(Model(clock)) as s:
        for batch in loader(clock, 4 * MS):
            batch.to("meta")
            batch.to(torch.float64)
    assert torch.Tensor.to is before
    assert means(s) == {"data wait": 4.0, "host-to-device": 6.0, "other": 6.0, "step": 16.0}
    monkeypatch.undo()


# -- without torch -----------------------------------------------------------------------------------------------------

ALONE = """
import sys, feedwater
with feedwater.stages() as s:
    pass
print(s)
assert "torch" not in sys.modules
"""


def test_torch_is_not_imported() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "no whole step" in done.stdout


def test_the_hosts_clock_goes_on() -> None:
    clock = Host()
    first, second = clock.record_mark(), clock.record_mark()
    assert first.done() and first.until(second) >= 0 and not clock.find_streams(first.place).found
