"""Classes that fetch ahead on a stream of their own, around device="cuda": NVIDIA's data_prefetcher, and its copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from feedwater._device import runtime

torch = pytest.importorskip("torch")

from fake_cuda import FakeCuda, FakeEvent, install  # noqa: E402

MEMORY = 8 * 4096
SAID = "has to wait first, side.wait_stream(torch.cuda.current_stream())"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """A GPU that does nothing before somebody waits for it, but on the stream of the class that fetches ahead."""
    yield from install(monkeypatch, FakeCuda(("main", "copies")))


def wait_stream(gpu: FakeCuda, stream: Any, other: Any) -> None:
    gpu.submit(stream, FakeEvent(gpu, other))


def train(gpu: FakeCuda, loader: Any, *, waits: bool) -> list[Any]:
    """What the stream of such a class read: it normalises a batch while the loop is in the step before."""
    side = gpu.new_stream("side")
    gpu.others = {"side"}
    seen: list[Any] = []
    batches = iter(loader)
    while (batch := next(batches, None)) is not None:
        if waits:
            wait_stream(gpu, side, gpu.main)
        gpu.current = side
        gpu.read_later(batch[0], seen)  # batch[0].float().sub_(mean)
        if waits:
            gpu.keep_for_stream(batch[0], side)  # batch[0].record_stream(side)
        gpu.current = gpu.main
        del batch
        wait_stream(gpu, gpu.main, side)
    gpu.drain()
    return seen


@pytest.mark.parametrize("waits", [False, True])
def test_a_stream_that_does_not_wait_reads_too_early_and_a_warning_says_so(
    fake: Any, gpu: FakeCuda, caplog: pytest.LogCaptureFixture, waits: bool
) -> None:
    """The example of docs/device.md."""
    with fake.loader(memory=MEMORY) as loader:
        expected = [batch[0].clone() for batch in loader]
    with fake.loader(memory=MEMORY, device="cuda") as loader:
        seen = train(gpu, loader, waits=waits)
    assert len(seen) == len(expected) > 2
    assert all(torch.equal(*pair) for pair in zip(seen, expected)) == waits
    assert caplog.text.count(SAID) == 1


def test_a_loop_of_one_stream_is_told_nothing(fake: Any, gpu: FakeCuda, caplog: pytest.LogCaptureFixture) -> None:
    gpu.others = {"main"}
    with fake.loader(memory=MEMORY, device="cuda") as loader:
        assert sum(1 for _ in loader) > 2
    assert SAID not in caplog.text


def test_pinned_batches_are_whole_where_the_loop_waits_before_it_asks(
    fake: Any, gpu: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As data_prefetcher and PrefetchLoader do: copied on their stream, for which the loop's waits before next."""
    monkeypatch.setattr(runtime, "find_host", lambda _: gpu)
    fake.set(samples=300, window=4)
    with fake.loader(memory=MEMORY) as loader:
        expected = [batch[0].clone() for batch in loader]
    side, seen = gpu.new_stream("side"), []
    gpu.lag.add("side")
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        for image, _ in loader:
            gpu.current = side
            gpu.copy_by_program(image, seen)
            gpu.current = gpu.main
            del image
            wait_stream(gpu, gpu.main, side)
        gpu.drain()
    assert len(seen) == len(expected) and all(torch.equal(*pair) for pair in zip(seen, expected))
