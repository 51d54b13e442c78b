"""What the script's own frames hold: a graph that grows from step to step, graphs in a loop that never goes backward,
and the model.
"""

from __future__ import annotations

import dis
import os
import sys
import weakref
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType
from typing import Any

MOST_NODES = 4000
MOST_HELD = 50
"""Entries of a dict, or attributes of an object, that are looked into."""
MOST_FRAMES = 12
CO_OPTIMIZED = 1
NOT_THE_SCRIPTS = ("builtins", "abc", "torch")
"""Of objects that are not looked into: modules, functions, classes, tensors, loaders."""
NAMES_OF_ITS_OWN = {"locals", "vars"}
"""A function that calls one of these has, before Python 3.13, the dict that its frame gives."""
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBRARIES = (
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
    "<frozen",
    os.path.dirname(os.__file__),
)


class Frames:
    """What was seen so far."""

    def __init__(self) -> None:
        self.graphs: dict[str, list[int]] = {}
        """By variable and line: nodes of its autograd graph, or length of the list, at each look."""
        self.model: dict[str, Any] = {}
        self._left: dict[str, Any] = {}
        """Variables that held graphs when the pass began: of tensors references that keep nothing, of lists lengths."""

    def begin_pass(self) -> None:
        """A pass begins: what holds graphs now was left by what came before."""
        torch, frame = _find_frame()
        if frame is not None:
            names = _list_names(frame)
            held = {name: value for name, value in names.items() if _has_graph(value, torch)}
            self._left = {n: len(v) if isinstance(v, list) else weakref.ref(v) for n, v in held.items()}
            held.clear()
            _let_go(frame, names)

    def look_around(self) -> bool:
        """At the frame that called next, and at those around it for the model. Says whether this pass builds graphs."""
        torch, frame = _find_frame()
        if frame is None:
            return False
        if not self.model:
            self._find_model(frame, torch)
        return self._look_at(frame, torch) and bool(torch.is_grad_enabled())

    def _look_at(self, frame: FrameType, torch: Any) -> bool:
        """Whether there are variables with graphs that the pass did not begin with."""
        names = _list_names(frame)
        fresh = False
        for name, value in _walk_held(names):
            grown = _graph_size(value, torch)
            if grown is not None:
                fresh |= name in names and self._is_fresh(name, value)
                if grown:
                    self.graphs.setdefault(f"{name} at {os.path.basename(_describe_line(frame))}", []).append(grown)
        _let_go(frame, names)
        return fresh

    def _is_fresh(self, name: str, value: Any) -> bool:
        left = self._left.get(name)
        return left is None or (len(value) > left if isinstance(left, int) else left() is not value)

    def _find_model(self, frame: FrameType | None, torch: Any) -> None:
        for _ in range(MOST_FRAMES):
            if frame is None:
                return
            names = _list_names(frame)
            found = max(_walk_modules(names.values(), torch), key=_count_weights, default=None)
            _let_go(frame, names)
            if found is not None and _count_weights(found):
                self.model = _describe_model(found, torch)
                return
            frame = frame.f_back

    def dump(self) -> dict[str, Any]:
        """For the report."""
        return {"graphs": self.graphs, "model": self.model}


def line_of_script() -> str:
    """The innermost line outside of libraries, as file:line."""
    frame = _script_frame()
    return "" if frame is None else _describe_line(frame)


def _describe_line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _script_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(OURS) and not any(part in file for part in LIBRARIES):
            return frame
        frame = frame.f_back
    return None


def _list_names(frame: FrameType) -> dict[str, Any]:
    if frame.f_code.co_flags & CO_OPTIMIZED and _asks_for_names(frame.f_code):
        return {}
    names = frame.f_locals
    return names if isinstance(names, dict) else dict(names)


@lru_cache(maxsize=256)
def _asks_for_names(code: CodeType) -> bool:
    if NAMES_OF_ITS_OWN.isdisjoint(code.co_names):  # nearly all; attributes are among them
        return False
    return any(step.opname == "LOAD_GLOBAL" and step.argval in NAMES_OF_ITS_OWN for step in dis.get_instructions(code))


def _let_go(frame: FrameType, names: dict[str, Any]) -> None:
    """Before Python 3.13 the dict of a function's names stays with its frame, and would keep their values alive."""
    if frame.f_code.co_flags & CO_OPTIMIZED:
        names.clear()


def _walk_held(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Variables, the entries of dicts, and attributes of objects that are the script's own: meters of losses."""
    for name, value in list(names.items()):
        yield name, value
        if type(value) is dict:
            yield from ((f"{name}[{key!r}]", one) for key, one in islice(value.items(), MOST_HELD))
        elif type(value).__module__.partition(".")[0] not in NOT_THE_SCRIPTS:
            inner = getattr(value, "__dict__", {})
            yield from ((f"{name}.{attribute}", one) for attribute, one in islice(inner.items(), MOST_HELD))


def _find_frame() -> tuple[Any, FrameType | None]:
    """torch, and the script's frame; none without torch, or under a debugger."""
    torch = sys.modules.get("torch")
    return torch, None if torch is None or sys.gettrace() is not None else _script_frame()


def _has_graph(value: Any, torch: Any) -> bool:
    """A tensor, or a list that ends with one."""
    one = value[-1] if isinstance(value, list) and value else value
    return isinstance(one, torch.Tensor) and one.grad_fn is not None


def _graph_size(value: Any, torch: Any) -> int | None:
    """Nodes of a scalar's graph; length of a list of tensors with graphs; 0: of a larger tensor; None: no graph."""
    if not _has_graph(value, torch):
        return None
    if isinstance(value, list):
        return len(value)
    return _count_nodes(value.grad_fn) if value.numel() == 1 else 0


def _count_nodes(root: Any) -> int:
    seen, open_ = {root}, [root]
    while open_ and len(seen) < MOST_NODES:
        for node, _ in open_.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                open_.append(node)
    return len(seen)


def _walk_modules(values: Any, torch: Any) -> Iterator[Any]:
    for value in list(values):
        if isinstance(value, torch.nn.Module):
            yield value
        elif hasattr(value, "__dict__"):
            inner = [value.__dict__.get(name) for name in ("model", "net", "network", "module", "_model")]
            yield from (one for one in inner if isinstance(one, torch.nn.Module))


def _count_weights(module: Any) -> int:
    return sum(p.numel() for p in module.parameters() if type(p).__name__ == "Parameter")


def _describe_model(model: Any, torch: Any) -> dict[str, Any]:
    convolutions = [m for m in model.modules() if isinstance(m, torch.nn.Conv2d)]
    last = torch.channels_last
    return {
        "name": type(model).__name__,
        "parameters": _count_weights(model),
        "convolutions": len(convolutions),
        "channels_last": bool(convolutions) and convolutions[-1].weight.is_contiguous(memory_format=last),
        "half": any(p.dtype in (torch.float16, torch.bfloat16) for p in model.parameters()),
        "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
    }
