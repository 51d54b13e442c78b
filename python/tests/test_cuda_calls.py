"""What is called of torch.cuda, held against a torch.cuda that keeps its last error as CUDA's runtime does."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from feedwater._device.runtime import Cuda, CudaHost, _note_sharing, check_built, find_runtime, is_look_due

REFUSED = 712


class Driver:
    """Remembers the last error until somebody takes it, and the next launch reports it."""

    def __init__(self) -> None:
        self.last = 0
        self.code = 0
        self.called: list[tuple[Any, ...]] = []

    def answer(self, *call: Any) -> int:
        self.called.append(call)
        self.last = self.code or self.last
        return self.code

    def launch(self) -> None:
        if self.last:
            raise RuntimeError(f"a kernel of the program reports error {self.last}")

    def set_device(self, index: int) -> None:
        assert index == 127
        self.last = 0  # torch takes it when it reports its own
        raise RuntimeError("invalid device ordinal")


def torch_of(driver: Driver, count: int = 2) -> Any:
    cudart = SimpleNamespace(
        cudaHostRegister=lambda *a: driver.answer("register", *a),
        cudaHostUnregister=lambda *a: driver.answer("unregister", *a),
        cudaError=lambda code: code,
        cudaGetErrorString=lambda code: f"words for {code}",
    )

    def stream_of(index: int) -> Any:
        return SimpleNamespace(device_index=index, cuda_stream=0, stream_id=0)

    cuda = SimpleNamespace(
        current_stream=stream_of,
        default_stream=stream_of,
        synchronize=lambda index: driver.answer("device", index),
        Stream=lambda device: f"stream of {device}",
        device=lambda device: nullcontext(),
        cudart=lambda: cudart,
        set_device=driver.set_device,
        current_device=lambda: 1,
        device_count=lambda: count,
    )
    backends = SimpleNamespace(cuda=SimpleNamespace(is_built=lambda: True))
    private = SimpleNamespace(_cuda_hasPrimaryContext=lambda index: True)
    return SimpleNamespace(
        cuda=cuda, _C=private, backends=backends, device=lambda kind, index: f"{kind}:{index}", __version__="9"
    )


def test_memory_is_registered_for_every_gpu_of_the_process() -> None:
    driver = Driver()
    gpu = Cuda(torch_of(driver), 1)
    assert gpu.register_memory(4096, 8192) == ""
    assert gpu.unregister_memory(4096)
    assert driver.called == [("register", 4096, 8192, 1), ("unregister", 4096)]


def test_a_refusal_leaves_no_error_behind() -> None:
    driver = Driver()
    gpu = Cuda(torch_of(driver), 0)
    driver.code = REFUSED
    assert gpu.register_memory(4096, 8192) == "words for 712"
    driver.launch()
    assert not gpu.unregister_memory(4096)
    driver.launch()


def test_mutant_of_an_error_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr(Cuda, "_take_error", lambda self, code: f"error {code}")
    driver.code = REFUSED
    Cuda(torch_of(driver), 0).register_memory(4096, 8192)
    with pytest.raises(RuntimeError, match="of the program reports error 712"):
        driver.launch()


def test_cuda_is_the_current_gpu_and_a_number_is_that_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    torch = torch_of(Driver())
    assert [find_runtime(torch, name).name for name in ("cuda", "cuda:0")] == ["cuda:1", "cuda:0"]
    with pytest.raises(ValueError, match="has 2 GPUs, cuda:0 to cuda:1"):
        find_runtime(torch, "cuda:2")
    assert not caplog.records


def test_ranks_on_one_gpu_are_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    find_runtime(torch_of(Driver()), "cuda")
    assert "LOCAL_RANK is 0, and batches come to cuda:1" in caplog.text
    caplog.clear()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with caplog.at_level("INFO", "feedwater"):
        _note_sharing("cuda:0", 0, 1)
    assert "2 ranks of this machine share 1 GPU" in caplog.text


def test_a_torch_without_cuda_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = torch_of(Driver(), count=0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(ValueError, match=r"finds no CUDA GPU here.* is 0, and CUDA_VISIBLE_DEVICES is ''\. Leave"):
        check_built(torch, "cuda")
    torch.backends.cuda.is_built = lambda: False
    with pytest.raises(ValueError, match=r"this torch \(9\) is built without CUDA"):
        check_built(torch, "cuda")


def test_looks_come_ever_more_rarely_up_to_a_bound() -> None:
    due = [count for count in range(1, 4100) if is_look_due(count)]
    assert due == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096]


def test_others_are_streams_of_tensors_that_are_alive() -> None:
    def finds(device: int, stream: int, size: int = 512, pool: tuple[int, int] = (0, 0)) -> bool:
        told = {"device": device, "stream": stream, "allocated_size": size, "segment_pool_id": pool}
        torch = torch_of(Driver())
        torch.cuda.memory_snapshot = lambda include_traces: [] if include_traces else [told]
        return CudaHost(torch).finds_others([SimpleNamespace(device_index=1, cuda_stream=7)])

    assert not finds(1, 7)
    assert finds(1, 8) and finds(0, 7)
    assert not finds(1, 8, size=0)
    assert not finds(1, 8, pool=(0, 1))  # of a CUDA graph


def test_others_of_a_gpu_are_those_on_it() -> None:
    def finds(device: int, stream: int) -> bool:
        torch = torch_of(Driver())
        torch.device = lambda kind, index: SimpleNamespace(index=index)
        told = [{"device": device, "stream": stream, "allocated_size": 512}]
        torch.cuda.memory_snapshot = lambda include_traces: told
        return Cuda(torch, 1).finds_others([SimpleNamespace(device_index=1, cuda_stream=7)])

    assert finds(1, 8)
    assert not finds(1, 7) and not finds(0, 8)


def test_an_older_torch_tells_all_that_it_recorded_too() -> None:
    torch = torch_of(Driver())
    torch.cuda.memory_snapshot = lambda: [{"device": 1, "stream": 8, "allocated_size": 512}]
    assert CudaHost(torch).finds_others([SimpleNamespace(device_index=1, cuda_stream=7)])


def test_allocators_that_tell_of_no_memory_are_no_error_of_next() -> None:
    """cudaMallocAsync has no snapshot; an allocator that is plugged in has no statistics either."""
    torch = torch_of(Driver(), count=3)

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("Calling snapshot with backend:cudaMallocAsync is not meaningful")

    torch.cuda.memory_snapshot = torch.cuda.memory_reserved = torch.cuda.memory_stats = refuse
    host = CudaHost(torch)
    assert not host.finds_others([])
    assert [stream.device_index for stream in host.current_streams()] == [0, 1, 2]


def test_a_gpu_that_comes_into_use_is_fenced_from_then_on() -> None:
    """However long the program did without it."""
    torch, used = torch_of(Driver(), count=3), {1}
    torch._C = SimpleNamespace(_cuda_hasPrimaryContext=lambda index: index in used)
    host = CudaHost(torch)
    for _ in range(5):
        assert [stream.device_index for stream in host.current_streams()] == [1]
    used.add(2)
    assert [stream.device_index for stream in host.current_streams()] == [1, 2]


def test_the_default_stream_is_asked_beside_another_one() -> None:
    torch = torch_of(Driver())
    torch.cuda.current_stream = lambda index: SimpleNamespace(device_index=index, cuda_stream=7, stream_id=7)
    streams = CudaHost(torch).current_streams()
    assert [(stream.device_index, stream.cuda_stream) for stream in streams] == [(0, 7), (0, 0), (1, 7), (1, 0)]
    assert [CudaHost(torch).lasts(stream) for stream in streams] == [False, True] * 2, "a library may destroy its own"


def test_tensors_of_the_cpu_have_no_stream() -> None:
    """What batch_transform makes may lie anywhere."""
    gpu = Cuda(torch_of(Driver()), 0)
    gpu.keep_for_stream(SimpleNamespace(is_cuda=False), None)
    told: list[Any] = []
    gpu.keep_for_stream(SimpleNamespace(is_cuda=True, record_stream=told.append), "stream")
    assert told == ["stream"]


def test_memory_is_unmapped_when_no_stream_can_read_it() -> None:
    """Streams that were declared too, which the current ones do not wait for."""
    driver = Driver()
    CudaHost(torch_of(driver)).finish_reads()
    assert driver.called == [("device", 0), ("device", 1)]


def test_what_is_called_is_there_in_this_torch() -> None:
    """Names, and how many arguments they take: the private ones, and those that no document promises."""
    import inspect

    torch = pytest.importorskip("torch")
    assert torch._C._cuda_hasPrimaryContext
    inspect.signature(torch.cuda.memory_snapshot).bind(include_traces=False)
    inspect.signature(torch.cuda.synchronize).bind(0)
    for name in ("record_event", "wait_event", "wait_stream", "query", "synchronize", "cuda_stream", "device_index"):
        assert hasattr(torch.cuda.Stream, name), name
    cudart = torch._C._cudart if torch.backends.cuda.is_built() else None
    if cudart is not None:
        assert cudart.cudaHostRegister.__doc__.count("arg") == 3
        assert "already mapped" in cudart.cudaGetErrorString(cudart.cudaError(REFUSED))
