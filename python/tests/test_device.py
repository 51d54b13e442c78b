"""device="cuda" on a GPU that does everything in the wrong order unless an event forbids it; see fake_cuda.py."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import feedwater
from feedwater._agent.slots import Slots
from feedwater._batch import relabel
from feedwater._device import registration, runtime, transfer

torch = pytest.importorskip("torch")

from fake_cuda import FakeCuda, FakeEvent, Trap, install  # noqa: E402

SCHEDULES = {"in order": (), "copies late": ("copies",), "loop late": ("main",), "all late": ("main", "copies")}
MEMORY = 8 * 4096
"""Eight slots, which are used again and again."""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """The GPU of this process, which does nothing before somebody waits for it."""
    yield from install(monkeypatch, FakeCuda(SCHEDULES["all late"]))


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """The GPU of this process, which does what it is told at once."""
    yield from install(monkeypatch, FakeCuda())


def batches_of(loader: Any, epochs: int = 2) -> list[Any]:
    return [[field.clone() for field in batch] for _ in range(epochs) for batch in loader]


def loop(gpu: FakeCuda, loader: Any, epochs: int = 2, step: Callable[[Any], Any] = lambda batch: None) -> list[Any]:
    """A loop that reads each batch by kernels; what these saw, when the GPU has done all."""
    seen: list[list[Any]] = []
    for _ in range(epochs):
        for batch in loader:
            seen.append([])
            for field in batch:
                gpu.read_later(field, seen[-1])
            step(batch)
            del batch, field
    gpu.drain()
    return seen


def same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        len(a) == len(b) and all(torch.equal(x, y) and x.dtype == y.dtype for x, y in zip(a, b))
        for a, b in zip(one, other)
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_batches_are_those_of_the_cpu(fake: Any, monkeypatch: pytest.MonkeyPatch, schedule: str) -> None:
    with fake.loader(memory=MEMORY) as loader:
        expected = batches_of(loader)
    for gpu in install(monkeypatch, FakeCuda(SCHEDULES[schedule])):
        with fake.loader(memory=MEMORY, device="cuda") as loader:
            assert "device='cuda'" in repr(loader)
            assert same(loop(gpu, loader), expected)
        assert not gpu.pageable
        assert 0 < gpu.registrations <= 8
        assert not gpu.registered, "memory of a Loader that is closed is unregistered"


@pytest.mark.parametrize("memory_format", [None, "channels_last"])
def test_floats_are_made_on_the_gpu_of_copied_bytes(fake: Any, gpu: FakeCuda, memory_format: str | None) -> None:
    from torchvision.transforms import v2

    ops = [v2.CenterCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.4,), (0.3,))]
    options = {"transform": v2.Compose(ops), "dtype": "bfloat16", "memory_format": memory_format, "memory": 16 * 8192}
    with fake.loader(**options) as loader:
        expected = batches_of(loader, 1)
        strides = next(iter(loader))[0].stride()
    with fake.loader(**options, device="cuda") as loader:
        assert same(loop(gpu, loader, 1), expected)
        assert next(iter(loader))[0].stride() == strides
        assert "used by the GPU, which gets bytes" in loader.explain()
    assert set(gpu.copied) == {10 * 8 * 8 * 3, 10 * 8}, "a byte for each value, and the labels"


def test_the_host_does_not_wait_while_the_gpu_keeps_up(fake: Any, calm: FakeCuda) -> None:
    fake.set(samples=300, window=4)
    with fake.loader(memory=MEMORY, device="cuda") as loader:
        loop(calm, loader)
    assert calm.waits == calm.pageable == 0


def test_copies_of_batches_that_are_there_are_under_way_before_the_loop_asks(fake: Any, calm: FakeCuda) -> None:
    fake.set(samples=200, window=4)
    with fake.loader(memory=64 * 4096, device="cuda") as loader:
        batches = iter(loader)
        next(batches)
        feed = loader._engine.feed
        for _ in range(10):
            while feed.count_ready() < 4:
                feed.session.link.receive()
                feed._handle_packets(feed.session.link)
            next(batches)
            before = len(calm.copied)
            ahead = [loader._engine._builder._ahead[done].upload for done in loader._engine._builder._ahead]
            assert len(ahead) == 2
            assert all(upload.event is not None for upload in ahead)
            assert len(calm.copied) == before


def test_a_loop_that_changes_streams_gets_its_batches_whole(fake: Any, gpu: FakeCuda) -> None:
    with fake.loader(memory=MEMORY) as loader:
        expected = batches_of(loader)
    other = gpu.new_stream("other")

    def switch(_: Any) -> None:
        gpu.current = other if gpu.current is gpu.main else gpu.main

    with fake.loader(memory=MEMORY, device="cuda") as loader:
        assert same(loop(gpu, loader, step=switch), expected)


def test_a_batch_that_was_peeked_at_on_another_stream_is_whole(fake: Any, gpu: FakeCuda) -> None:
    """It was made for the stream of that time, and the copy that peek gave is read there."""
    with fake.loader(memory=MEMORY) as loader:
        expected = batches_of(loader, 1)
    streams, seen = [gpu.main, gpu.new_stream("one"), gpu.new_stream("two")], []
    gpu.lag |= {"one", "two"}
    with fake.loader(memory=MEMORY, device="cuda") as loader:
        batches = iter(loader)
        for number in range(10):
            for offset in (0, 1):
                gpu.current = streams[(number + offset) % 3]
                loader.peek()
            gpu.current = streams[(number + 2) % 3]
            seen.append([])
            for field in next(batches):
                gpu.read_later(field, seen[-1])
        gpu.drain()
    assert same(seen, expected)


def test_two_loaders_on_one_gpu(fake: Any, gpu: FakeCuda) -> None:
    with fake.loader(memory=MEMORY) as loader:
        expected = batches_of(loader, 1)
    seen: list[list[Any]] = [[], []]
    with fake.loader(memory=MEMORY, device="cuda") as one, fake.loader(memory=MEMORY, device="cuda") as two:
        for pair in zip(one, two):
            for place, batch in enumerate(pair):
                seen[place].append([])
                for field in batch:
                    gpu.read_later(field, seen[place][-1])
        gpu.drain()
    assert same(seen[0], expected) and same(seen[1], expected)


@pytest.mark.parametrize("how", ["set_epoch", "load_state_dict", "iter"])
def test_batches_that_were_copied_in_vain_harm_nobody(fake: Any, gpu: FakeCuda, how: str) -> None:
    fake.set(samples=200, window=4)
    with fake.loader(memory=MEMORY, shuffle=True) as loader:
        expected = {epoch: [[f.clone() for f in b] for b in loader] for epoch in range(6)}
    seen: list[list[Any]] = []
    with fake.loader(memory=MEMORY, shuffle=True, device="cuda") as loader:
        for epoch in range(6):
            if how == "load_state_dict":
                loader.load_state_dict({**loader.state_dict(), "epoch": epoch, "consumed": 0})
            elif how == "set_epoch":
                loader.set_epoch(epoch)
            for number, batch in enumerate(loader):
                seen.append([])
                for field in batch:
                    gpu.read_later(field, seen[-1])
                if number == 4:
                    break
        gpu.drain()
    assert same(seen, [batch for epoch in range(6) for batch in expected[epoch][:5]])


def test_close_amid_copies_waits_for_them(fake: Any, gpu: FakeCuda) -> None:
    seen: list[list[Any]] = [[]]
    with fake.loader(memory=MEMORY) as loader:
        expected = [[field.clone() for field in next(iter(loader))]]
    loader = fake.loader(memory=MEMORY, device="cuda")
    for field in next(iter(loader)):
        gpu.read_later(field, seen[0])
    loader.close()
    del loader
    gc.collect()
    assert not gpu.registered
    gpu.drain()
    assert same(seen, expected)


def test_a_loader_that_is_dropped_amid_copies_calls_no_cuda(fake: Any, gpu: FakeCuda) -> None:
    loader = fake.loader(memory=MEMORY, device="cuda")
    next(iter(loader))
    calls = gpu.main.submitted, gpu.copies.submitted, gpu.waits
    held = len(gpu.registered)
    del loader
    gc.collect()
    assert (gpu.main.submitted, gpu.copies.submitted, gpu.waits) == calls
    assert len(gpu.registered) == held, "a finaliser calls no CUDA"
    gpu.check_registrations()
    gpu.drain()
    with fake.loader(memory=MEMORY, device="cuda") as other:
        loop(gpu, other, 1)
    assert not gpu.registered, "the next Loader has unregistered what nobody holds any more"


def test_a_gpu_that_is_lost_with_a_loader_that_was_dropped_is_no_error_of_others(
    fake: Any, gpu: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two GPUs, as each may be lost by itself."""
    loader = fake.loader(memory=MEMORY, device="cuda")
    next(iter(loader))
    del loader
    gc.collect()
    assert transfer._ABANDONED
    gpu.lost = "CUDA error: unspecified launch failure"
    for other in install(monkeypatch, FakeCuda()):
        with fake.loader(memory=MEMORY, device="cuda") as loader:
            assert len(list(loader)) == 10
        assert not transfer._ABANDONED and transfer._LOST
        assert not other.registered


