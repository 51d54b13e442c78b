"""Ctrl-C at every place where it may strike: nothing is lost, nothing comes twice, no slot leaks."""

from __future__ import annotations

import contextlib
import random
import signal
import sys
from functools import partial
from typing import Any

import pytest
from expect import check, order
from interrupt import Strike

from feedwater._agent.process import agent

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="counts instructions as CPython 3.11 and later have them"
)


class Reader:
    """Reads a Loader batch by batch, and checks that each is the one that must come."""

    def __init__(self, loader: Any, seed: int = 0) -> None:
        self.loader, self.seed = loader, seed
        self.pass_ = iter(loader)
        self.epoch = self.start = 0
        self.struck: list[str] = []

    def next(self, nth: int | None = None, within: str | None = None) -> int:
        """Reads one batch, with an interrupt at the nth place. How many places there were."""
        strike = Strike(nth, within)
        try:
            batch = strike.run(lambda: next(self.pass_, None))
        except KeyboardInterrupt:
            self.struck.append(strike.where)
            state = self.loader.state_dict()
            stands = [(self.epoch, self.start), (self.epoch + 1, self.start - 100)]  # the same place at an epoch's end
            assert (state["epoch"], state["consumed"]) in stands, strike.where
            batch = next(self.pass_, None)
        self._check(batch)
        return strike.places

    def _check(self, batch: Any) -> None:
        if batch is None:
            assert self.start == 100
            self.epoch, self.start = self.epoch + 1, 0
            self.pass_ = iter(self.loader)
            return
        last = self.loader.last
        expected = order(self.epoch, self.seed)[self.start : self.start + 10]
        assert (last.epoch, last.indices.tolist()) == (self.epoch, expected), self.struck[-1:]
        check(batch[0], expected, self.epoch)
        self.start += 10


def settled(loader: Any) -> int:
    """Slots that are nobody's once all that is out has been answered."""
    feed, link = loader._engine.feed, loader._engine.feed.session.link
    while feed._out:
        link.receive()
        feed._handle_packets(link)
    slots = feed.session.slots
    return sum(
        slots.find_free_slot({*range(s), *range(s + 1, slots.count)} | feed._busy_slots(slots)) == s
        for s in range(slots.count)
    )


def test_an_interrupt_anywhere_in_next_loses_nothing(fake: Any) -> None:
    loader = fake.loader(shuffle=True, memory=12 * 4096)
    reader = Reader(loader)
    for _ in range(3):
        reader.next()
    counts = {}
    for _ in range(22):
        at = reader.start
        counts[at] = reader.next(10**9)
    places = max(counts.values())
    assert places > 50, "the counter counts"
    for _ in range(3):
        for nth in range(1, places + 1):
            reader.next(nth)
    functions = {
        "take_batch",
        "send",
        "receive",
        "_note_done",
        "_top_up",
        "lease_array",
        "prepare_batch",
        "next_batch",
    }
    for name in sorted(functions):  # calls differ in how many places they have: how much waits to be received is chance
        for nth in (1, *range(1, 12)):  # the first twice: at an epoch's end there is no batch
            reader.next(nth, name)
    assert functions <= {where.split()[-1] for where in reader.struck}
    assert agent.serial and len(fake.log("start")) == 1, "the agent was left alone"
    reader.next()
    assert settled(loader) >= 12 - 5, "no slot leaks"


def test_an_interrupt_anywhere_in_next_with_a_sampler(fake: Any) -> None:
    RandomSampler = pytest.importorskip("torch.utils.data").RandomSampler

    loader = fake.loader(sampler=RandomSampler(range(100)), memory=12 * 4096)
    whole = [[loader.last.indices.tolist() for _ in loader] for _ in range(2)]
    assert whole[0] != whole[1]
    loader = fake.loader(sampler=RandomSampler(range(100)), memory=12 * 4096)
    next(iter(loader))
    state = {**loader.state_dict(), "epoch": 1, "consumed": 40}
    for nth in range(1, 700, 3):
        loader.load_state_dict(state)
        it = iter(loader)
        strike = Strike(nth)
        try:
            strike.run(lambda: next(it))  # noqa: B023
        except KeyboardInterrupt:
            next(it)
        assert loader.last.indices.tolist() == whole[1][4], strike.where


