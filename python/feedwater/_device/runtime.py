"""What is needed of CUDA, through the torch that the program has imported. ROCm has the same names there.

The interface is small, so that a simulated GPU can stand in: tests/fake_cuda.py. Nothing here waits for the GPU, but
Event.wait. Any method may raise what the driver raises.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from .._common.gpu_streams import is_foreign, used_streams

__all__ = [
    "Cuda",
    "CudaHost",
    "Event",
    "Host",
    "Registrar",
    "Runtime",
    "check_built",
    "find_host",
    "find_runtime",
    "is_look_due",
]

log = logging.getLogger("feedwater")

PORTABLE = 1
"""cudaHostRegisterPortable: the memory counts as pinned for every GPU of the process."""
LOOK_EVERY = 1024
"""Calls between two looks at what the program uses; the first looks come at calls 1, 2, 4, 8 …"""
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""By which GPUs are hidden from a process; an empty one hides all."""
NO_DEVICE = 127
"""The number of a GPU that no machine has: device indices are bytes with a sign."""


class Event(Protocol):
    """A point in a stream's work. It is reached when the stream has done all that was submitted before."""

    def done(self) -> bool:
        """Whether it is reached; does not wait."""
        ...

    def wait(self) -> None:
        """Blocks until it is reached."""
        ...


class Registrar(Protocol):
    """Who tells the driver of the host's memory."""

    def register_memory(self, address: int, nbytes: int) -> str:
        """Tells the driver of memory that copies may read; why it refuses, or ""."""
        ...

    def unregister_memory(self, address: int) -> bool:
        """The driver forgets it; whether it did."""
        ...

    def is_capturing(self) -> bool:
        """Whether what the calling thread submits now becomes part of a CUDA graph."""
        ...

    def finish_reads(self) -> None:
        """Waits until no copy reads memory that nobody holds any more, on whatever stream."""
        ...