def test_loaders_of_two_threads_let_go_of_others_at_once(fake: Any, gpu: FakeCuda) -> None:
    """Whoever asks last finds nothing: neither an upload whose copies another one has seen done, nor a mapping."""
    loader = fake.loader(memory=MEMORY, device="cuda")
    next(iter(loader))
    del loader
    gc.collect()

    class Raced(deque):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 1

    for name, release in (("_ABANDONED", transfer._release_abandoned), ("_ENDED", registration.end_registrations)):
        module = transfer if name == "_ABANDONED" else registration
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, Raced())
            release()
    late = [upload for upload in transfer._ABANDONED if not upload.is_done()]
    transfer._release_abandoned()
    assert late and all(upload in transfer._ABANDONED for upload in late)


@pytest.mark.parametrize("tail", ["short", "valid"])
def test_tails_and_all_fields(fake: Any, gpu: FakeCuda, tail: str) -> None:
    fake.set(samples=95, broken=[])
    fields = ("valid", "label", "image", "index")
    with fake.loader(memory=MEMORY, tail=tail, fields=fields) as loader:
        expected = batches_of(loader)
    with fake.loader(memory=MEMORY, tail=tail, fields=fields, device="cuda") as loader:
        assert same(loop(gpu, loader), expected)


def test_labels_are_those_of_relabel(fake: Any, gpu: FakeCuda) -> None:
    """Of batches that were copied ahead, and of those that are mended on the host first."""
    fake.set(samples=95, broken=[3])
    options: dict[str, Any] = {"memory": MEMORY, "relabel": {label: label * 3 for label in range(100)}}
    options |= {"on_error": "skip", "max_errors": 9, "tail": "short"}
    with fake.loader(**options) as loader:
        expected = batches_of(loader)
    with fake.loader(**options, device="cuda") as loader:
        assert same(loop(gpu, loader), expected)
    assert not gpu.pageable


