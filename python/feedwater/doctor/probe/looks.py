"""A closer look at a few steps: which lines of the script wait for the GPU or copy to it, and what its frames hold.

On a GPU two short windows of steps have timed versions of the calls that wait in the place of the real ones; outside
them nothing is patched. There are none once torch.compile is at work, which would compile the timed versions in.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from functools import wraps
from time import perf_counter_ns
from typing import Any

from . import frames, settings
from .loop import Loop

WINDOWS = (21, 101)
"""Steps at which a window begins."""
WINDOW_STEPS = 8
FRAMES_AT = (10, 20, 40, 60, 80, 120, 160)
"""Steps at which the script's frames are looked at."""
MEMORY_AT = (20, 100, 200)
LONG_NS = 100_000
"""A call this long is worth the look for its line."""
WAITING = ("item", "cpu", "tolist", "numpy", "__float__", "__int__", "__bool__")
COPYING = ("to", "cuda")


class Looks:
    """Of one process: its busiest loop's windows, and what was seen in them."""

    def __init__(self) -> None:
        self.frames = frames.Frames()
        self._undo: list[Callable[[], None]] = []
        self._loop: Loop | None = None
        self._end = 0
        self._began = 0
        self._waited: Counter[str] = Counter()
        self._copied: Counter[str] = Counter()
        self._copies: list[tuple[Any, Any]] = []
        self._last_wait = self._returned = 0
        """When the last call that waited ended; when next returned with nothing left to do for the GPU."""
        self._rests = False
        self._depth = 0
        self.seen = {"steps": 0, "ns": 0, "waited_ns": 0, "after_ns": 0, "copied_ns": 0, "copied_gpu_ns": 0}
        self.seen |= {"pageable": 0, "copies": 0, "autocast": 0}

    # -- windows ------------------------------------------------------------------------------------------------------

    def note_step(self, loop: Loop) -> None:
        """A batch was returned."""
        if self._loop is loop:
            self._returned = perf_counter_ns() if self._rests else 0
            self._look_within(loop)
        elif self._loop is None and loop.has_passed(WINDOWS) and loop.stream.gpu is not None and not _has_compiled():
            self._open_window(loop)
        if loop.first and loop.steps < FRAMES_AT[-1]:
            self.frames.begin_pass()
        if loop.has_passed(FRAMES_AT):
            loop.look_at_frames(self.frames.look_around)
        if loop.has_passed(MEMORY_AT) and loop.stream.gpu is not None:
            loop.memory = _read_memory()

    @property
    def open(self) -> bool:
        """In a window, when every step counts."""
        return self._loop is not None

    def note_entry(self) -> None:
        """next is called: what the loop did after its last wait, the GPU had no work meanwhile."""
        if self._last_wait:
            self.seen["after_ns"] += perf_counter_ns() - self._last_wait
        self._rests = self._last_wait > 0
        self._last_wait = self._returned = 0

    def _look_within(self, loop: Loop) -> None:
        if loop.steps >= self._end:
            self.seen["steps"] += WINDOW_STEPS
            self.seen["ns"] += perf_counter_ns() - self._began
            self.close_window()

    def _open_window(self, loop: Loop) -> None:
        torch = sys.modules["torch"]
        self._loop, self._end, self._began = loop, loop.steps + WINDOW_STEPS, perf_counter_ns()
        for name in WAITING:
            self._replace_method(torch.Tensor, name, self._time_wait)
        for name in COPYING:
            self._replace_method(torch.Tensor, name, self._time_copy)
        self._replace_method(torch.cuda, "synchronize", self._time_wait)
        modes = sys.modules.get("torch.amp.autocast_mode")
        if modes is not None:
            self._replace_method(modes.autocast, "__enter__", self._note_autocast)

    def close_window(self) -> None:
        """The window ends; everything is as it was."""
        for undo in reversed(self._undo):
            undo()
        self._undo, self._loop = [], None
        for before, after in self._copies:
            if after.done():
                self.seen["copied_gpu_ns"] += int(before.until(after) * 1e9)
        self._copies = []

    def _replace_method(self, owner: Any, name: str, make: Callable[..., Any]) -> None:
        before = vars(owner).get(name)
        original = getattr(owner, name)
        ours = _make_method(make, original)
        setattr(owner, name, ours)

        def undo() -> None:
            if vars(owner).get(name) is not ours:
                return
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._undo.append(undo)

    # -- calls in a window --------------------------------------------------------------------------------------------

    def _is_mine(self) -> bool:
        return not self._depth and threading.current_thread() is threading.main_thread()

    def _time_call(self, original: Callable[..., Any], args: Any, kwargs: Any, lines: Counter[str]) -> tuple[Any, int]:
        self._depth += 1
        began = perf_counter_ns()
        try:
            result = original(*args, **kwargs)
        finally:
            self._depth -= 1
        took = perf_counter_ns() - began
        if took > LONG_NS:
            lines[frames.line_of_script()] += took
        return result, took

    def _time_wait(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not self._is_mine():
            return original(*args, **kwargs)
        result, took = self._time_call(original, args, kwargs, self._waited)
        self.seen["waited_ns"] += took
        if took > LONG_NS:
            self._last_wait, self._returned = perf_counter_ns(), 0
        return result

    def _time_copy(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        tensor = args[0] if args else None
        gpu = self._loop.stream.gpu if self._loop is not None else None
        if (
            gpu is None
            or not self._is_mine()
            or not getattr(tensor, "is_cpu", False)
            or not _leaves_host(original, args, kwargs)
        ):
            return original(*args, **kwargs)
        if self._returned:  # the GPU rests until the step's first copy
            self.seen["after_ns"] += perf_counter_ns() - self._returned
            self._returned = 0
        before = gpu.record_mark()
        result, took = self._time_call(original, args, kwargs, self._copied)
        after = gpu.record_mark()
        if before is not None and after is not None:
            self._copies.append((before, after))
        self.seen["copies"] += 1
        self.seen["copied_ns"] += took
        self.seen["pageable"] += not _is_pinned(tensor)
        return result

    def _note_autocast(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.seen["autocast"] += 1
        return original(*args, **kwargs)

    # -- the report ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """For the report."""
        lines = {"waits": self._waited.most_common(3), "copies": self._copied.most_common(3)}
        return {"look": self.seen, "lines": lines, "compiled": _has_compiled(), **self.frames.dump()}


def _make_method(make: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """A function, which binds to its object as the original does."""

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return make(original, *args, **kwargs)

    return call


def _leaves_host(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether Tensor.to or Tensor.cuda with these arguments goes to another device than the host."""
    if original.__name__ == "cuda":
        return True
    target = kwargs.get("device", kwargs.get("other", args[1] if len(args) > 1 else None))
    if isinstance(target, (int, str)):
        return not str(target).startswith("cpu")
    device = getattr(target, "device", target)  # of a tensor
    return getattr(device, "type", "cpu") != "cpu"


def _is_pinned(tensor: Any) -> bool:
    try:
        return bool(tensor.is_pinned())
    except RuntimeError:
        return False


def _has_compiled() -> bool:
    """Whether torch.compile has compiled anything."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", None)
    return bool(counters and counters["frames"]["total"])


def _read_memory() -> dict[str, int]:
    """Bytes on the GPU: of the card, free, held now between two steps, and held at most."""
    cuda = sys.modules["torch"].cuda
    try:
        free, total = cuda.mem_get_info()
        held, most = cuda.memory_allocated(), cuda.max_memory_allocated()
    except (RuntimeError, AttributeError) as error:
        settings.note_error(f"memory: {error!r}")
        return {}
    return {"total": int(total), "free": int(free), "held": int(held), "most": int(most)}
