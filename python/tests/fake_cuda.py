"""A GPU in this process's memory that does what CUDA allows and users hope it does not: a Runtime for tests.

Streams are queues. A stream in `lag` does nothing before somebody waits for it, all others run as far as they can; so
whatever is not ordered by an event happens in the wrong order. Memory comes from a pool as torch's allocator has it:
what dies is used again at once on the stream that it was taken for. Host memory is read when a copy runs, by address,
so a slot that is free too early is read with the next batch in it. Registrations are held against what is mapped.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from feedwater._device import registration, runtime, transfer

POISON = 0xEE


class Trap(AssertionError):
    """Something was done that a driver answers with wrong data, or not at all."""


class FakeStream:
    def __init__(self, name: str) -> None:
        self.name, self.cuda_stream = name, id(self)
        self.queue: deque[Callable[[], Any] | FakeEvent] = deque()
        self.submitted = self.executed = 0


class FakeEvent:
    def __init__(self, gpu: FakeCuda, stream: FakeStream) -> None:
        self.gpu, self.stream, self.place = gpu, stream, stream.submitted

    def done(self) -> bool:
        self.gpu.check_alive()
        return self.stream.executed >= self.place

    def wait(self) -> None:
        self.gpu.check_alive()
        self.gpu.waits += not self.done()
        self.gpu.run_until(self.stream, self.place)


class Block:
    """Memory of the GPU."""

    def __init__(self, stream: FakeStream, nbytes: int) -> None:
        self.stream, self.memory = stream, np.full(max(1, nbytes), POISON, np.uint8)
        self.address = self.memory.ctypes.data
        self.users: list[FakeStream] = []

    def alias(self, tensor: Any) -> Any:
        """The same tensor, which does not keep the memory from being used again."""
        flat = torch.from_numpy(self.memory).view(tensor.dtype)
        first = (tensor.data_ptr() - self.address) // tensor.element_size()
        return flat.as_strided(tensor.shape, tensor.stride(), first)


class _Owner:
    def __init__(self, block: Block, nbytes: int) -> None:
        shape = (nbytes,)
        self.__array_interface__ = {"data": (block.address, False), "shape": shape, "typestr": "|u1", "version": 3}


class FakeCuda:
    """The runtime of one GPU."""

    name = "cuda:0"

    def __init__(self, lag: Iterable[str] = ()) -> None:
        self.lag = set(lag)
        self.main, self.copies = FakeStream("main"), FakeStream("copies")
        self.streams = [self.main, self.copies]
        self.current = self.main
        self.generator = torch.Generator()
        self.capturing = False
        self.others: set[str] = set()
        """Names of streams that tensors of the program were made on."""
        self.refuse = self.lost = ""
        self.room = math.inf
        """Bytes that may still be allocated."""
        self.waits = 0
        """How often the host waited for the GPU, blocked in a call."""
        self.pageable = 0
        """Copies from memory that the driver cannot read by itself."""
        self.registered: dict[int, tuple[int, str]] = {}
        self.registrations = 0
        self.copied: list[int] = []
        """Bytes of each copy."""
        self._pool: dict[tuple[FakeStream, int], list[Block]] = {}
        self._blocks: dict[int, Block] = {}
        self._later: list[tuple[Block, list[FakeEvent]]] = []
        self._pinned: dict[int, Any] = {}

    # -- streams ------------------------------------------------------------------------------------------------------

    def new_stream(self, name: str) -> FakeStream:
        self.streams.append(FakeStream(name))
        return self.streams[-1]

    def submit(self, stream: FakeStream, work: Callable[[], Any] | FakeEvent) -> None:
        self.check_alive()
        stream.queue.append(work)
        stream.submitted += 1
        self.progress()

    def progress(self) -> None:
        """All streams that do not lag run as far as they can."""
        moved = True
        while moved:
            moved = False
            for stream in self.streams:
                while stream.queue and stream.name not in self.lag and self._run_one(stream):
                    moved = True

    def _run_one(self, stream: FakeStream) -> bool:
        work = stream.queue[0]
        if isinstance(work, FakeEvent):
            if work.stream.executed < work.place:
                return False
        else:
            work()
        stream.queue.popleft()
        stream.executed += 1
        return True

    def run_until(self, stream: FakeStream, place: int) -> None:
        while stream.executed < place:
            work = stream.queue[0]
            if isinstance(work, FakeEvent) and work.stream.executed < work.place:
                self.run_until(work.stream, work.place)
            else:
                self._run_one(stream)
        self.progress()

    def drain(self) -> None:
        for stream in self.streams:
            self.run_until(stream, stream.submitted)

    def read_later(self, tensor: Any, into: list[Any]) -> None:
        """A kernel of the program: reads the tensor when the current stream comes to it. Does not keep it alive."""
        alias = self._block_of(tensor).alias(tensor)
        self.submit(self.current, lambda: into.append(alias.clone()))

    def copy_later(self, target: Any, source: Any) -> None:
        """A kernel of the program: target.copy_(source) when the current stream comes to it."""
        into, of = (self._block_of(tensor).alias(tensor) for tensor in (target, source))
        self.submit(self.current, lambda: into.copy_(of))

    def read_now(self, tensor: Any) -> Any:
        """tensor.cpu(), and item(): the host waits for the current stream, and for no other."""
        seen: list[Any] = []
        self.read_later(tensor, seen)
        self.run_until(self.current, self.current.submitted)
        return seen[0]

    def check_alive(self) -> None:
        if self.lost:
            raise torch.AcceleratorError(self.lost)

    # -- memory -------------------------------------------------------------------------------------------------------

    def _find_block(self, tensor: Any) -> Block | None:
        at, blocks = tensor.data_ptr(), self._blocks.values()
        return next((block for block in blocks if block.address <= at < block.address + len(block.memory)), None)

    def _block_of(self, tensor: Any) -> Block:
        found = self._find_block(tensor)
        if found is None:
            raise Trap(f"{tensor.data_ptr():#x} is no memory of the GPU")
        return found

    def _free(self, block: Block) -> None:
        users, block.users = block.users, []
        if users:
            self._later.append((block, [FakeEvent(self, stream) for stream in users]))
        else:
            self._pool.setdefault((block.stream, len(block.memory)), []).append(block)

    def _take_block(self, nbytes: int) -> Block:
        ready = [(block, events) for block, events in self._later if all(event.done() for event in events)]
        self._later = [entry for entry in self._later if entry not in ready]
        for block, _ in ready:
            self._free(block)
        spare = self._pool.get((self.current, max(1, nbytes)))
        if not spare:
            block = Block(self.current, nbytes)
            self._blocks[block.address] = block
            return block
        block = spare.pop()
        self.submit(self.current, lambda: block.memory.fill(POISON))  # whoever uses it next on this stream
        return block

    # -- feedwater._device.runtime.Runtime ----------------------------------------------------------------------------

    def is_capturing(self) -> bool:
        return self.capturing

    def current_stream(self) -> FakeStream:
        return self.current

    def allocate(self, shape: Iterable[int], dtype: Any) -> Any:
        self.check_alive()
        shape = tuple(shape)
        nbytes = math.prod(shape) * torch.empty(0, dtype=dtype).element_size()
        if nbytes > self.room:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate much")
        block = self._take_block(nbytes)
        owner = _Owner(block, nbytes)
        weakref.finalize(owner, self._free, block)
        return torch.from_numpy(np.asarray(owner)).view(dtype).view(shape)

    def upload_constant(self, tensor: Any) -> Any:
        made = self.allocate(tensor.shape, tensor.dtype)
        self.run_until(self.current, self.current.submitted)
        return made.copy_(tensor)

    def copy_to_gpu(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        self.submit(self.copies, FakeEvent(self, self.current))
        for target, source in pairs:
            if not source.numel():
                continue
            assert source.is_contiguous() and target.is_contiguous() and source.dtype == target.dtype
            self._copy(self._block_of(target), source.data_ptr(), source.numel() * source.element_size())

    def _copy(self, block: Block, address: int, nbytes: int) -> None:
        def work() -> None:
            self.check_registrations()
            ctypes.memmove(block.address, address, nbytes)

        self.copied.append(nbytes)
        self.submit(self.copies, work)
        if not self.reads(address, nbytes):
            self.pageable += 1
            self.run_until(self.copies, self.copies.submitted)

    def record_copies(self) -> FakeEvent:
        return FakeEvent(self, self.copies)

    def record_event(self, stream: FakeStream) -> FakeEvent:
        return FakeEvent(self, stream)

    def await_event(self, event: FakeEvent) -> None:
        self.submit(self.current, event)

    def keep_for_stream(self, tensor: Any, stream: FakeStream) -> None:
        block = self._find_block(tensor)
        if block is not None:
            block.users.append(stream)

    def launch(self, work: Callable[[], Any]) -> None:
        self.submit(self.current, work)

    def pin_copy(self, tensor: Any) -> Any:
        pinned = tensor.clone()
        self._pinned[pinned.data_ptr()] = pinned
        return pinned

    # -- feedwater._device.runtime.Host ------------------------------------------------------------------------------

    def current_streams(self) -> list[FakeStream]:
        return [self.current] if self.current is self.main else [self.current, self.main]

    def lasts(self, stream: FakeStream) -> bool:
        return True

    def finds_others(self, streams: list[FakeStream]) -> bool:
        return bool(self.others - {stream.name for stream in streams})

    def pin_tensor(self, tensor: Any) -> Any:
        return tensor if self.reads(tensor.data_ptr(), tensor.nbytes) else self.pin_copy(tensor)

    def reads(self, address: int, nbytes: int) -> bool:
        """Whether the driver can read that memory by itself."""
        inside = any(at <= address and address + nbytes <= at + size for at, (size, _) in self.registered.items())
        return inside or address in self._pinned

    def copy_by_program(self, tensor: Any, into: list[Any]) -> None:
        """x.to(device, non_blocking=True): reads the host's memory when the current stream comes to it."""
        address, nbytes = tensor.data_ptr(), tensor.nbytes
        made = torch.empty(tensor.shape, dtype=tensor.dtype)
        strided = tensor.is_contiguous()
        assert strided or tensor.permute(0, 2, 3, 1).is_contiguous()
        if not strided:
            made = made.to(memory_format=torch.channels_last)

        def work() -> None:
            self.check_registrations()
            ctypes.memmove(made.data_ptr(), address, nbytes)
            into.append(made)

        self.submit(self.current, work)
        if not self.reads(address, nbytes):
            self.pageable += 1
            self.run_until(self.current, self.current.submitted)

    def finish_reads(self) -> None:
        for stream in self.streams:
            self.run_until(stream, stream.submitted)

    def register_memory(self, address: int, nbytes: int) -> str:
        if self.refuse:
            return self.refuse
        assert address % 4096 == nbytes % 4096 == 0
        if any(first < address + nbytes and address < first + size for first, (size, _) in self.registered.items()):
            raise Trap(f"{address:#x} is registered already")
        self.registered[address] = (nbytes, mapped_at(address))
        self.registrations += 1
        return ""

    def unregister_memory(self, address: int) -> bool:
        self.check_registrations()
        if self.refuse:
            return False
        del self.registered[address]
        return True

    def check_registrations(self) -> None:
        """What is registered is mapped as it was then."""
        for address, (_, before) in self.registered.items():
            if mapped_at(address) != before:
                raise Trap(f"{address:#x} was registered as {before!r}, and is {mapped_at(address)!r} now")


def mapped_at(address: int) -> str:
    """The file that is mapped there; "" if nothing is."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, *rest = line.split(maxsplit=5)
        first, _, end = where.partition("-")
        if int(first, 16) <= address < int(end, 16):
            return " ".join([rest[2], rest[3], *rest[4:]])
    return ""


def install(monkeypatch: pytest.MonkeyPatch, gpu: FakeCuda) -> Iterator[FakeCuda]:
    """Yields it as the GPU of this process; nothing of it is left to later Loaders."""
    monkeypatch.setattr("feedwater._config.check_built", lambda *_: None)
    monkeypatch.setattr(runtime, "find_runtime", lambda *_: gpu)
    yield gpu
    transfer._ABANDONED.clear()
    transfer._LOST.clear()
    registration._ENDED.clear()
