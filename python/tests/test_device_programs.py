"""What programs do with batches of device="cuda", on a GPU that does nothing before somebody waits for it."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from interrupt import Strike
from test_device import MEMORY, SCHEDULES, batches_of, forget_wait, same

from feedwater._device import registration, transfer

torch = pytest.importorskip("torch")

from fake_cuda import FakeCuda, install  # noqa: E402

Program = Callable[[FakeCuda, Any], list[Any]]
"""Reads a Loader's batches in its way; what it saw of each."""


def items(gpu: FakeCuda, loader: Any) -> list[Any]:
    """item() in each step."""
    return [[gpu.read_now(field) for field in batch] for batch in loader]


def graph(gpu: FakeCuda, loader: Any) -> list[Any]:
    """Each batch is copied into what a CUDA graph reads, and the graph is replayed."""
    seen: list[list[Any]] = []
    static: list[Any] = []
    for batch in loader:
        static = static or [(gpu.allocate(x.shape, x.dtype), gpu.allocate(x.shape, x.dtype)) for x in batch]
        seen.append([])
        for field, (read, made) in zip(batch, static):
            gpu.copy_later(read, field)
            gpu.copy_later(made, read)  # the graph
            gpu.read_later(made, seen[-1])
    gpu.drain()
    return seen


def compiled(gpu: FakeCuda, loader: Any) -> list[Any]:
    """A function of torch.compile reads batches, of which it is made once."""
    import torch._dynamo

    torch._dynamo.reset()
    made: list[Any] = []

    def kernels(module: Any, _: Any) -> Any:
        made.append(module)

        def launch(*inputs: Any) -> Any:
            outputs = [gpu.allocate(one.shape, one.dtype) for one in inputs]
            for output, one in zip(outputs, inputs):
                gpu.copy_later(output, one)
            return outputs

        return launch

    function = torch.compile(lambda images, labels: (images + 0, labels + 0), backend=kernels, dynamic=False)
    seen: list[list[Any]] = []
    try:
        for batch in loader:
            seen.append([])
            for output in function(*batch):
                gpu.read_later(output, seen[-1])
            del batch
    finally:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()  # by which the doctor knows programs that compile
    gpu.drain()
    assert len(made) == 1, "no batch differs in shape, strides or type"
    return seen


def failing(gpu: FakeCuda, loader: Any) -> list[Any]:
    """Steps that raise, of which the program goes on with the next batch; and a new loop after some."""
    seen: list[list[Any]] = []
    number = 0
    while True:
        try:
            for batch in loader:
                number += 1
                seen.append([])
                for field in batch:
                    gpu.read_later(field, seen[-1])
                if number % 3 == 0:
                    raise ArithmeticError("a step that fails")
        except ArithmeticError:
            loader.load_state_dict(loader.state_dict())
            continue
        gpu.drain()
        return seen


PROGRAMS: dict[str, Program] = {one.__name__: one for one in (items, graph, compiled, failing)}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_get_their_batches_whole(
    fake: Any, monkeypatch: pytest.MonkeyPatch, program: str, schedule: str
) -> None:
    fake.set(samples=110, window=4)
    with fake.loader(memory=MEMORY) as loader:
        expected = batches_of(loader, 1)
    for gpu in install(monkeypatch, FakeCuda(SCHEDULES[schedule])):
        with fake.loader(memory=MEMORY, device="cuda") as loader:
            assert same(PROGRAMS[program](gpu, loader), expected)


@pytest.mark.parametrize("program", PROGRAMS)
def test_mutant_of_a_loop_that_does_not_wait_for_copies(
    fake: Any, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    fake.set(samples=110, window=4)
    with fake.loader(memory=MEMORY) as loader:
        expected = batches_of(loader, 1)
    monkeypatch.setattr(FakeCuda, "await_event", forget_wait)
    for gpu in install(monkeypatch, FakeCuda(("copies",))):
        with fake.loader(memory=MEMORY, device="cuda") as loader:
            assert not same(PROGRAMS[program](gpu, loader), expected)


def test_an_interrupt_anywhere_in_next_loses_nothing(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C amid copies: the next call returns the batch that this one would have, and no slot is used too early."""
    fake.set(samples=100, window=4)
    with fake.loader(memory=MEMORY) as loader:
        expected = batches_of(loader, 1)
    where = set()
    functions = ("start_upload", "_send_rows", "send_ahead", "receive_tensors", "gather_rows")
    for gpu in install(monkeypatch, FakeCuda(SCHEDULES["all late"])):
        with fake.loader(memory=MEMORY, device="cuda") as loader:
            for nth, name in itertools.product((1, 2, 4, 7), functions):
                loader.load_state_dict({**loader.state_dict(), "epoch": 0, "consumed": 0})
                seen: list[list[Any]] = []
                batches, at = iter(loader), 2 + nth % 5
                while len(seen) < len(expected):
                    strike = Strike(nth if len(seen) == at else None, name)
                    try:
                        batch = strike.run(lambda: next(batches))  # noqa: B023
                    except KeyboardInterrupt:
                        where.add(strike.where.split()[-1])
                        at = -1
                        continue
                    if len(seen) == at:  # not called so often, as where nothing is copied ahead
                        at += 1
                    seen.append([])
                    for field in batch:
                        gpu.read_later(field, seen[-1])
                    del batch, field
                gpu.drain()
                assert same(seen, expected), strike.where
        gc.collect()  # tracebacks
        registration.end_registrations()
        assert not gpu.registered
    assert where == set(functions)
    assert not transfer._LOST
