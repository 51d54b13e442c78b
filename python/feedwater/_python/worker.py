"""The other side of python=: a process that runs the program's function on samples, started by _python_pool.

Packets come by one socket, pickled: files to map, and jobs. Pictures are read from the slots that the agent filled and
results written into slots beside them; only what is said about them goes through the socket.
"""

from __future__ import annotations

import mmap
import os
import pickle
import random
import select
import socket
import struct
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._agent.slots import Field

__all__ = ["PACKET_BYTES", "Job", "Look", "Map", "Note", "Report", "Shown", "join_views", "run_worker"]

PACKET_BYTES = 1 << 20
OF_VIEWS = ("image", "mask")
"""Fields that each view has."""
MOST_CHARACTERS = 6000
"""Of a message, and of a traceback: both fit into a packet."""


class Shown(NamedTuple):
    """A picture or a mask, as it lies in the slots and as the function gets it."""

    name: str
    dtype: str
    turn: str = ""
    """Where channels go that lie elsewhere: "first", "last"; empty: they stay."""
    cast: str | None = None
    """The type of torch that it gets; None: that which lies there."""


class Look(NamedTuple):
    """What the function gets and what is wanted of it."""

    tensor: bool
    """Tensors of torch, or arrays of numpy."""
    shown: tuple[Shown, ...]
    """Pictures, one or those of all views, and behind them their masks where there are some."""
    views: bool
    """Whether it gets lists of them."""
    fields: tuple[str, ...]
    """Wanted of its result."""
    seed: int


class Map(NamedTuple):
    """A file to map, which comes with the packet. What is not in keep is not needed any more."""

    serial: int
    size: int
    keep: tuple[int, ...]


class Job(NamedTuple):
    """Some rows of a batch."""

    ident: int
    epoch: int
    rows: tuple[int, ...]
    indices: tuple[int, ...]
    repeats: tuple[int, ...]
    labels: tuple[int, ...]
    source: int
    """Serial of the file with the pictures."""
    places: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]
    """Where in it each row's pictures and masks begin, and their shapes, as Look.shown has them."""
    target: int
    """Serial of the file for the results; 0: none yet, say what the first row's look like."""
    start: int
    fields: tuple[Field, ...]


class Report(NamedTuple):
    """The answer to a job."""

    ident: int
    place: int
    """Of the process among all."""
    seconds: float
    samples: int
    fields: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    """Where they were asked for: name, dtype, shape."""
    row: int = -1
    """The first one that failed; -1: none."""
    error: str = ""
    trace: str = ""


class Note(NamedTuple):
    """The first packet: ready, or why not."""

    error: str = ""
    trace: str = ""


class MismatchError(Exception):
    """A result that cannot be put into the batch."""


def run_worker(sock: socket.socket, place: int, parent: int, pickled: bytes, look: Look) -> None:
    """The process: answers jobs until the socket or the parent ends."""
    threading.Thread(target=_follow_parent, args=(parent,), daemon=True).start()
    try:
        if look.tensor:
            import torch  # noqa: F401
        function = pickle.loads(pickled)  # noqa: S301 (of the process that started this one)
    except BaseException as error:
        _send_message(sock, Note(*_describe_error(error)))
        return
    _send_message(sock, Note())
    try:
        _Worker(sock, place, function, look).run_jobs()
    except (ConnectionError, KeyboardInterrupt):  # the parent is gone, or going
        pass


def _follow_parent(parent: int) -> None:
    """Ends this process with its parent, whatever the function is at."""
    try:
        handle = os.pidfd_open(parent)
    except ProcessLookupError:
        os._exit(1)
    except OSError:  # a kernel without such handles: the socket's end must do
        return
    if os.getppid() == parent:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll()
    os._exit(1)


def _send_message(sock: socket.socket, message: Any) -> None:
    try:
        sock.send(pickle.dumps(message))
    except OSError:
        pass


