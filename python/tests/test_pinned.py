"""pin_memory=True: the program copies by itself and the host waits for nothing, on a GPU that is always late."""

from __future__ import annotations

from collections import OrderedDict, UserDict, deque
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from feedwater import DeviceError, Error
from feedwater._agent.pinned_slots import PinnedSlots
from feedwater._agent.slots import Field
from feedwater._device import pinned, registration, runtime

torch = pytest.importorskip("torch")

from fake_cuda import FakeCuda  # noqa: E402

MEMORY = 8 * 4096


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """A GPU whose streams do nothing before somebody waits for them."""
    made = FakeCuda(("main", "side"))
    monkeypatch.setattr(runtime, "find_host", lambda _: made)
    yield made
    registration._ENDED.clear()


def expected_of(fake: Any) -> list[Any]:
    with fake.loader(memory=MEMORY) as loader:
        return [[field.clone() for field in batch] for batch in loader]


def loop(gpu: FakeCuda, loader: Any, before: Callable[[], Any] = lambda: None) -> list[Any]:
    seen: list[list[Any]] = []
    for batch in loader:
        before()
        seen.append([])
        for field in batch:
            gpu.copy_by_program(field, seen[-1])
        gpu.current = gpu.main
        del batch, field
    gpu.drain()
    return seen


def same(one: list[Any], other: list[Any]) -> bool:
    return all(torch.equal(x, y) for a, b in zip(one, other, strict=True) for x, y in zip(a, b, strict=True))


def test_copies_read_the_batch_that_they_were_made_of(fake: Any, gpu: FakeCuda) -> None:
    fake.set(samples=300, window=4)
    expected = expected_of(fake)
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        assert "pinned    every tensor" in loader.explain()
        assert "pin_memory=True" in repr(loader)
        assert same(loop(gpu, loader), expected)
        assert loader.stats().copied_batches == 0
    assert not gpu.pageable, "every field is pinned"
    assert not gpu.registered, "what was registered is unregistered by close"


def test_the_host_does_not_wait_while_the_gpu_keeps_up(fake: Any, gpu: FakeCuda) -> None:
    gpu.lag = set()
    fake.set(samples=300, window=4)
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        loop(gpu, loader)
    assert not gpu.waits


