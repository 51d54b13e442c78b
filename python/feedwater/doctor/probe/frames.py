"""What the script's own frames hold: a graph that grows from step to step, graphs in a loop that never goes backward,
and the model.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from . import backward

MOST_NODES = 4000
MOST_FRAMES = 12
CO_OPTIMIZED = 1
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
        self.looks = self.without_backward = 0
        self.model: dict[str, Any] = {}
        self._backward = 0

    def look(self) -> None:
        """At the frame that called next, and at those around it for the model."""
        torch = sys.modules.get("torch")
        if torch is None or sys.gettrace() is not None:
            return
        frame = _script_frame()
        if frame is not None:
            self._look_at(frame, torch)
            if not self.model:
                self._find_model(frame, torch)

    def _look_at(self, frame: FrameType, torch: Any) -> None:
        names = _names(frame)
        alive = False
        for name, value in list(names.items()):
            grown = _graph(value, torch)
            if grown is not None:
                alive = True
                if grown:
                    self.graphs.setdefault(f"{name} at {os.path.basename(_line(frame))}", []).append(grown)
        _let_go(frame, names)
        self.looks += 1
        missing = alive and torch.is_grad_enabled() and backward.passes[0] == self._backward
        self.without_backward += missing
        self._backward = backward.passes[0]

    def _find_model(self, frame: FrameType | None, torch: Any) -> None:
        for _ in range(MOST_FRAMES):
            if frame is None:
                return
            names = _names(frame)
            found = max(_modules(names.values(), torch), key=_weight, default=None)
            _let_go(frame, names)
            if found is not None and _weight(found):
                self.model = _describe(found, torch)
                return
            frame = frame.f_back

    def dump(self) -> dict[str, Any]:
        """For the report."""
        return {
            "graphs": self.graphs,
            "looks": self.looks,
            "without_backward": self.without_backward,
            "model": self.model,
        }


def line_of_script() -> str:
    """The innermost line outside of libraries, as file:line."""
    frame = _script_frame()
    return "" if frame is None else _line(frame)


def _line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _script_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(OURS) and not any(part in file for part in LIBRARIES):
            return frame
        frame = frame.f_back
    return None


def _names(frame: FrameType) -> dict[str, Any]:
    names = frame.f_locals
    return names if isinstance(names, dict) else dict(names)


def _let_go(frame: FrameType, names: dict[str, Any]) -> None:
    """Before Python 3.13 the dict of a function's names stays with its frame, and would keep their values alive."""
    if frame.f_code.co_flags & CO_OPTIMIZED:
        names.clear()


def _graph(value: Any, torch: Any) -> int | None:
    """Nodes of a scalar's graph; length of a list of tensors with graphs; 0: of a larger tensor; None: no graph."""
    if isinstance(value, torch.Tensor) and value.grad_fn is not None:
        return _nodes(value.grad_fn) if value.numel() == 1 else 0
    if isinstance(value, list) and value and isinstance(value[-1], torch.Tensor) and value[-1].grad_fn is not None:
        return len(value)
    return None


def _nodes(root: Any) -> int:
    seen, open_ = {root}, [root]
    while open_ and len(seen) < MOST_NODES:
        for node, _ in open_.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                open_.append(node)
    return len(seen)


def _modules(values: Any, torch: Any) -> Iterator[Any]:
    for value in list(values):
        if isinstance(value, torch.nn.Module):
            yield value
        elif hasattr(value, "__dict__"):
            inner = [value.__dict__.get(name) for name in ("model", "net", "network", "module", "_model")]
            yield from (one for one in inner if isinstance(one, torch.nn.Module))


def _weight(module: Any) -> int:
    return sum(p.numel() for p in module.parameters() if type(p).__name__ == "Parameter")


def _describe(model: Any, torch: Any) -> dict[str, Any]:
    convolutions = [m for m in model.modules() if isinstance(m, torch.nn.Conv2d)]
    last = torch.channels_last
    return {
        "name": type(model).__name__,
        "parameters": _weight(model),
        "convolutions": len(convolutions),
        "channels_last": bool(convolutions) and convolutions[-1].weight.is_contiguous(memory_format=last),
        "half": any(p.dtype in (torch.float16, torch.bfloat16) for p in model.parameters()),
        "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
    }