def _describe_error(error: BaseException) -> tuple[str, str]:
    said = "".join(traceback.format_exception_only(type(error), error)).strip()
    # The first frame is ours, which tells nothing.
    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
    lines = "".join(traceback.format_exception(type(error), error, trace))
    return said[:MOST_CHARACTERS], lines[-MOST_CHARACTERS:]


class _Worker:
    def __init__(self, sock: socket.socket, place: int, function: Callable[..., Any], look: Look) -> None:
        self._sock, self._place, self._function, self._look = sock, place, function, look
        self._maps: dict[int, mmap.mmap] = {}
        self._board: mmap.mmap | None = None
        self._has_torch = False

    def run_jobs(self) -> None:
        while True:
            packet, files, _, _ = socket.recv_fds(self._sock, PACKET_BYTES, 1)
            if not packet:
                return
            message = pickle.loads(packet)  # noqa: S301 (likewise)
            if isinstance(message, Map):
                self._map_file(message, files[0])
            else:
                _send_message(self._sock, self._run_job(message))

    def _map_file(self, told: Map, file: int) -> None:
        self._maps = {serial: memory for serial, memory in self._maps.items() if serial in told.keep}
        memory = mmap.mmap(file, told.size)
        os.close(file)
        if told.serial:
            self._maps[told.serial] = memory
        else:
            self._board = memory

    def _run_job(self, job: Job) -> Report:
        began = time.perf_counter()
        fields: tuple[Any, ...] = ()
        for at, row in enumerate(job.rows):
            self._at_work_on(job.indices[at])
            try:
                made = self._run_function(job, at)
                if job.target:
                    self._store_row(job, row, made)
                else:
                    fields = tuple(_declare_field(name, value) for name, value in made.items())
            except BaseException as error:  # SystemExit and its like too: else all rows' process would end for one
                return Report(job.ident, self._place, time.perf_counter() - began, at, (), row, *_describe_error(error))
            finally:
                self._at_work_on(-1)
        return Report(job.ident, self._place, time.perf_counter() - began, len(job.rows), fields)

    def _at_work_on(self, index: int) -> None:
        if self._board is not None:
            struct.pack_into("<q", self._board, 8 * self._place, index)

    def _run_function(self, job: Job, at: int) -> dict[str, Any]:
        """The wanted fields, as the function gives them for one sample."""
        sample = {**self._read_pictures(job, at), "label": job.labels[at], "index": job.indices[at]}
        rng = self._seed_sample(job.epoch, job.indices[at], job.repeats[at])
        had_torch = self._has_torch
        result = self._function(dict(sample), rng)
        if not had_torch and "torch" in sys.modules:  # imported by this call, which may have drawn what was not seeded
            return self._run_function(job, at)
        if not isinstance(result, Mapping):
            raise MismatchError(f"it returned {_kind_of(result)}: it must return a dict, like {{**sample, 'image': …}}")
        _check_ours(result, job.indices[at])
        sample.update(result)
        for name in self._look.fields:
            if name not in sample:
                raise MismatchError(f"fields= asks for {name!r}, and it returned only {', '.join(map(repr, sample))}")
        wanted = {name: sample[name] for name in self._look.fields}
        return split_views(wanted) if self._look.views else wanted

    def _read_pictures(self, job: Job, at: int) -> dict[str, Any]:
        """The pictures of a sample, and their masks where there are some, by their names."""
        places = zip(self._look.shown, job.places[at])
        return join_views({shown.name: self._read_picture(shown, job.source, *place) for shown, place in places})

    def _read_picture(self, shown: Shown, source: int, offset: int, shape: tuple[int, ...]) -> Any:
        stored = np.dtype("uint16" if shown.dtype == "bfloat16" else shown.dtype)
        view = np.ndarray(shape, stored, self._maps[source], offset)
        if shown.turn:
            view = np.moveaxis(view, -1, -3) if shown.turn == "first" else np.moveaxis(view, -3, -1)
        picture = view.copy(order="C")  # the function may write into it, and may have to be called again
        if not self._look.tensor:
            return picture
        import torch

        tensor = torch.from_numpy(picture)
        if shown.cast is not None:
            return tensor.to(getattr(torch, shown.cast))
        return tensor.view(torch.bfloat16) if shown.dtype == "bfloat16" else tensor

    def _seed_sample(self, epoch: int, index: int, repeat: int) -> np.random.Generator:
        """Random numbers that belong to the sample: all global generators are seeded too."""
        seeds = np.random.SeedSequence((self._look.seed, epoch, index, repeat))
        word = int(seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
        random.seed(word)
        np.random.seed(word & 0xFFFFFFFF)
        torch = sys.modules.get("torch")
        if torch is not None:
            if not self._has_torch:
                torch.set_num_threads(1)
                self._has_torch = True
            torch.default_generator.manual_seed(word & 0x7FFFFFFFFFFFFFFF)
        return np.random.default_rng(seeds)

    def _store_row(self, job: Job, row: int, made: dict[str, Any]) -> None:
        if len(made) != len(job.fields):
            first, here = (_count_views(names) for names in ([field.name for field in job.fields], made))
            raise MismatchError(f"it makes {here}, and of the first one {first}: rows of a batch must be alike")
        for field in job.fields:
            array, dtype = _to_array(field.name, made[field.name])
            if array.shape != field.shape or dtype != field.dtype:
                raise MismatchError(
                    f"its {field.name} is {dtype} {list(array.shape)}, and the first one was {field.dtype} "
                    f"{list(field.shape)}: rows of a batch must be alike. Crop, resize or pad to one size"
                )
            offset = job.start + field.offset + row * array.nbytes
            np.ndarray(array.shape, array.dtype, self._maps[job.target], offset)[...] = array


def join_views(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with those of single views, as image.0, in lists by the name before the point."""
    joined: dict[str, Any] = {}
    for name, value in fields.items():
        whole, point, _ = name.partition(".")
        if point and whole in OF_VIEWS:
            joined.setdefault(whole, []).append(value)
        else:
            joined[name] = value
    return joined


def split_views(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse: lists of pictures and of masks as a field for each view."""
    split: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in OF_VIEWS or not isinstance(value, (list, tuple)):
            split[name] = value
            continue
        if not value:
            raise MismatchError(f"its {name} is an empty list: it needs a picture for each view")
        split |= {f"{name}.{number}": one for number, one in enumerate(value)}
    return split


def _count_views(names: Iterable[str]) -> str:
    counts = Counter(name.partition(".")[0] for name in names)
    return ", ".join(f"{count} of {name}" for name, count in counts.items() if name in OF_VIEWS)


def _check_ours(result: Mapping[str, Any], index: int) -> None:
    """Raises MismatchError for fields in which the function has no part."""
    name = next((name for name in ("key", "valid") if name in result), None)
    if name is not None:
        raise MismatchError(f"it returned {name!r}, a field that the Loader fills: give it another name")
    if result.get("index", index) is not index and not np.array_equal(result["index"], index):
        raise MismatchError(
            f"it returned another index, {result['index']!r:.50} for {index}: leave that, which says which "
            "sample it is, and give yours another name"
        )


def _kind_of(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _declare_field(name: str, value: Any) -> tuple[str, str, tuple[int, ...]]:
    array, dtype = _to_array(name, value)
    return name, dtype, array.shape


def _to_array(name: str, value: Any) -> tuple[Any, str]:
    """A result as numpy has it, and its type by name; raises MismatchError for what cannot be stacked."""
    if _is_tensor(value):
        torch = sys.modules["torch"]
        tensor = value.detach().cpu()
        if tensor.dtype == torch.bfloat16:
            return tensor.contiguous().view(torch.int16).numpy().view(np.uint16), "bfloat16"
        array = tensor.numpy()
    else:
        array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        what = f"an array of {array.dtype}, no numbers" if isinstance(value, np.ndarray) else _kind_of(value)
        raise MismatchError(f"its {name} is {what}: batches hold arrays, tensors and numbers")
    return array, array.dtype.name


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