def test_mutant_of_a_slot_that_is_free_with_its_lease(
    fake: Any, gpu: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.set(samples=300, window=4)
    expected = expected_of(fake)
    monkeypatch.setattr(pinned.Pinning, "record_fence", lambda self: [])
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        assert not same(loop(gpu, loader), expected)


def test_a_stream_that_nobody_waits_for_is_declared(fake: Any, gpu: FakeCuda, caplog: pytest.LogCaptureFixture) -> None:
    """The example of docs/device.md: wrong without record_stream, which a warning says, and right with it."""
    fake.set(samples=300, window=4)
    expected, side = expected_of(fake), gpu.new_stream("side")
    gpu.lag, gpu.others = {"side"}, {"main", "side"}

    def use_side() -> None:
        gpu.current = side

    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        assert not same(loop(gpu, loader, use_side), expected)
    assert caplog.text.count("call loader.record_stream(stream) once") == 1
    caplog.clear()
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        loader.record_stream(side)
        assert same(loop(gpu, loader, use_side), expected)
    assert "record_stream" not in caplog.text


def test_a_stream_that_was_current_before_needs_no_word(fake: Any, gpu: FakeCuda) -> None:
    """next is called on one stream, and batches are copied on another: the default one, or that of a next before."""
    fake.set(samples=300, window=4)
    expected, side, third = expected_of(fake), gpu.new_stream("side"), gpu.new_stream("third")
    seen: list[list[Any]] = []
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        for number, batch in enumerate(loader):
            gpu.current = gpu.main if number < 15 or number % 2 else side
            seen.append([])
            for field in batch:
                gpu.copy_by_program(field, seen[-1])
            gpu.current = side if number < 15 else third
            del batch, field
        gpu.drain()
    assert same(seen, expected)


class Own:
    """A batch of the program's own class, which torch's DataLoader pins by its method."""

    def __init__(self, images: Any, pinned: bool = False) -> None:
        self.images, self.pinned = images, pinned

    def pin_memory(self) -> Own:
        return Own(self.images, True)


class Pair(NamedTuple):
    images: Any
    labels: Any


@pytest.mark.parametrize("kind", [OrderedDict, UserDict, MappingProxyType])
def test_mappings_of_other_classes_are_pinned_and_stay_what_they_are(fake: Any, gpu: FakeCuda, kind: Any) -> None:
    def transform(batch: Any, _: Any) -> Any:
        return kind({"images": batch[0] + 0, "more": deque([batch[1] + 0, "text", Pair(batch[1] + 1, b"bytes")])})

    with fake.loader(pin_memory=True, batch_transform=transform) as loader:
        batch = next(iter(loader))
    assert type(batch) is kind and type(batch["more"]) is deque and type(batch["more"][2]) is Pair
    assert batch["more"][1] == "text" and batch["more"][2].labels == b"bytes"
    for tensor in (batch["images"], batch["more"][0], batch["more"][2].images):
        assert gpu.reads(tensor.data_ptr(), tensor.nbytes)


def test_what_pins_itself_is_asked_to(fake: Any, gpu: FakeCuda) -> None:
    with fake.loader(pin_memory=True, batch_transform=lambda batch, _: [Own(batch[0]), batch[1], Own]) as loader:
        own, _, kind = next(iter(loader))
    assert own.pinned and kind is Own


@pytest.mark.parametrize("call", ["is_capturing", "record_event", "pin_tensor", "register_memory", "current_streams"])
@pytest.mark.parametrize("words", ["CUDA error: unspecified launch failure", "CUDA error: out of memory"])
def test_a_driver_that_is_lost_or_short_is_named_and_nothing_is_lost(
    fake: Any, gpu: FakeCuda, monkeypatch: pytest.MonkeyPatch, call: str, words: str
) -> None:
    expected = expected_of(fake)
    known, gpu.lag = getattr(gpu, call), set()

    def fail(*_: Any) -> Any:
        gpu_calls.append(call)
        raise torch.AcceleratorError(words)

    gpu_calls: list[str] = []
    told = "does not take a batch any more" if "launch" in words else "smaller batch_size or memory= takes less"
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        batches, seen = iter(loader), []
        seen.append([field.clone() for field in next(batches)])
        monkeypatch.setattr(gpu, call, fail)
        with pytest.raises(DeviceError, match=told):
            for batch in batches:
                seen.append([field.clone() for field in batch])
                del batch
        assert gpu_calls
        monkeypatch.setattr(gpu, call, known)
        seen += [[field.clone() for field in batch] for batch in batches]
    assert same(seen, expected)


def test_batches_are_of_no_inference_mode(fake: Any, gpu: FakeCuda) -> None:
    """What lies in no slot, as labels, is copied into pinned memory."""
    with fake.loader(memory=MEMORY, pin_memory=True) as loader, torch.inference_mode():
        given = [loader.peek(), *loader]
    assert not any(field.is_inference() for batch in given for field in batch)


@pytest.mark.parametrize("pinned_too", [False, True])
def test_what_a_batch_transform_keeps_of_a_batch_that_is_made_again_stays_good(
    fake: Any, gpu: FakeCuda, pinned_too: bool
) -> None:
    """It raised, so the batch is made once more of the same slot, which is in use until both are gone."""
    fake.set(samples=300, window=4)
    gpu.lag, kept, calls = set(), [], []

    def transform(batch: Any, _: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            kept.append((batch, [field.clone() for field in batch]))
            raise ArithmeticError("a batch_transform that fails")
        return batch

    with fake.loader(memory=MEMORY, batch_transform=transform, pin_memory=pinned_too) as loader:
        batches = iter(loader)
        with pytest.raises(ArithmeticError):
            list(batches)
        assert sum(1 for _ in batches) == 28, "each is gone when the next one comes"
        ((batch, before),) = kept
        assert same([batch], [before])


def test_batches_that_outlive_the_loader_stay_pinned_until_they_are_read(fake: Any, gpu: FakeCuda) -> None:
    seen: list[Any] = []
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        batch = next(iter(loader))
        expected = [field.clone() for field in batch]
    assert gpu.registered
    for field in batch:
        gpu.copy_by_program(field, seen)
    del batch, field
    registration.end_registrations()
    assert not gpu.registered
    assert same([seen], [expected])


def test_nothing_is_pinned_before_cuda_is_in_use(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts: list[Any] = [None]
    monkeypatch.setattr(runtime, "find_host", lambda _: hosts[0])
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        batches = iter(loader)
        next(batches)
        hosts[0] = FakeCuda()
        images, labels = next(batches)
        assert hosts[0].registrations == 1
        assert all(hosts[0].reads(field.data_ptr(), field.nbytes) for field in (images, labels))


def test_a_refused_registration_is_one_warning_and_a_pinned_copy(
    fake: Any, gpu: FakeCuda, caplog: pytest.LogCaptureFixture
) -> None:
    expected = expected_of(fake)
    gpu.refuse = "out of locked memory"
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        assert same(loop(gpu, loader), expected)
    assert caplog.text.count("out of locked memory") == 1
    assert not gpu.pageable


def test_a_dead_slot_is_in_use_while_a_graph_is_captured(gpu: FakeCuda) -> None:
    slots = PinnedSlots(2, 4096, pinned.Pinning())
    slots.lease_array(0, Field("image", "uint8", (4,), 0), 1)
    gpu.submit(gpu.main, lambda: None)  # work that may read it
    gpu.capturing = True
    assert slots.find_free_slot(set()) == 1
    gpu.capturing = False
    assert slots.find_free_slot({1}) is None
    assert slots.await_slot()
    assert slots.find_free_slot({1}) == 0
    slots.close()


def test_next_in_a_capture_is_refused_and_loses_nothing(fake: Any, gpu: FakeCuda) -> None:
    """A copy that is captured would read the slot at each replay; and registering there ends the capture."""
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        batches = iter(loader)
        next(batches)
        gpu.capturing, before = True, gpu.registrations
        with pytest.raises(DeviceError, match="capture of a CUDA graph"):
            next(batches)
        assert gpu.registrations == before
        gpu.capturing = False
        assert len(list(batches)) == 9


def test_nothing_is_unregistered_in_a_capture(fake: Any, gpu: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        next(iter(loader))
        gpu.capturing = True
        with monkeypatch.context() as patch:
            patch.setattr(gpu, "finish_reads", lambda: pytest.fail("waited"))
            loader.close()
            registration.end_registrations()
    assert gpu.registered
    gpu.capturing = False
    registration.end_registrations()
    assert not gpu.registered


def test_close_raises_nothing_where_the_driver_is_lost(
    fake: Any, gpu: FakeCuda, caplog: pytest.LogCaptureFixture
) -> None:
    """The program's own error is what it gets to see, and the memory stays mapped."""
    with fake.loader(memory=MEMORY, pin_memory=True) as loader:
        next(iter(loader))
        gpu.submit(gpu.main, lambda: None)
        gpu.finish_reads = lambda: gpu.check_alive()  # type: ignore[method-assign]
        gpu.lost = "CUDA error: unspecified launch failure"
    fake.until(lambda: not fake.unreaped())
    assert "stay mapped" in caplog.text
    assert gpu.registered


def test_only_a_stream_of_cuda_is_declared(fake: Any) -> None:
    with fake.loader(pin_memory=True) as loader, pytest.raises(TypeError, match=r"record_stream\(None\): give it"):
        loader.record_stream(None)


def test_record_stream_is_of_pinned_memory(fake: Any) -> None:
    with fake.loader() as loader, pytest.raises(Error, match="for pin_memory=True"):
        loader.record_stream(None)
