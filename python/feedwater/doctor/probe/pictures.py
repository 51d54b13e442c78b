"""Counts pictures that are decoded and that do not decode, which a data set may swallow, and the CPU time it takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import thread_time_ns
from typing import Any

counts = {"broken": 0, "decoded": 0, "decode_ns": 0, "pixels": 0}
"""Of this process; a forked child goes on from its parent's."""

FAILURES = (OSError, SyntaxError, ValueError, RuntimeError)
"""What Pillow and torchvision raise for a file that does not decode."""


def patch(module: Any) -> None:
    """Of PIL.Image, PIL.ImageFile or torchvision.io.image."""
    if module.__name__ == "PIL.Image":
        module.open = _watch_open(module.open)
    elif module.__name__ == "PIL.ImageFile":
        module.ImageFile.load = _timed_load(module.ImageFile.load)
    else:
        for name in ("decode_image", "decode_jpeg", "decode_png", "decode_webp"):
            if hasattr(module, name):
                setattr(module, name, _time_call(getattr(module, name)))


def _watch_open(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except FAILURES as error:
            if not isinstance(error, FileNotFoundError):
                counts["broken"] += 1
            raise

    return call


def _timed_load(original: Callable[..., Any]) -> Callable[..., Any]:
    """Pillow decodes when pixels are asked for; most calls find them there."""
    decode = _time_call(original)

    @wraps(original)
    def load(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not getattr(self, "tile", None):
            return original(self, *args, **kwargs)
        counts["pixels"] += self.size[0] * self.size[1]  # what is decoded, after draft
        return decode(self, *args, **kwargs)

    return load


def _time_call(original: Callable[..., Any]) -> Callable[..., Any]:
    watched = _watch_open(original)

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        began = thread_time_ns()
        try:
            return watched(*args, **kwargs)
        finally:
            counts["decoded"] += 1
            counts["decode_ns"] += thread_time_ns() - began

    return call