class Runtime(Registrar, Protocol):
    """One GPU, and a stream of ours on it that copies. Memory of the host is given as tensors of the CPU."""

    name: str
    """As torch names the GPU."""

    def current_stream(self) -> Any:
        """The stream that the calling thread uses now; streams compare by what they are."""
        ...

    @property
    def generator(self) -> Any:
        """The GPU's generator of random numbers."""
        ...

    def allocate(self, shape: Iterable[int], dtype: Any) -> Any:
        """A tensor on the GPU, of torch's allocator, for the current stream."""
        ...

    def upload_constant(self, tensor: Any) -> Any:
        """A copy on the GPU that is there when this returns. May wait."""
        ...

    def copy_to_gpu(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Copies into the first of each pair from the second, memory of the host, in our stream.

        The stream first waits for all that the current one has to do now: what the memory was used for before.
        """
        ...

    def record_copies(self) -> Event:
        """An event in our stream, behind the copies submitted so far."""
        ...

    def record_event(self, stream: Any) -> Event:
        """An event in a stream of the program."""
        ...

    def await_event(self, event: Any) -> None:
        """The current stream goes on when the event is reached; the host does not wait."""
        ...

    def finds_others(self, streams: list[Any]) -> bool:
        """Whether tensors are alive on this GPU that were made on further streams. May cost a millisecond."""
        ...

    def keep_for_stream(self, tensor: Any, stream: Any) -> None:
        """The tensor's memory is not used again before that stream has done what it has to do when the tensor dies.

        Nothing is done for one that does not lie on the GPU.
        """
        ...

    def launch(self, work: Callable[[], Any]) -> None:
        """Calls work, which submits work to the current stream."""
        ...

    def pin_copy(self, tensor: Any) -> Any:
        """A copy in pinned memory, which is kept until copies from it are done."""
        ...


class Host(Registrar, Protocol):
    """The GPUs that the program copies to by itself."""

    def current_streams(self) -> list[Any]:
        """The current stream of each GPU that this process uses now, and the default one, each once."""
        ...

    def lasts(self, stream: Any) -> bool:
        """Whether nobody destroys the stream as long as the process lives."""
        ...

    def record_event(self, stream: Any) -> Event:
        """An event in a stream, behind what was submitted there so far."""
        ...

    def finds_others(self, streams: list[Any]) -> bool:
        """Whether tensors are alive that were made on further streams. May cost a millisecond."""
        ...

    def pin_tensor(self, tensor: Any) -> Any:
        """The tensor if it lies in pinned memory, or on a GPU; else a copy in pinned memory."""
        ...


class _CudaEvent:
    """An event of torch.cuda."""

    __slots__ = ("_event",)

    def __init__(self, event: Any) -> None:
        self._event = event

    def done(self) -> bool:
        return bool(self._event.query())

    def wait(self) -> None:
        self._event.synchronize()

    def hold_stream(self, stream: Any) -> None:
        """That stream waits for it."""
        stream.wait_event(self._event)


class _CudaRegistrar:
    """Registers memory by torch.cuda.cudart(), and tells of streams."""

    def __init__(self, torch: Any, device: Any = None) -> None:
        self._torch, self._cuda, self._device = torch, torch.cuda, device
        """The device is that of calls to the driver; None: the current one."""

    def is_capturing(self) -> bool:
        return bool(self._cuda.is_current_stream_capturing())

    def record_event(self, stream: Any) -> _CudaEvent:
        return _CudaEvent(stream.record_event())

    def register_memory(self, address: int, nbytes: int) -> str:
        with self._cuda.device(self._device):
            code = int(self._cuda.cudart().cudaHostRegister(address, nbytes, PORTABLE))
            return "" if code == 0 else self._take_error(code)

    def unregister_memory(self, address: int) -> bool:
        with self._cuda.device(self._device):
            code = int(self._cuda.cudart().cudaHostUnregister(address))
            if code:
                self._take_error(code)
            return code == 0

    def _find_used(self) -> set[tuple[int, int]]:
        """Device and stream of what is alive. Empty where the allocator does not tell, as cudaMallocAsync and those
        that are plugged in.
        """
        try:
            return used_streams(self._cuda)
        except (RuntimeError, NotImplementedError):
            return set()

    def _take_error(self, code: int) -> str:
        """The runtime's words for an error code. The error is forgotten, or the program's next launch would report it.

        torch takes the runtime's last error whenever a call that it checks fails, and this one does.
        """
        try:
            self._cuda.set_device(NO_DEVICE)
        except RuntimeError:
            pass
        cudart = self._cuda.cudart()
        try:
            return str(cudart.cudaGetErrorString(cudart.cudaError(code)))
        except (TypeError, ValueError):
            return f"error {code}"


class Cuda(_CudaRegistrar):
    """A Runtime by torch.cuda."""

    def __init__(self, torch: Any, index: int) -> None:
        super().__init__(torch, torch.device("cuda", index))
        self.name = str(self._device)
        self._copies = torch.cuda.Stream(self._device)

    def current_stream(self) -> Any:
        return self._cuda.current_stream(self._device)

    @property
    def generator(self) -> Any:
        return self._cuda.default_generators[self._device.index]

    def allocate(self, shape: Iterable[int], dtype: Any) -> Any:
        return self._torch.empty(tuple(shape), dtype=dtype, device=self._device)

    def upload_constant(self, tensor: Any) -> Any:
        return tensor.to(self._device)

    def copy_to_gpu(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        self._copies.wait_stream(self.current_stream())
        with self._cuda.stream(self._copies):
            for target, source in pairs:
                target.copy_(source, non_blocking=True)

    def record_copies(self) -> _CudaEvent:
        return self.record_event(self._copies)

    def await_event(self, event: _CudaEvent) -> None:
        event.hold_stream(self.current_stream())

    def finds_others(self, streams: list[Any]) -> bool:
        return any(place[0] == self._device.index for place in self._find_used() - _places_of(streams))

    def keep_for_stream(self, tensor: Any, stream: Any) -> None:
        if tensor.is_cuda:
            tensor.record_stream(stream)

    def launch(self, work: Callable[[], Any]) -> None:
        with self._cuda.device(self._device):
            work()

    def pin_copy(self, tensor: Any) -> Any:
        return tensor.pin_memory()

    def finish_reads(self) -> None:
        """Whoever holds memory here holds it until it was read."""


class CudaHost(_CudaRegistrar):
    """A Host by torch.cuda."""

    def __init__(self, torch: Any) -> None:
        super().__init__(torch)
        self._in_use: Callable[[int], bool] = torch._C._cuda_hasPrimaryContext
        """Whether this process uses a GPU. It asks the driver, whatever the allocator is, and costs about nothing."""

    def current_streams(self) -> list[Any]:
        cuda, current = self._cuda, self._cuda.current_device()
        used = [index for index in range(cuda.device_count()) if index == current or self._in_use(index)]
        streams = []
        for index in used:
            now, default = cuda.current_stream(index), cuda.default_stream(index)
            streams += [now] if now == default else [now, default]
        return streams

    def lasts(self, stream: Any) -> bool:
        return not is_foreign(stream)

    def finds_others(self, streams: list[Any]) -> bool:
        return bool(self._find_used() - _places_of(streams))

    def pin_tensor(self, tensor: Any) -> Any:
        return tensor if not tensor.is_cpu or tensor.is_pinned() else tensor.pin_memory()

    def finish_reads(self) -> None:
        for index in {stream.device_index for stream in self.current_streams()}:
            self._cuda.synchronize(index)  # of all streams: batches may be copied on any


def _places_of(streams: list[Any]) -> set[tuple[int, int]]:
    return {(stream.device_index, stream.cuda_stream) for stream in streams}


def is_look_due(count: int) -> bool:
    """Whether that call, counted from 1, looks again at what the program uses, which costs more than the others do."""
    return count & (count - 1) == 0 or not count % LOOK_EVERY


def list_hiding() -> list[str]:
    """Variables of the environment that say which GPUs this process sees, with their values."""
    return [f"{name} is {os.environ[name]!r}" for name in VISIBLE if name in os.environ]


def check_built(torch: Any, wanted: str) -> None:
    """Raises ValueError if this torch has no GPU to make batches for. Starts nothing that a fork would break."""
    if not torch.backends.cuda.is_built():
        reason = f"this torch ({torch.__version__}) is built without CUDA"
    elif not torch.cuda.device_count():
        reason = "torch finds no CUDA GPU here, torch.cuda.device_count() is 0"
        reason += "".join(f", and {hidden}" for hidden in list_hiding())
    else:
        return
    raise ValueError(
        f'device={wanted!r}: {reason}. Leave device= out, or say "cpu", and batches lie in the CPU\'s memory'
    )


def find_host(torch: Any) -> Host | None:
    """The GPUs of this process; None before the program has begun to use them."""
    return CudaHost(torch) if torch.cuda.is_initialized() else None


def find_runtime(torch: Any, wanted: str) -> Runtime:
    """The GPU that "cuda" means now, the current one, or "cuda:1". Raises ValueError if there is none."""
    cuda = torch.cuda
    _, _, number = wanted.partition(":")
    index = int(number) if number else int(cuda.current_device())
    if index >= cuda.device_count():
        raise ValueError(
            f"device={wanted!r}: this process has {cuda.device_count()} GPUs, cuda:0 to cuda:{cuda.device_count() - 1}"
        )
    _note_sharing(wanted, index, cuda.device_count())
    return Cuda(torch, index)


def _note_sharing(wanted: str, index: int, count: int) -> None:
    """Tells of ranks that share a GPU, as they may, and do not mean to where nobody called set_device."""
    local, ranks = (os.environ.get(name, "") for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    if wanted == "cuda" and local.isdigit() and index != int(local) < count:
        log.warning(
            "LOCAL_RANK is %s, and batches come to cuda:%d, which is torch.cuda.current_device(). If that is not "
            "meant, call torch.cuda.set_device(%s) before the first batch",
            local,
            index,
            local,
        )
    elif ranks.isdigit() and int(ranks) > count:
        log.info("%s ranks of this machine share %d GPU(s): each has its own batches there", ranks, count)
