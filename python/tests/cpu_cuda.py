"""torch.cuda on a CPU, as far as bench/gpu and frameworks use it: so that each line runs before a GPU is had.

What is submitted is done at once. A graph that was captured does its out-of-place and in-place operations again when it
is replayed; one with a backward pass in it does nothing. Batches of Loaders come through fake_cuda.FakeCuda. What lies
in its memory is on the GPU: it is not moved there again, and numpy cannot read it. All else is on the host.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fake_cuda import FakeCuda
from torch.overrides import TorchFunctionMode


class Device(FakeCuda):
    """The GPU: refuses what a driver refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: list[tuple[int, ...]] = []
        """Shapes of what the program itself moved here from the host."""

    def holds(self, tensor: Any) -> bool:
        """Whether the tensor lies in the GPU's memory."""
        return self._find_block(tensor) is not None

    def register_memory(self, address: int, nbytes: int) -> str:
        taken = any(at < address + nbytes and address < at + size for at, (size, _) in self.registered.items())
        return "already registered" if taken else super().register_memory(address, nbytes)

    def unregister_memory(self, address: int) -> bool:
        return address in self.registered and super().unregister_memory(address)


class Event:
    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self, stream: Any = None) -> None:
        self.at = time.perf_counter()

    def query(self) -> bool:
        return True

    def elapsed_time(self, later: Event) -> float:
        return (later.at - self.at) * 1e3


class Stream:
    handles = itertools.count(1)

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device_index, self.cuda_stream = 0, next(Stream.handles)
        self.stream_id = -self.cuda_stream

    def wait_stream(self, other: Stream) -> None:
        """Everything is done already."""

    def query(self) -> bool:
        return True


class Graph:
    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., Any], Any, Any, Any]] = []

    def replay(self) -> None:
        if any(func is torch.Tensor.backward for func, *_ in self.calls):
            return
        with torch._C.DisableTorchFunction(), torch.no_grad():
            for func, args, kwargs, made in self.calls:
                again = func(*args, **kwargs)
                if isinstance(made, torch.Tensor) and again is not made:
                    made.copy_(again)


class OnCpu(TorchFunctionMode):
    """Tensors of "cuda" lie in the CPU's memory."""

    def __init__(self, gpu: Device) -> None:
        super().__init__()
        self.gpu = gpu
        self.graph: Graph | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.device:
            return func(*args, **kwargs)
        kwargs.pop("pin_memory", None)
        name = getattr(func, "__name__", "")
        if func == torch.Tensor.is_cuda.__get__:  # type: ignore[attr-defined]
            return True
        if name == "is_pinned":
            return self.gpu.reads(args[0].data_ptr(), args[0].nbytes)
        if name in ("cuda", "to", "cpu", "numpy", "__array__"):
            args = (self._fetch(name, args, kwargs), *args[1:])
        if name == "cuda":
            return args[0]
        args = tuple("cpu" if _is_cuda(one) else one for one in args)
        kwargs = {key: "cpu" if _is_cuda(one) else one for key, one in kwargs.items()}
        made = func(*args, **kwargs)
        if self.graph is not None:
            self.graph.calls.append((func, args, kwargs, made))
        return made

    def _fetch(self, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """The tensor that is moved or read, or a copy if it is moved over the bus. Notes what is moved here."""
        tensor, there = args[0], self.gpu.holds(args[0])
        wanted = [*args[1:], *kwargs.values()]
        if name in ("numpy", "__array__") and there:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")
        if name == "cpu" or any(str(one).startswith("cpu") for one in wanted):
            return tensor.clone() if there else tensor
        if there or not (name == "cuda" or any(_is_cuda(one) for one in wanted)):
            return tensor
        self.gpu.moved.append(tuple(tensor.shape))
        return tensor.clone() if name == "cuda" or kwargs.get("non_blocking") else tensor


def _is_cuda(value: Any) -> bool:
    return (isinstance(value, str) and value.startswith("cuda")) or (
        isinstance(value, torch.device) and value.type == "cuda"
    )


class Cuda:
    """In place of functions of torch.cuda."""

    def __init__(self, mode: OnCpu) -> None:
        self.mode, self.now, self.default = mode, Stream(), None
        self.default = self.now

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self.now = self.now, stream
        yield
        self.now = before

    @contextmanager
    def graph(self, graph: Graph, **_: Any) -> Iterator[None]:
        self.mode.graph, self.mode.gpu.capturing = graph, True
        yield
        self.mode.graph, self.mode.gpu.capturing = None, False

    def limit(self, fraction: float) -> None:
        self.mode.gpu.room = 1e18 if fraction == 1.0 else 0

    def functions(self) -> dict[str, Any]:
        return {
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "init": lambda: None,
            "is_bf16_supported": lambda *_, **__: True,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "get_device_name": lambda *_: "no GPU, but a CPU",
            "get_device_properties": lambda *_: SimpleNamespace(uuid="none", major=9, minor=0, total_memory=1 << 36),
            "set_device": lambda _: None,
            "memory_stats": lambda *_: {},
            "get_allocator_backend": lambda: "native",
            "memory_snapshot": lambda **_: [],
            "synchronize": lambda *_: None,
            "empty_cache": lambda: None,
            "set_sync_debug_mode": lambda _: None,
            "set_per_process_memory_fraction": self.limit,
            "is_current_stream_capturing": lambda: self.mode.gpu.capturing,
            "current_stream": lambda *_, **__: self.now,
            "default_stream": lambda *_, **__: self.default,
            "_sleep": lambda _: None,
            "Event": Event,
            "Stream": Stream,
            "CUDAGraph": Graph,
            "stream": self.stream,
            "graph": self.graph,
        }


@contextmanager
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """torch.cuda is on the CPU inside, and Loaders bring batches there."""
    from feedwater._device import runtime

    gpu = Device()
    mode = OnCpu(gpu)
    cuda = Cuda(mode)
    for name, function in cuda.functions().items():
        monkeypatch.setattr(torch.cuda, name, function)
    if hasattr(torch, "accelerator"):  # optimizers ask it whether a graph is captured
        stream = SimpleNamespace(is_capturing=lambda: gpu.capturing)
        monkeypatch.setattr(torch.accelerator, "current_stream", lambda *_: stream, raising=False)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda *_: None)
    monkeypatch.setattr("feedwater._config.check_built", lambda *_: None)
    monkeypatch.setattr(runtime, "find_runtime", lambda *_: gpu)
    monkeypatch.setattr(runtime, "find_host", lambda _: gpu)
    with mode:
        yield gpu