def test_a_label_that_relabel_does_not_know_is_told_with_its_batch(
    fake: Any, calm: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data without classes has any labels; here one of the sixth batch is not in the table."""
    known = relabel.Relabelling.change_labels

    def refuse(self: Any, labels: Any, valid: Any) -> Any:
        if 55 in labels:
            raise feedwater.DataError("no new label for 55")
        return known(self, labels, valid)

    fake.set(classes=100)
    monkeypatch.setattr(relabel.Relabelling, "change_labels", refuse)
    with fake.loader(memory=MEMORY, relabel=dict.fromkeys(range(100), 7), device="cuda") as loader:
        batches = iter(loader)
        for _ in range(5):
            assert next(batches)[1].tolist() == [7] * 10
        with pytest.raises(feedwater.DataError, match="no new label for 55"):
            next(batches)


@pytest.mark.parametrize(
    ("on_error", "tail", "floats"), [("skip", "valid", True), ("skip", "short", False), ("substitute", "valid", True)]
)
def test_broken_samples(fake: Any, gpu: FakeCuda, on_error: str, tail: str, floats: bool) -> None:
    from torchvision.transforms import v2

    fake.set(samples=95, broken=[3, 4, 41])
    more = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.4,), (0.3,))] if floats else []
    options: dict[str, Any] = {
        "transform": v2.Compose([v2.CenterCrop(8), *more]),
        "memory": 16 * 8192,
        "on_error": on_error,
        "max_errors": 10,
        "tail": tail,
        "fields": ("image", "label", "index", "valid") if tail == "valid" else ("image", "label", "index"),
    }
    with fake.loader(**options) as loader:
        expected = batches_of(loader)
    with fake.loader(**options, device="cuda") as loader:
        assert same(loop(gpu, loader), expected)


def test_pictures_of_different_sizes(fake: Any, calm: FakeCuda) -> None:
    from torchvision.transforms import v2

    fake.set(samples=95)
    ops = [v2.Resize(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    options: dict[str, Any] = {"transform": v2.Compose(ops), "tail": "valid"}
    options["fields"] = ("image", "valid")
    with fake.loader(**options) as loader:
        expected = [([one.clone() for one in images], valid.clone()) for images, valid in loader]
    with fake.loader(**options, device="cuda") as loader:
        seen = list(loader)
    assert len(seen) == len(expected) == 10
    for (images, valid), (ours, their_valid) in zip(seen, expected):
        assert same([images], [ours]) and torch.equal(valid, their_valid)


def test_a_state_goes_from_the_cpu_to_the_gpu_and_back(fake: Any, calm: FakeCuda) -> None:
    with fake.loader(shuffle=True) as loader:
        expected = batches_of(loader, 1)
    state: dict[str, Any] = {}
    seen = []
    for device in ("cpu", "cuda", "cpu", "cuda:0"):
        with fake.loader(shuffle=True, device=device) as loader:
            loader.load_state_dict(state)
            batches = iter(loader)
            seen += [[field.clone() for field in next(batches)] for _ in range(2)]
            state = loader.state_dict()
    assert same(seen, expected[:8])


def test_peek_gives_a_copy_and_consumes_nothing(fake: Any, calm: FakeCuda) -> None:
    with fake.loader(device="cuda") as loader:
        peeked = loader.peek()
        batch = next(iter(loader))
    assert same([peeked], [batch])
    assert peeked[0].data_ptr() != batch[0].data_ptr()


def test_batches_are_of_no_inference_mode(fake: Any, calm: FakeCuda) -> None:
    """Those whose copies began inside it neither: a later loop trains on them."""
    with fake.loader(memory=MEMORY, device="cuda") as loader:
        batches = iter(loader)
        with torch.inference_mode():
            given = [loader.peek(), next(batches), next(batches)]
        given += list(batches)
    assert not any(field.is_inference() for batch in given for field in batch)


def test_batch_transform_draws_the_same_numbers_again(fake: Any, calm: FakeCuda) -> None:
    drawn = []

    def transform(batch: Any, rng: Any) -> Any:
        drawn.append((torch.rand(1).item(), torch.rand(1, generator=calm.generator).item(), rng.random()))
        return batch

    before = calm.generator.get_state()
    for _ in range(2):
        with fake.loader(device="cuda", batch_transform=transform) as loader:
            batches_of(loader, 1)
    assert drawn[:10] == drawn[10:] and len(set(drawn)) == 10
    assert torch.equal(calm.generator.get_state(), before), "the program's own numbers go on where they were"


def test_python_is_moved_too(real: str, calm: FakeCuda, photos: Any) -> None:
    import python_functions

    options: dict[str, Any] = {"batch_size": 8, "python": python_functions.brighter, "python_workers": 1}
    transform = feedwater.transforms.Compose([feedwater.transforms.CenterCrop(16), feedwater.transforms.ToImage()])
    with feedwater.Loader(photos, transform, **options) as loader:
        expected = [[f.clone() for f in b] for b, _ in zip(loader, range(3))]
    with feedwater.Loader(photos, transform, **options, device="cuda") as loader:
        assert same([[f.clone() for f in b] for b, _ in zip(loader, range(3))], expected)
    assert calm.copied


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_no_gpu_is_said_in_one_sentence(fake: Any) -> None:
    with pytest.raises(ValueError, match=r"device='cuda': torch finds no CUDA GPU here") as raised:
        fake.loader(device="cuda")
    assert "\n" not in str(raised.value)


def test_other_devices_are_refused_with_what_to_do(fake: Any) -> None:
    for device in ("mps", "xpu:0", "meta", torch.device("xla"), "cuda:-1", "gpu", -1, True):
        with pytest.raises(ValueError, match=r"leave it out, and move each batch .* jax.device_put") as raised:
            fake.loader(device=device)
        assert str(raised.value).startswith(f"device={str(device) if isinstance(device, torch.device) else device!r}: ")
        assert '"cuda", "cuda:0"' in str(raised.value)


def test_a_loader_is_not_moved_afterwards(fake: Any) -> None:
    """As fastai's DataLoaders(train, valid).cuda() asks it to."""
    with fake.loader() as loader:
        for name in ("to", "cuda", "device"):
            with pytest.raises(
                AttributeError, match=f"no attribute '{name}'; a GPU for its batches is named by device="
            ):
                getattr(loader, name)
        with pytest.raises(AttributeError, match=r"no attribute 'pin'$"):
            loader.pin  # noqa: B018


def test_what_names_the_cpu(fake: Any) -> None:
    """Scripts make torch.device(kind, LOCAL_RANK), whatever the kind."""
    for device in (None, "cpu", "cpu:1", torch.device("cpu"), torch.device("cpu", 1)):
        with fake.loader(device=device) as loader:
            assert loader._config.device is None


def test_what_names_a_gpu(fake: Any, calm: FakeCuda) -> None:
    mesh = type("Mesh", (), {"device_type": "cuda"})()
    for name, devices in (("cuda:3", ("cuda:3", torch.device("cuda", 3), 3)), ("cuda", (torch.device("cuda"), mesh))):
        for device in devices:
            with fake.loader(device=device) as loader:
                assert loader._config.device == name
    with fake.loader(device="cuda") as loader:
        assert "device    cuda: copied from shared memory ahead of the loop" in loader.explain()


def test_a_gpu_that_is_not_there_is_told_at_the_first_batch(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feedwater._config.check_built", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with fake.loader(device="cuda:9") as loader, pytest.raises(ValueError, match="has 2 GPUs, cuda:0 to cuda:1"):
        next(iter(loader))


def test_no_memory_on_the_gpu_loses_nothing(fake: Any, calm: FakeCuda) -> None:
    with fake.loader(memory=MEMORY) as loader:
        expected = batches_of(loader, 1)
    seen = []
    with fake.loader(memory=MEMORY, device="cuda") as loader:
        batches = iter(loader)
        for number in range(10):
            if number % 3 == 2:
                calm.room = 1000
                while len(seen) < 10:  # the last ones may be there already
                    try:
                        seen.append([field.clone() for field in next(batches)])
                    except feedwater.DeviceError as error:
                        told = str(error)
                        break
                calm.room = 10**9
            if len(seen) == 10:
                break
            seen.append([field.clone() for field in next(batches)])
        assert "CUDA out of memory" in told and "up to 2 batches of 4,096 bytes" in told and "memory=16384" in told
        seen += [[field.clone() for field in batch] for batch in batches]
    assert same(seen, expected)


def test_no_memory_for_what_is_looked_up_loses_nothing(fake: Any, calm: FakeCuda) -> None:
    from torchvision.transforms import v2

    ops = [v2.CenterCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    options: dict[str, Any] = {"transform": v2.Compose(ops), "memory": 16 * 8192}
    with fake.loader(**options) as loader:
        expected = batches_of(loader, 1)
    calm.room = 0
    with fake.loader(**options, device="cuda") as loader:
        batches = iter(loader)
        with pytest.raises(feedwater.DeviceError, match=r"CUDA out of memory for a batch on cuda:0\. A smaller"):
            next(batches)
        calm.room = 1 << 30
        assert same([[field.clone() for field in batch] for batch in batches], expected)


def test_no_memory_for_what_python_made(real: str, calm: FakeCuda, photos: Any) -> None:
    import python_functions

    transform = feedwater.transforms.Compose([feedwater.transforms.CenterCrop(16), feedwater.transforms.ToImage()])
    options: dict[str, Any] = {"batch_size": 8, "python": python_functions.brighter, "python_workers": 1}
    calm.room = 0
    with feedwater.Loader(photos, transform, **options, device="cuda") as loader:
        with pytest.raises(feedwater.DeviceError, match=r"CUDA out of memory for a batch on cuda:0\. A smaller"):
            next(iter(loader))
        calm.room = 1 << 30
        assert len(next(iter(loader))[1]) == 8


def test_a_driver_that_is_lost_is_named_and_close_ends_the_agent(fake: Any, calm: FakeCuda) -> None:
    with fake.loader(memory=MEMORY, device="cuda") as loader:
        batches = iter(loader)
        next(batches)
        calm.lost = "CUDA error: an illegal memory access was encountered"
        with pytest.raises(feedwater.DeviceError, match=r"^cuda:0 does not take .*\. Start .* says: .*illegal"):
            while True:
                next(batches)
    fake.until(lambda: not fake.unreaped())


@pytest.mark.parametrize("call", ["is_capturing", "current_stream", "record_event", "await_event"])
def test_a_driver_that_is_lost_at_any_call_is_named(
    fake: Any, calm: FakeCuda, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A batch that was peeked at is handed over to another stream."""

    def fail(*_: Any) -> Any:
        raise torch.AcceleratorError("CUDA error: unspecified launch failure")

    with fake.loader(memory=MEMORY, device="cuda") as loader:
        loader.peek()
        calm.current = calm.new_stream("other")
        for name in (call,) if call != "is_capturing" else (call, "current_stream"):
            monkeypatch.setattr(calm, name, fail)
        with pytest.raises(feedwater.DeviceError, match=r"does not take a batch any more.*launch failure"):
            for _ in loader:
                pass


def test_what_was_noted_of_a_registration_that_was_cut_off_is_undone_once(
    calm: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Ctrl-C amid the call, after which the slot is registered again."""
    register, slots = calm.register_memory, Slots(2, 4096)

    def cut_off(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(calm, "register_memory", cut_off)
    with pytest.raises(KeyboardInterrupt):
        slots.register_slot(0, calm)
    monkeypatch.setattr(calm, "register_memory", register)
    assert not slots.register_slot(0, calm)
    slots.close()
    del slots
    registration.end_registrations()
    assert not calm.registered


def test_a_driver_that_is_lost_after_the_batch_was_made_is_named(
    fake: Any, calm: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(self: Any) -> None:
        raise torch.AcceleratorError("CUDA error: unspecified launch failure")

    with fake.loader(memory=MEMORY, device="cuda") as loader:
        batches = iter(loader)
        next(batches)
        with monkeypatch.context() as patch, pytest.raises(feedwater.DeviceError, match="does not take a batch"):
            patch.setattr(transfer.Transfer, "release_done", lost)
            next(batches)


def test_slots_begin_at_pages_of_this_system() -> None:
    """64 KiB on some ARM machines: what is registered of two slots has no page in common."""
    from feedwater._agent import slots

    assert slots.PAGE == mmap.PAGESIZE
    assert slots.align_stride(1) == mmap.PAGESIZE


def test_next_in_a_capture_is_refused_and_loses_nothing(fake: Any, calm: FakeCuda) -> None:
    with fake.loader(device="cuda") as loader:
        batches = iter(loader)
        first = [field.clone() for field in next(batches)]
        calm.capturing, before = True, (calm.main.submitted, len(calm.copied))
        with pytest.raises(feedwater.DeviceError, match="capture of a CUDA graph"):
            next(batches)
        assert (calm.main.submitted, len(calm.copied)) == before
        calm.capturing = False
        assert len(list(batches)) == 9
        assert len(first[1]) == 10


def test_the_first_next_in_a_capture_submits_nothing(fake: Any, calm: FakeCuda) -> None:
    """Nor does the table of values go to the GPU, whose upload waits and so ends the capture."""
    from torchvision.transforms import v2

    ops = [v2.CenterCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    with fake.loader(transform=v2.Compose(ops), device="cuda") as loader:
        calm.capturing = True
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(calm, "upload_constant", lambda _: pytest.fail("waits"))
            for ask in (lambda: next(iter(loader)), loader.peek):
                with pytest.raises(feedwater.DeviceError, match="capture of a CUDA graph"):
                    ask()
        calm.capturing = False
        assert len(list(loader)) == 10
        assert loader.state_dict()["epoch"] == 1


def test_close_in_a_capture_asks_the_gpu_nothing(
    fake: Any, gpu: FakeCuda, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Asking for an event ends the capture. What is copied keeps its memory until another Loader's next."""
    loader = fake.loader(memory=MEMORY, device="cuda")
    next(iter(loader))
    gpu.capturing = True
    with monkeypatch.context() as patch:
        for name in ("done", "wait"):
            patch.setattr(FakeEvent, name, lambda _: pytest.fail("asked"))
        loader.close()
    assert gpu.registered and not transfer._LOST and not caplog.records
    gpu.capturing = False
    gpu.drain()
    with fake.loader(memory=MEMORY, device="cuda") as other:
        next(iter(other))
    assert not gpu.registered


def test_a_refused_registration_is_one_warning_and_ordinary_memory(
    fake: Any, gpu: FakeCuda, caplog: pytest.LogCaptureFixture
) -> None:
    with fake.loader(memory=MEMORY) as loader:
        expected = batches_of(loader)
    gpu.refuse = "out of locked memory"
    with fake.loader(memory=MEMORY, device="cuda") as loader:
        assert same(loop(gpu, loader), expected)
    assert [r.message for r in caplog.records if "out of locked memory" in r.message] == [
        "the driver does not register shared memory (out of locked memory), so the loop waits for each copy to cuda:0: "
        "raise ulimit -l, or see docs/device.md"
    ]


def test_what_is_not_unregistered_stays_mapped_for_ever(gpu: FakeCuda, caplog: pytest.LogCaptureFixture) -> None:
    slots = Slots(2, 4096)
    slots.register_slot(1, gpu)
    gpu.refuse = "no"
    slots.close()
    del slots
    registration.end_registrations()
    assert "stay mapped" in caplog.text
    gpu.check_registrations()


def test_a_forked_child_calls_no_cuda(calm: FakeCuda) -> None:
    slots = Slots(2, 4096)
    slots.register_slot(0, calm)
    child = os.fork()
    if not child:
        calm.unregister_memory = lambda _: os._exit(3)  # type: ignore[method-assign, assignment]
        slots.close()
        del slots
        registration.end_registrations()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    slots.close()
    del slots
    registration.end_registrations()
    assert not calm.registered


@pytest.mark.parametrize("what", ["next", "iter", "peek", "close"])
@pytest.mark.parametrize("mode", [{"device": "cuda"}, {"pin_memory": True}])
def test_a_loader_in_a_forked_child_calls_no_cuda(
    fake: Any, gpu: FakeCuda, monkeypatch: pytest.MonkeyPatch, mode: dict[str, Any], what: str
) -> None:
    monkeypatch.setattr(runtime, "find_host", lambda _: gpu)
    loader = fake.loader(memory=MEMORY, **mode)
    batches = iter(loader)
    next(batches)
    asks = {"next": lambda: next(batches), "iter": lambda: next(iter(loader)), "peek": loader.peek}
    child = os.fork()
    if not child:
        for name in ("is_capturing", "check_alive", "current_stream", "current_streams", "finish_reads", "submit"):
            monkeypatch.setattr(gpu, name, lambda *_: os._exit(3))
        try:
            asks.get(what, loader.close)()
        except feedwater.ForkedError:
            os._exit(0)
        os._exit(0 if what == "close" else 4)
    assert os.waitpid(child, 0)[1] == 0
    loader.close()


def test_leases_keep_what_is_registered(calm: FakeCuda) -> None:
    from feedwater._agent.slots import Field

    slots = Slots(2, 4096)
    slots.register_slot(1, calm)
    tensor = torch.from_numpy(slots.lease_array(1, Field("image", "uint8", (8,), 0), 2))
    slots.close()
    del slots
    registration.end_registrations()
    assert calm.registered
    tensor.add_(1)
    del tensor
    registration.end_registrations()
    assert not calm.registered


# -- mutants: each fault is caught by the fake -------------------------------------------------------------------------


def free_early(upload: transfer.Upload) -> bool:
    """A slot freed before the GPU has read it."""
    return True


def wrong_stream(self: FakeCuda, pairs: Any) -> None:
    """Copies that wait for an event of a stream on which the memory was not used."""
    current, self.current = self.current, self.new_stream("wrong")
    self.submit(self.copies, self.record_event(self.current))
    self.current = current
    for target, source in pairs:
        self._copy(self._block_of(target), source.data_ptr(), source.numel() * source.element_size())


def forget_wait(self: FakeCuda, event: Any) -> None:
    """A loop that does not wait for the copy."""


def forget_keep(self: FakeCuda, tensor: Any, stream: Any) -> None:
    """Memory used on another stream than it was taken for, without telling the allocator."""


def run_mutant(fake: Any, gpu: FakeCuda, switch: bool = False) -> bool:
    """Whether the loop gets its batches whole."""
    fake.set(samples=200, window=4)
    with fake.loader(memory=MEMORY) as loader:
        expected = batches_of(loader, 1)
    others = [gpu.main, gpu.new_stream("other")]

    def step(_: Any) -> None:
        if switch:
            others.reverse()
            gpu.current = others[0]

    with fake.loader(memory=MEMORY, device="cuda") as loader:
        return same(loop(gpu, loader, 1, step), expected)


@pytest.mark.parametrize(
    ("target", "name", "mutant", "lag", "switch"),
    [
        (transfer.Upload, "is_done", free_early, ("copies",), False),
        (FakeCuda, "copy_to_gpu", wrong_stream, ("main",), False),
        (FakeCuda, "await_event", forget_wait, ("copies",), False),
        (FakeCuda, "keep_for_stream", forget_keep, ("other",), True),
    ],
)
def test_a_mutant_of_the_copies_is_caught(
    fake: Any, monkeypatch: pytest.MonkeyPatch, target: Any, name: str, mutant: Any, lag: Any, switch: bool
) -> None:
    for installed in install(monkeypatch, FakeCuda(lag)):
        assert run_mutant(fake, installed, switch)
    with monkeypatch.context() as patch:
        patch.setattr(target, name, mutant)
        for installed in install(patch, FakeCuda(lag)):  # a loop that waits long for a batch meets nobody's memory
            assert not all(run_mutant(fake, installed, switch) for _ in range(40))


def test_mutant_unregister_after_unmap(calm: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapping that its registration does not hold is gone when that is ended."""
    slots = Slots(2, 4096)
    slots.register_slot(0, calm)

    def unmap_first(self: registration.Registered) -> None:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(self._memory))
        registration._ENDED.append(registration._Ended(None, self._parts, self._owner))  # type: ignore[arg-type]

    monkeypatch.setattr(registration.Registered, "__del__", unmap_first)
    slots.close()
    slots = None  # type: ignore[assignment]
    with pytest.raises(Trap, match="was registered as"):
        registration.end_registrations()


def test_mutant_of_a_registration_that_outlives_its_mapping(calm: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is unregistered, and an anonymous mapping takes the old place."""
    slots = Slots(2, 4096)
    slots.register_slot(0, calm)
    address = next(iter(calm.registered))

    def forget(self: registration.Registered) -> None:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(self._memory))

    monkeypatch.setattr(registration.Registered, "__del__", forget)
    slots.close()
    slots = None  # type: ignore[assignment]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
    fixed = 0x100000 | mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # MAP_FIXED_NOREPLACE
    assert libc.mmap(address, 4096, 3, fixed, ctypes.c_size_t(-1).value, 0) == address
    with pytest.raises(Trap, match="was registered as"):
        calm.copy_to_gpu([(calm.allocate((8,), torch.uint8), torch.zeros(8, dtype=torch.uint8))])
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(4096))
