"""The idle meter against a simulated GPU whose idle is known."""

from __future__ import annotations

import itertools
import random
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from sim_gpu import SimClock, SimGpu

import feedwater._device.runtime
import feedwater._meter.gpu_events
import feedwater._meter.pace
import feedwater._meter.pulse
import feedwater._stages.timeline
from feedwater._meter.gpu_events import FOREIGN, Cuda, Streams, find_gpu
from feedwater._meter.idle import Meter, Turn
from feedwater._meter.pace import Pace

MS = 1e-3


class Loop:
    """A training loop over a loader whose batches come late, or, with ready, never do."""

    def __init__(self, ready: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = SimClock()
        self.gpu = SimGpu(self.clock)
        monkeypatch.setattr(feedwater._meter.pace, "perf_counter", self.clock)
        self.pace = Pace(Meter(lambda: self.gpu))
        self.random = random.Random(1)
        self.steps = 0
        self._ready = ready

    def next(self, late: float, transform: float = 0) -> None:
        """A batch that comes so late; batch_transform takes so long."""
        entered = self.pace.enter_next()
        self.clock.spend(2e-6 if self._ready else late)
        if transform:
            self.pace.note_arrival()
            self.clock.spend(transform)
            self.pace.note_transform(transform)
        self.pace.leave_next(entered)
        self.steps += 1

    def end_pass(self) -> None:
        self.pace.enter_next()
        self.pace.end_pass()

    def finish(self) -> float:
        """When the GPU has done everything."""
        self.gpu.synchronize()
        self.pace.meter.read_marks()
        return self.clock.now


def fed(loop: Loop) -> None:
    for _ in range(200):
        loop.next(0.01 * MS)
        loop.gpu.kernels(20 * MS)


def blocked_but_busy(loop: Loop) -> None:
    """The host is far ahead of the GPU: waiting 15 ms of every 20 costs nothing."""
    for _ in range(200):
        loop.next(15 * MS)
        loop.gpu.kernels(20 * MS)


def starved(loop: Loop) -> None:
    for _ in range(200):
        loop.next(30 * MS)
        loop.gpu.kernels(20 * MS)


def item_each_step(loop: Loop) -> None:
    for _ in range(200):
        loop.next(7 * MS)
        loop.gpu.kernels(20 * MS)
        loop.gpu.synchronize()


def item_each_tenth_step(loop: Loop) -> None:
    for step in range(200):
        loop.next(12 * MS)
        loop.gpu.kernels(20 * MS)
        if step % 10 == 9:
            loop.gpu.synchronize()


def one_slow_batch_in_50(loop: Loop) -> None:
    for step in range(300):
        loop.next(400 * MS if step % 50 == 49 else 0.01 * MS)
        loop.gpu.kernels(20 * MS, 80)


def one_slow_batch_in_50_with_item(loop: Loop) -> None:
    for step in range(300):
        loop.next(400 * MS if step % 50 == 49 else 0.01 * MS)
        loop.gpu.kernels(20 * MS)
        loop.gpu.synchronize()


def gradient_accumulation(loop: Loop) -> None:
    """Four small steps, then the optimizer and a look at the loss."""
    for step in range(200):
        loop.next(9 * MS)
        loop.gpu.kernels(8 * MS)
        if step % 4 == 3:
            loop.gpu.kernels(30 * MS)
            loop.gpu.synchronize()


def evaluation_pauses(loop: Loop) -> None:
    """Ten steps, then one and a half seconds of other work on GPU and host, before the next batch is asked for."""
    for step in range(100):
        loop.next(25 * MS)
        loop.gpu.kernels(20 * MS)
        if step % 10 == 9:
            for _ in range(50):
                loop.gpu.kernels(10 * MS)
                loop.gpu.synchronize()
                loop.clock.spend(20 * MS)


def checkpoint_pauses(loop: Loop) -> None:
    """The GPU stands still, but not for data."""
    for step in range(100):
        loop.next(25 * MS)
        loop.gpu.kernels(20 * MS)
        if step % 20 == 19:
            loop.gpu.synchronize()
            loop.clock.spend(5)


def pageable_copies(loop: Loop) -> None:
    for _ in range(200):
        loop.next(18 * MS)
        loop.gpu.copy(6 * MS, pinned=False)
        loop.gpu.kernels(20 * MS)


def pinned_copies(loop: Loop) -> None:
    for _ in range(200):
        loop.next(31 * MS)
        loop.gpu.copy(6 * MS, pinned=True)
        loop.gpu.kernels(20 * MS)


def slow_at_launching(loop: Loop) -> None:
    """The GPU waits for the host all the time, and for data besides."""
    for _ in range(200):
        loop.next(10 * MS)
        loop.gpu.kernels(10 * MS, 200, host=100e-6)


def deep_run_ahead(loop: Loop) -> None:
    """Host 20 ms, GPU 100 ms, a batch every 150 ms."""
    for _ in range(100):
        loop.next(130 * MS)
        loop.gpu.kernels(100 * MS, 200, host=100e-6)


def bursts(loop: Loop) -> None:
    """Eight batches at once, then a long wait: workers that make a batch each at the same time."""
    for step in range(240):
        loop.next(200 * MS if step % 8 == 0 else 0.01 * MS)
        loop.gpu.kernels(20 * MS)


def random_waits_and_work(loop: Loop) -> None:
    for _ in range(400):
        loop.next(loop.random.expovariate(1 / 20) * MS)
        loop.gpu.kernels(loop.random.uniform(5, 40) * MS)
        if loop.random.random() < 0.1:
            loop.gpu.synchronize()


def batch_transforms(loop: Loop) -> None:
    """Work of the loop's own inside next is no wait for data."""
    for _ in range(200):
        loop.next(12 * MS, transform=5 * MS)
        loop.gpu.kernels(20 * MS)
        loop.gpu.synchronize()


def epoch_edges(loop: Loop) -> None:
    """Workers that start anew each epoch; the loss is read at its end."""
    for _ in range(10):
        for step in range(20):
            loop.next(300 * MS if step == 0 else 3 * MS)
            loop.gpu.kernels(20 * MS)
        loop.end_pass()
        loop.gpu.synchronize()


def test_a_step_in_a_capture_is_left_out_and_nothing_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    turn(loop)
    loop.gpu.capturing = True
    turn(loop)
    loop.gpu.capturing = False
    assert not loop.gpu.asked
    turn(loop)
    assert loop.gpu.asked == 1
    assert loop.pace.meter.stats_fields()["idle_step_s"] == pytest.approx(5 * MS + 15.5 * MS, abs=MS)


SIDE, NCCL, GATHER, SCATTER = (0, 9), (0, 21), (0, 31), (0, 32)


def amp(loop: Loop) -> None:
    """The scaler asks each step whether gradients are finite."""
    for _ in range(200):
        loop.next(12 * MS)
        loop.gpu.kernels(18 * MS)
        loop.gpu.read_loss()
        loop.gpu.kernels(2 * MS, 20)


def compiled(loop: Loop) -> None:
    """Few launches, behind guards that the host checks."""
    for _ in range(200):
        loop.next(24 * MS)
        loop.gpu.kernels(20 * MS, 4, host=0.02 * MS)


def cuda_graph(loop: Loop) -> None:
    """Warmed up on a side stream, captured, and replayed by one launch a step."""
    gpu = loop.gpu
    gpu.place = SIDE
    for _ in range(3):
        loop.next(25 * MS)
        gpu.kernels(20 * MS)
    gpu.place = (0, 0)
    gpu.wait_stream((0, 0), SIDE)
    loop.clock.spend(50 * MS)  # the capture
    for _ in range(200):
        loop.next(25 * MS)
        gpu.launch(20 * MS)


def two_streams(loop: Loop) -> None:
    """A prefetcher copies the batch after this one on a stream of its own."""
    gpu = loop.gpu
    for _ in range(200):
        loop.next(31 * MS)
        ready = dict(gpu.free)
        gpu.launch(6 * MS, stream=SIDE)
        gpu.wait_stream((0, 0), SIDE) if not ready else None
        gpu.kernels(20 * MS)


def streams_in_turn(loop: Loop) -> None:
    """Each step on the other one of two streams."""
    for step in range(200):
        loop.gpu.place = ((0, 0), SIDE)[step % 2]
        loop.next(25 * MS)
        loop.gpu.kernels(20 * MS)


def ddp(loop: Loop) -> None:
    """Gradients are summed on NCCL's stream beside the backward pass, in the memory of the loop's."""
    gpu = loop.gpu
    for _ in range(200):
        loop.next(30 * MS)
        gpu.kernels(6 * MS)
        for _ in range(4):
            gpu.kernels(3 * MS, 25)
            gpu.wait_stream(NCCL, (0, 0))
            gpu.launch(4 * MS, stream=NCCL)
        gpu.wait_stream((0, 0), NCCL)
        gpu.kernels(2 * MS, 10)


def fsdp(loop: Loop) -> None:
    """Parameters are gathered ahead, and the last gradients scattered while the next batch is asked for."""
    gpu = loop.gpu
    for _ in range(200):
        loop.next(45 * MS)
        gpu.wait_stream(GATHER, SCATTER)
        for _ in range(4):
            gpu.launch(2 * MS, stream=GATHER)
            gpu.wait_stream((0, 0), GATHER)
            gpu.kernels(5 * MS, 25)
            gpu.wait_stream(SCATTER, (0, 0))
            gpu.launch(7 * MS, stream=SCATTER)


def model_on_another_gpu(loop: Loop) -> None:
    """Nobody called set_device, so that the current GPU has nothing to do."""
    for _ in range(200):
        loop.next(30 * MS)
        loop.gpu.kernels(20 * MS, stream=(1, 0))


def two_gpus(loop: Loop) -> None:
    """Half of the layers on each."""
    gpu = loop.gpu
    for _ in range(200):
        loop.next(35 * MS)
        gpu.kernels(10 * MS)
        gpu.wait_stream((1, 0), (0, 0))
        gpu.kernels(10 * MS, stream=(1, 0))


KINDS: list[Callable[[Loop], None]] = [amp, compiled, cuda_graph, two_streams, ddp, fsdp]
"""Of loops, beside the plain ones."""
PLACES: list[Callable[[Loop], None]] = [streams_in_turn, model_on_another_gpu, two_gpus]
PATTERNS: list[Callable[[Loop], None]] = [
    fed,
    blocked_but_busy,
    starved,
    item_each_step,
    item_each_tenth_step,
    one_slow_batch_in_50,
    one_slow_batch_in_50_with_item,
    gradient_accumulation,
    evaluation_pauses,
    checkpoint_pauses,
    pageable_copies,
    pinned_copies,
    slow_at_launching,
    deep_run_ahead,
    bursts,
    random_waits_and_work,
    batch_transforms,
    epoch_edges,
    *KINDS,
    *PLACES,
]


def play(pattern: Callable[[Loop], None], monkeypatch: pytest.MonkeyPatch) -> tuple[Loop, float]:
    """The loop after the pattern, and the idle that data caused: how much longer all GPUs stood still."""
    loop, ready = (Loop(ready, monkeypatch) for ready in (False, True))
    still = []
    for each in (ready, loop):
        monkeypatch.setattr(feedwater._meter.pace, "perf_counter", each.clock)
        pattern(each)
        each.finish()
        still.append(each.gpu.still_s())
    assert loop.gpu.busy == ready.gpu.busy
    return loop, still[1] - still[0]


def error_of(loop: Loop, truth: float) -> float:
    """Of the idle, as a share of the step, over the steps whose idle is known."""
    figures = loop.pace.meter.stats_fields()
    known = figures["idle_step_s"] / loop.pace.step_s
    return float(abs(figures["idle_s"] - truth * known) / figures["idle_step_s"])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_idle_is_right_to_a_hundredth_of_a_step(
    pattern: Callable[[Loop], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, truth = play(pattern, monkeypatch)
    figures = loop.pace.meter.stats_fields()
    error = error_of(loop, truth)
    print(f"{pattern.__name__:32} idle {figures['idle_s'] / loop.steps * 1e3:7.3f} ms a step, error {error:.3%}")
    assert error <= 0.01, (figures, truth)
    assert figures["idle_step_s"] >= 0.95 * loop.pace.step_s
    assert figures["last_idle_s"] is not None and figures["idle_unknown"] == ""
    assert figures["idle_most_share"] == pytest.approx(figures["idle_s"] / figures["idle_step_s"], abs=0.002)


def test_a_wait_that_the_gpu_did_not_feel_is_no_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, _ = play(blocked_but_busy, monkeypatch)
    assert loop.pace.wait_s > 0.5 * loop.pace.step_s
    assert loop.pace.meter.totals.idle_s < 0.01 * loop.pace.step_s


def test_the_hosts_work_before_the_first_launch_is_what_it_is_low_by(monkeypatch: pytest.MonkeyPatch) -> None:
    def late_launches(loop: Loop) -> None:
        for _ in range(200):
            loop.next(30 * MS)
            loop.clock.spend(2 * MS)
            loop.gpu.kernels(20 * MS)

    loop, truth = play(late_launches, monkeypatch)
    assert (truth - loop.pace.meter.totals.idle_s) / loop.steps == pytest.approx(2 * MS, rel=0.1)


@pytest.mark.parametrize(
    ("late", "copy", "idle", "transfer"), [(7, 3, 7, 3), (0, 3, 0, 3), (7, 0, 7, 0), (0, -15, 0, 0)]
)
def test_the_wait_for_a_copy_is_transfer_and_no_idle(
    monkeypatch: pytest.MonkeyPatch, late: float, copy: float, idle: float, transfer: float
) -> None:
    """A batch comes so late to a GPU that has run dry, and its copy ends so long after it came."""
    loop, turns = Loop(False, monkeypatch), []
    for _ in range(200):
        entered = loop.pace.enter_next()
        loop.clock.spend(late * MS)
        loop.pace.note_arrival()
        loop.gpu.await_copy(loop.clock.now + copy * MS)
        loop.pace.note_landing()
        loop.pace.leave_next(entered)
        turns.append(loop.pace.step)
        loop.gpu.kernels(20 * MS)
        loop.gpu.synchronize()
    loop.finish()
    figures = loop.pace.meter.stats_fields()
    assert figures["idle_s"] == pytest.approx(200 * idle * MS)
    assert figures["transfer_s"] == pytest.approx(200 * transfer * MS)
    assert all(turn is None or turn.transfer_s == pytest.approx(transfer * MS) for turn in turns)


def test_a_copy_beside_the_step_is_no_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host is ahead, and copies end while the GPU is busy."""
    loop = Loop(False, monkeypatch)
    for _ in range(200):
        entered = loop.pace.enter_next()
        loop.pace.note_arrival()
        loop.gpu.await_copy(loop.clock.now + 3 * MS)
        loop.pace.note_landing()
        loop.pace.leave_next(entered)
        loop.gpu.kernels(20 * MS)
    loop.finish()
    assert loop.pace.meter.stats_fields()["transfer_s"] == pytest.approx(3 * MS), "the first one's"


def test_transfer_is_unknown_where_the_program_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    turn(loop)
    assert loop.pace.meter.stats_fields()["transfer_s"] is None
    assert loop.pace.meter.stats_fields()["idle_s"] is not None


class Device:
    """A Loader's GPU, on which each batch comes after a second, and its copy ends half a second later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from fake_cuda import FakeCuda

        self.clock, self.cuda = SimClock(), FakeCuda()
        self.gpu = SimGpu(self.clock)
        self._patch = monkeypatch
        monkeypatch.setattr(feedwater._meter.gpu_events, "find_gpu", lambda: self.gpu)
        monkeypatch.setattr("feedwater._config.check_built", lambda *_: None)
        monkeypatch.setattr(feedwater._device.runtime, "find_runtime", lambda *_: self.cuda)
        for module in (feedwater._meter.pace, feedwater._meter.pulse, feedwater._stages.timeline):
            monkeypatch.setattr(module, "perf_counter", self.clock)
        record = self.gpu.record_mark  # the two fakes are one GPU, with streams of different kinds
        monkeypatch.setattr(self.gpu, "record_mark", lambda stream=None: record())
        self._wait = self.cuda.await_event
        monkeypatch.setattr(self.cuda, "await_event", self.wait_for_copy)

    def wait_for_copy(self, event: Any) -> None:
        self.gpu.await_copy(self.clock.now + 0.5)
        self._wait(event)

    def slow_down(self, loader: Any) -> None:
        take = loader._engine.feed.take_batch
        self._patch.setattr(loader._engine.feed, "take_batch", lambda *a: self.clock.spend(1.0) or take(*a))


def test_a_loader_on_a_gpu_tells_transfer_apart(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    device = Device(monkeypatch)
    with fake.loader(device="cuda") as loader:
        device.slow_down(loader)
        for _ in loader:
            device.gpu.launch(4.0)
            device.gpu.synchronize()
        stats = loader.stats()
        assert (stats.idle_s, stats.transfer_s) == (10.0, 5.0)
        told = [step for line in fake.log("pulse") for step in line["pulse"]]
    assert told
    assert all(step[3:] == [1.0, 0.5] for step in told)


def test_a_copy_for_which_the_host_waits_is_transfer_too(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from memory that the driver does not register."""
    pytest.importorskip("torch")
    device = Device(monkeypatch)
    device.cuda.refuse = "out of locked memory"
    copy = device.cuda.copy_to_gpu
    monkeypatch.setattr(device.cuda, "copy_to_gpu", lambda pairs: device.clock.spend(0.25) or copy(pairs))
    builder = "feedwater._batch.device_batch.DeviceBuilder.send_ahead"
    monkeypatch.setattr(builder, lambda self: self._transfer.release_done())  # each copy begins when the loop asks
    with fake.loader(device="cuda") as loader:
        device.slow_down(loader)
        for _ in loader:
            device.gpu.launch(4.0)
            device.gpu.synchronize()
        stats = loader.stats()
    assert (stats.idle_s, stats.transfer_s) == (10.0, 7.5)


def test_stages_tell_a_loaders_copy_from_the_wait_for_data(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    device = Device(monkeypatch)
    with fake.loader(device="cuda") as loader, feedwater.stages(torch.nn.Linear(1, 1)) as stages:
        device.slow_down(loader)
        for _ in range(2):
            for _ in loader:
                device.gpu.launch(4.0, 0)
                device.gpu.synchronize()
        found = {row.stage: row.mean_s for row in stages.rows()}
    assert stages.clock == "gpu"
    assert found == {
        "data wait": pytest.approx(1.0),
        "host-to-device": pytest.approx(0.5),
        "other": pytest.approx(4.0),
        "step": pytest.approx(5.5),
        "forward": 0,
        "backward": 0,
        "optimizer": 0,
    }


def test_events_are_read_only_when_the_gpu_has_come_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    for _ in range(3):
        loop.next(1 * MS)
        loop.gpu.launch(10)
    assert loop.pace.meter.stats_fields()["idle_s"] == 1 * MS, "the first turn's"
    assert loop.clock.now < 1, "nothing waited for the GPU"
    loop.finish()
    assert loop.pace.meter.stats_fields()["last_idle_s"] == 0


def test_a_gpu_that_stands_still_costs_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    loop.gpu.launch(1e6)
    for _ in range(1000):
        loop.next(1 * MS)
    assert len(loop.pace.meter._marks or []) == 256
    assert loop.pace.meter.stats_fields()["idle_s"] is None


def unknown(loop: Loop) -> str:
    """Why the last step is unknown; checks that nothing reads as 0."""
    stats = loop.pace.meter.stats_fields()
    assert stats["last_idle_s"] is None and (stats["idle_s"] is None) == (stats["idle_step_s"] == 0)
    return str(stats["idle_unknown"])


def turn(loop: Loop) -> None:
    loop.next(5 * MS)
    loop.gpu.kernels(10 * MS)
    loop.gpu.synchronize()


def test_work_elsewhere_is_looked_for_again_and_again_but_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    for _ in range(3000):
        turn(loop)
    assert 11 <= loop.gpu.asked <= 14
    loop.gpu.foreign.add(SIDE)
    loop.gpu.memory.add(SIDE)
    for _ in range(1024):
        turn(loop)
    assert unknown(loop) == FOREIGN


def busy_side(loop: Loop, steps: int = 200) -> None:
    """A GPU that runs dry in next for 10 ms, in 6 of which a further stream works."""
    for _ in range(steps):
        loop.next(10 * MS)
        loop.gpu.kernels(20 * MS)
        loop.gpu.read_loss()
        loop.gpu.launch(6 * MS, stream=SIDE)
    loop.finish()


def test_work_on_a_further_stream_is_no_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    busy_side(loop)
    figures = loop.pace.meter.stats_fields()
    steps = figures["idle_step_s"] / (30 * MS)
    assert steps > 190, "what was read before the stream was seen is dropped, and no more"
    assert figures["idle_s"] / steps == pytest.approx(4 * MS, rel=0.01)
    assert figures["idle_unknown"] == ""


def test_what_was_known_before_a_stream_comes_into_use_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    for _ in range(1024):
        loop.next(10 * MS)
        loop.gpu.kernels(20 * MS)
        loop.gpu.read_loss()
    before = loop.pace.meter.stats_fields()
    busy_side(loop, 1100)
    figures = loop.pace.meter.stats_fields()
    assert figures["idle_step_s"] > before["idle_step_s"]
    steps = (figures["idle_step_s"] / (30 * MS)) - 1024
    assert figures["idle_s"] - 1024 * 10 * MS == pytest.approx(steps * 4 * MS, rel=0.05)


def test_a_further_stream_that_ends_last_or_begins_late_is_busy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    for _ in range(200):
        loop.next(10 * MS)
        loop.gpu.kernels(20 * MS)
        loop.gpu.launch(35 * MS, stream=SIDE)
    loop.finish()
    assert loop.pace.meter.stats_fields()["idle_s"] == pytest.approx(0, abs=1e-9)


def test_streams_that_torch_did_not_make_leave_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """6 of 10 ms that nobody sees; and where the GPU is busy whatever they do, the bound says so."""
    loop = Loop(False, monkeypatch)
    loop.gpu.foreign.add(SIDE)
    busy_side(loop)
    assert unknown(loop) == FOREIGN
    figures = loop.pace.meter.stats_fields()
    assert figures["idle_s"] is None and figures["idle_most_share"] == pytest.approx(1 / 3, rel=0.01)
    loop = Loop(True, monkeypatch)
    loop.gpu.foreign.add(SIDE)
    busy_side(loop)
    figures = loop.pace.meter.stats_fields()
    assert figures["idle_s"] is None and figures["idle_most_share"] < 0.001


def test_steps_are_known_again_when_such_a_stream_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    loop.gpu.foreign.add(SIDE)
    busy_side(loop, 10)
    assert unknown(loop) == FOREIGN
    for _ in range(100):
        turn(loop)
    figures = loop.pace.meter.stats_fields()
    assert figures["idle_unknown"] == ""
    assert figures["idle_s"] / figures["idle_step_s"] == pytest.approx(1 / 3, rel=0.01)


def test_a_loop_that_was_on_such_a_stream_is_unknown_until_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    loop.gpu.foreign.add(SIDE)
    loop.gpu.place = SIDE
    for _ in range(5):
        turn(loop)
    assert loop.pace.meter.stats_fields()["idle_unknown"] == "", "marks on the current stream are always safe"
    loop.gpu.place = (0, 0)
    turn(loop)
    assert unknown(loop) == FOREIGN
    for _ in range(10):
        turn(loop)
    assert loop.pace.meter.stats_fields()["idle_unknown"] == ""


def test_no_more_streams_are_followed_than_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, recorded = Loop(False, monkeypatch), []
    record = loop.gpu.record_mark
    monkeypatch.setattr(loop.gpu, "record_mark", lambda stream=None: recorded.append(1) or record(stream))
    loop.gpu.memory |= {(0, 100 + number) for number in range(17)}
    for _ in range(20):
        turn(loop)
    assert unknown(loop) == "the program works on more than 16 further streams"
    recorded.clear()
    turn(loop)
    assert len(recorded) == 1 + 16 + 1
    loop.gpu.memory.clear()
    for _ in range(40):
        turn(loop)
    assert loop.pace.meter.stats_fields()["idle_unknown"] == ""


def test_marks_of_further_streams_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, held = Loop(False, monkeypatch), []
    record, free = loop.gpu.record_mark, loop.gpu.free_mark
    monkeypatch.setattr(loop.gpu, "record_mark", lambda stream=None: held.append(1) or record(stream))
    monkeypatch.setattr(loop.gpu, "free_mark", lambda mark: held.pop() and free(mark))
    busy_side(loop)
    assert len(held) <= 4 + 2 * 4, "but for those of turns that were dropped"


def test_steps_of_another_thread_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, monkeypatch)
    turn(loop)
    thread = threading.Thread(target=turn, args=(loop,))
    thread.start()
    thread.join()
    assert "outside the main thread" in unknown(loop)
    turn(loop)
    figures = loop.pace.meter.stats_fields()
    assert figures["idle_unknown"] == "" and figures["idle_step_s"] == pytest.approx(5 * MS + 15.5 * MS, abs=MS)


def test_a_batch_for_another_gpu_lands_on_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """device="cuda:1", and nobody called set_device."""
    loop, transfers, there = Loop(False, monkeypatch), [], (1, 0)
    for _ in range(50):
        entered = loop.pace.enter_next()
        loop.clock.spend(7 * MS)
        loop.pace.note_arrival()
        loop.gpu.await_copy(loop.clock.now + 3 * MS, there)
        loop.pace.note_landing(there)
        loop.pace.leave_next(entered)
        transfers.append(loop.pace.step)
        loop.gpu.kernels(20 * MS, stream=there)
        loop.gpu.synchronize()
    loop.finish()
    figures = loop.pace.meter.stats_fields()
    assert figures["idle_s"] == pytest.approx(49 * 7 * MS, rel=0.01)
    assert figures["transfer_s"] == pytest.approx(49 * 3 * MS, rel=0.01)
    assert figures["idle_unknown"] == ""


# -- mutants: each fault is seen in some loop --------------------------------------------------------------------------


def blind(self: SimGpu, place: Any) -> Streams:
    """No look finds anything."""
    return Streams({})


def shortest_of_ends(self: Turn) -> float:
    """The loop's own stream alone."""
    return float(self.before[0].until(self.after[0]))


def longest(self: Turn) -> float:
    """From the first of the streams that had nothing to do, not the last."""
    ends = {mark.place[0]: mark for mark in reversed(self.after)}
    return max(mark.until(ends[mark.place[0]]) for mark in self.before)


def forget_former(self: Meter, marks: Any) -> Any:
    """A loop that changes streams leaves its former one behind."""
    self._place = None
    return MARK_STREAMS(self, marks)


def keep_all(self: Meter, *_: Any) -> None:
    """What was read before a stream was seen stays."""
    kept = self.totals
    LOOK(self, *_)
    self.totals = kept


MARK_STREAMS, LOOK = Meter._mark_streams, Meter._look_for_streams


@pytest.mark.parametrize(
    ("target", "name", "mutant", "pattern"),
    [
        (SimGpu, "find_streams", blind, fsdp),
        (SimGpu, "find_streams", blind, model_on_another_gpu),
        (Turn, "gap_s", property(shortest_of_ends), fsdp),
        (Turn, "gap_s", property(longest), fsdp),
        (Meter, "_mark_streams", forget_former, streams_in_turn),
    ],
)
def test_a_mutant_of_the_meter_is_caught(
    target: Any, name: str, mutant: Any, pattern: Callable[[Loop], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert error_of(*play(pattern, monkeypatch)) <= 0.01
    monkeypatch.setattr(target, name, mutant)
    if name == "_mark_streams":
        monkeypatch.setattr(SimGpu, "find_streams", blind)  # or a look finds what was left
    assert error_of(*play(pattern, monkeypatch)) > 0.01


def test_mutant_that_keeps_what_was_read_without_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Meter, "_look_for_streams", keep_all)
    with pytest.raises(AssertionError):
        test_what_was_known_before_a_stream_comes_into_use_stays_known(monkeypatch)


def test_a_gpu_without_events_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("no timing here")

    for name in ("record_mark", "find_streams"):
        loop = Loop(False, monkeypatch)
        monkeypatch.setattr(loop.gpu, name, fail)
        turn(loop)
        turn(loop)
        assert "no timing here" in unknown(loop)
    loop = Loop(False, monkeypatch)
    monkeypatch.setattr("sim_gpu.SimMark.until", fail)
    turn(loop)
    assert "no timing here" in unknown(loop)


def test_no_torch_and_no_cuda_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    for torch in (None, SimpleNamespace(), SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False))):
        monkeypatch.setitem(sys.modules, "torch", torch)
        assert find_gpu() is None
    loop = Loop(False, monkeypatch)
    loop.pace.meter = Meter()
    turn(loop)
    assert "no GPU" in unknown(loop)


def test_the_loader_tells(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimClock()
    gpu = SimGpu(clock)
    monkeypatch.setattr(feedwater._meter.gpu_events, "find_gpu", lambda: gpu)
    loader = fake.loader(batch_transform=lambda batch, rng: clock.spend(2.0) or batch)
    assert loader.stats().idle_s is loader.stats().idle_share is loader.stats().last_idle_s is None
    monkeypatch.setattr(feedwater._meter.pace, "perf_counter", clock)
    monkeypatch.setattr(feedwater._engine.engine.time, "perf_counter", clock)
    take = loader._engine.feed.take_batch
    monkeypatch.setattr(loader._engine.feed, "take_batch", lambda *a: clock.spend(1.0) or take(*a))
    it = iter(loader)
    for _ in range(5):
        next(it)
        gpu.launch(4.0, host=0.25)
        gpu.synchronize()
    stats = loader.stats()
    assert (stats.wait_s, stats.idle_s, stats.last_idle_s) == (5.0, 5.0, 1.0)
    assert stats.idle_step_s == stats.step_s == 3.0 + 4 * 7.25
    assert stats.idle_share == 5 / 32 and stats.idle_unknown == ""


# -- CUDA's events, with a torch made of paper -------------------------------------------------------------------------


class PaperStream:
    """Of torch's kind: another library's has its handle for a number."""

    def __init__(self, device: int, handle: int, busy: bool = False) -> None:
        self.device_index, self.cuda_stream, self.stream_id = device, handle, handle * 2 + 1 if handle else 0
        self.busy = busy

    def query(self) -> bool:
        return not self.busy


def paper(segments: list[dict[str, Any]], backend: str = "native", busy: Any = (), gpus: Any = (2,)) -> Any:
    """Only what Cuda asks torch for. busy: handles of streams of torch that have work."""

    class Event:
        made = 0

        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing
            Event.made += 1
            self.device: int | None = None

        def record(self, stream: Any) -> None:
            assert self.device in (None, stream.device_index), "an event stays with its GPU"
            self.stream, self.device = stream, stream.device_index

        def query(self) -> bool:
            return True

        def elapsed_time(self, other: Any) -> float:
            return 250.0

    class Current:
        """torch.cuda.stream"""

        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def __enter__(self) -> None:
            cuda.now, self.stream = self.stream, cuda.now

        def __exit__(self, *_: Any) -> None:
            cuda.now = self.stream

    handles = {device: itertools.cycle(range(100, 100 + 4 * 32)) for device in range(4)}

    def make_stream(device: int, priority: int) -> PaperStream:
        handle = next(handles[device])
        return PaperStream(device, handle, handle in busy)

    cuda = SimpleNamespace(
        Event=Event,
        now=PaperStream(2, 0),
        captured=None,
        stream=Current,
        current_stream=lambda: cuda.now,
        is_current_stream_capturing=lambda: cuda.captured is not None and cuda.now.cuda_stream == cuda.captured,
        memory_snapshot=lambda include_traces: segments if backend == "native" else pytest.fail("it has none"),
        get_allocator_backend=lambda: backend,
        device_count=lambda: 4,
        default_stream=lambda device: PaperStream(device, 0),
        Stream=make_stream,
    )
    return SimpleNamespace(cuda=cuda, _C=SimpleNamespace(_cuda_hasPrimaryContext=lambda gpu: gpu in gpus))


def segment(device: int = 2, stream: int = 0, size: int = 512, pool: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    return {"device": device, "stream": stream, "allocated_size": size, "segment_pool_id": pool}


def test_cuda_events_are_used_again_on_their_gpu() -> None:
    torch = paper([])
    gpu = Cuda(torch)
    for _ in range(3):
        one, two = gpu.record_mark(), gpu.record_mark()
        other = gpu.record_mark(PaperStream(3, 101))
        assert one is not None and two is not None and other is not None
        assert one.place == (2, 0) and one.done() and one.until(two) == 0.25
        assert other.place == (3, 101) and other.stream.cuda_stream == 101
        for mark in (one, two, other):
            gpu.free_mark(mark)
    assert torch.cuda.Event.made == 3


def test_a_stream_of_another_library_is_marked_while_it_is_the_loops_and_never_after() -> None:
    torch = paper([])
    torch.cuda.now = foreign = PaperStream(2, 0x7F00)
    foreign.stream_id = foreign.cuda_stream
    mark = Cuda(torch).record_mark()
    assert mark is not None and mark.place == (2, 0x7F00) and mark.stream is None


def test_cuda_tells_of_work_elsewhere_by_the_memory_it_holds() -> None:
    def found(*segments: dict[str, Any]) -> tuple[list[Any], str]:
        streams, unseen = Cuda(paper(list(segments))).find_streams((2, 0))
        assert all((stream.device_index, stream.cuda_stream) == at for at, stream in streams.items())
        return sorted(streams), unseen

    assert found(segment(), segment(stream=9, size=0), segment(stream=9, pool=(0, 1))) == ([], "")
    assert found(segment(), segment(device=3)) == ([(3, 0)], "")
    assert found(segment(), segment(stream=103), segment(stream=101), segment(stream=103)) == (
        [(2, 101), (2, 103)],
        "",
    )
    assert found(segment(), segment(stream=9), segment(stream=101)) == ([(2, 101)], FOREIGN)
    assert not any(Cuda(paper([segment(stream=9)])).find_streams((2, 9))), "the loop's own"


@pytest.mark.parametrize("backend", ["native", "cudaMallocAsync", "pluggable"])
def test_cuda_tells_of_streams_that_have_work_whatever_the_allocator_is(backend: str) -> None:
    torch = paper([segment()], backend, busy={102, 227}, gpus=(2,))
    assert sorted(Cuda(torch).find_streams((2, 0)).found) == [(2, 102), (2, 227)]
    torch = paper([segment(), segment(device=3)], backend, busy={102}, gpus=(2, 3))
    found = {(2, 102), (3, 102)} | ({(3, 0)} if backend == "native" else set())
    assert Cuda(torch).find_streams((2, 0)).found.keys() == found


def test_a_stream_that_another_thread_captures_is_not_asked() -> None:
    torch = paper([segment()], busy={102, 103})
    torch.cuda.captured = 102
    assert sorted(Cuda(torch).find_streams((2, 0)).found) == [(2, 103)]
    assert torch.cuda.now.cuda_stream == 0


def test_marks_are_not_asked_in_a_capture() -> None:
    """Those of steps before it: the question would end it."""
    torch = paper([])
    mark = Cuda(torch).record_mark()
    assert mark is not None and mark.done()
    torch.cuda.captured = torch.cuda.now.cuda_stream
    torch.cuda.Event.query = lambda _: pytest.fail("asked")
    assert not mark.done()


def test_a_stream_that_is_captured_is_not_asked() -> None:
    """The question would end the capture."""
    torch = paper([])
    torch.cuda.is_current_stream_capturing = lambda: True
    torch.cuda.current_stream = lambda: pytest.fail("asked")
    assert not Cuda(torch).is_idle()