def modes() -> list[Any]:
    """What the program has set for itself: modes of torch, and where the global generators stand."""
    import numpy as np
    import torch

    stack = [torch._C._get_function_stack_at(place) for place in range(torch._C._len_torch_function_stack())]
    drawn = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    return [stack, torch.is_inference_mode_enabled(), torch.get_default_device(), *drawn]


@pytest.mark.parametrize(
    ("what", "names", "inference", "device"),
    [
        ("sampler", {"ensure_drawn"}, False, None),
        (
            "batch_transform",
            {"apply_batch_transform", "_change_fields", "_run_torchvision", "_apply_transform"},
            True,
            "meta",
        ),
    ],
)
def test_an_interrupt_anywhere_leaves_modes_and_random_numbers_as_they_are(
    fake: Any, what: str, names: set[str], inference: bool, device: str | None
) -> None:
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2")
    options = {
        "sampler": {"sampler": torch.utils.data.RandomSampler(range(100))},
        "batch_transform": {"batch_transform": v2.MixUp(num_classes=10), "transform": made_float(v2)},
    }
    loader = fake.loader(memory=36 * 4096, **options[what])
    next(iter(loader))
    state = {**loader.state_dict(), "epoch": 1, "consumed": 40}
    functions, seen = (
        {"on_cpu", "leave_inference_mode", "_restore_states", "_capture_states", "_start_state", *names},
        set(),
    )
    torch.set_default_device(device)
    try:
        with torch.inference_mode(inference):
            before = modes()
            for name, step in ((None, 499), *((name, 1) for name in sorted(functions))):
                struck, place = True, 1
                while struck:
                    loader.load_state_dict(state)
                    strike = Strike(place, name)
                    with contextlib.suppress(KeyboardInterrupt):
                        strike.run(partial(next, iter(loader)))
                    struck, place = bool(strike.where), place + step
                    seen.add(strike.where.split(" ")[-1])
                    assert modes() == before, strike.where
    finally:
        torch.set_default_device(None)
    assert functions <= seen


def made_float(v2: Any) -> Any:
    import torch

    return v2.Compose([v2.CenterCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


def test_an_interrupt_anywhere_in_the_first_next(fake: Any) -> None:
    reader = Reader(fake.loader(shuffle=True))
    places = Strike(10**9)
    places.run(lambda: next(reader.pass_))
    assert places.places > 300
    for nth in range(1, places.places, 7):
        loader = fake.loader(shuffle=True)
        Reader(loader).next(nth)
        reader = Reader(loader)
        loader.close()
        agent._deaths.clear()


def test_an_interrupt_anywhere_while_a_dead_agent_is_replaced(fake: Any) -> None:
    import os

    loader = fake.loader(shuffle=True)
    reader = Reader(loader)
    reader.next()

    def next_after_a_death(nth: int) -> int:
        agent._deaths.clear()
        if agent.pid is not None:
            os.kill(agent.pid, signal.SIGKILL)
        return reader.next(nth)

    places = min(next_after_a_death(10**9) for _ in range(3))  # more on a machine that is slow to replace it
    tries = range(1, places, max(1, places // 100))
    for nth in tries:
        next_after_a_death(nth)
    assert len(reader.struck) > len(tries) / 2 > 20


def test_real_signals_at_random_times(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    it, seen, struck, chance = iter(loader), [], 0, random.Random(1)
    next(it)
    seen.append(loader.last)

    def strike(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, strike)
    try:
        while len(seen) < 300 or struck <= 20:  # how many are struck goes by how fast the machine is
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 1e-3))
                for _ in it:
                    seen.append(loader.last)
                it = iter(loader)
            except KeyboardInterrupt:
                struck += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGALRM, before)
    # This loop itself may note a batch twice or not at all, where it was struck; the Loader's own count is exact.
    assert struck > 20
    assert loader.stats().batches == loader.last.epoch * 10 + loader.last.position // 10 + 1
    assert len(fake.log("start")) == 1
