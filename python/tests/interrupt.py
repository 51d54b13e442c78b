"""Raises KeyboardInterrupt at any place where CPython itself may raise it inside the package.

CPython looks for signals when a function begins, when it jumps backwards, and after a call into C returned. This walks
the package's code by instructions and counts those places, so that a test can strike at each of them in turn.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import feedwater

PACKAGE = os.path.dirname(feedwater.__file__) + os.sep
LOOKING = {"RESUME", "JUMP_BACKWARD", "CALL", "CALL_KW", "CALL_FUNCTION_EX"}
_names: dict[CodeType, dict[int, str]] = {}


def _opname(code: CodeType, offset: int) -> str:
    if code not in _names:
        _names[code] = {i.offset: i.opname for i in dis.get_instructions(code)}
    return _names[code].get(offset, "")


class Strike:
    """Interrupts a function at its nth place, or the nth within a function of that name; nth=None only counts them."""

    def __init__(self, nth: int | None = None, within: str | None = None) -> None:
        self.nth, self.within, self.places, self.where = nth, within, 0, ""
        self._last: dict[int, str] = {}

    def run(self, function: Callable[[], Any]) -> Any:
        """What function returns; raises KeyboardInterrupt if it was struck."""
        watch = _Monitoring if hasattr(sys, "monitoring") else _Tracing
        with watch(self._instruction, self._return):
            return function()

    def _instruction(self, frame: FrameType, offset: int) -> None:
        last = self._last.get(id(frame))
        self._last[id(frame)] = _opname(frame.f_code, offset)
        if last in LOOKING and self.within in (None, frame.f_code.co_name):
            self.places += 1
            if self.places == self.nth:
                self.where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno} {frame.f_code.co_name}"
                raise KeyboardInterrupt(self.where)

    def _return(self, frame: FrameType) -> None:
        self._last.pop(id(frame), None)
        if frame.f_back is not None and frame.f_code.co_name != "__init__":  # classes are called by C
            self._last[id(frame.f_back)] = ""  # a call of Python code: it looked inside


class _Tracing:
    """Tells of instructions and returns in the package, up to Python 3.11."""

    def __init__(self, instruction: Callable[[FrameType, int], None], returned: Callable[[FrameType], None]) -> None:
        self._instruction, self._returned = instruction, returned

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "return":
            self._returned(frame)
        elif event == "opcode":
            self._instruction(frame, frame.f_lasti)
        return self._trace


class _Monitoring:
    """The same from Python 3.12 on."""

    TOOL = 3

    def __init__(self, instruction: Callable[[FrameType, int], None], returned: Callable[[FrameType], None]) -> None:
        self._instruction, self._returned = instruction, returned

    def __enter__(self) -> None:
        on, event = sys.monitoring, sys.monitoring.events  # type: ignore[attr-defined]
        on.use_tool_id(self.TOOL, "strike")
        on.register_callback(self.TOOL, event.INSTRUCTION, self._at)
        on.register_callback(self.TOOL, event.PY_RETURN, self._left)
        on.register_callback(self.TOOL, event.PY_UNWIND, self._left)
        on.set_events(self.TOOL, event.INSTRUCTION | event.PY_RETURN | event.PY_UNWIND)
        on.restart_events()

    def __exit__(self, *_: object) -> None:
        sys.monitoring.set_events(self.TOOL, 0)  # type: ignore[attr-defined]
        sys.monitoring.free_tool_id(self.TOOL)  # type: ignore[attr-defined]

    def _at(self, code: CodeType, offset: int) -> Any:
        if not code.co_filename.startswith(PACKAGE):
            return sys.monitoring.DISABLE  # type: ignore[attr-defined]
        self._instruction(sys._getframe(1), offset)
        return None

    def _left(self, code: CodeType, offset: int, _: Any) -> None:
        if code.co_filename.startswith(PACKAGE):
            self._returned(sys._getframe(1))
