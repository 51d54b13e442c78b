"""Counts pictures that are decoded and that do not decode, which a data set may swallow, and the CPU time it takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import local
from time import thread_time_ns
from types import FunctionType
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
        _watch_formats(module.ImageFile)
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


def _watch_formats(base: Any) -> None:
    """Pillow's ImageFile and what derives from it, now and later: some formats decode in a load of their own, before or
    in place of that of ImageFile.
    """
    base.load = _timed_load(base.load)
    for kind in base.__subclasses__():
        _watch_own_load(kind)
    if "__init_subclass__" in vars(base):
        return

    @wraps(object.__init_subclass__)
    def __init_subclass__(kind: type[Any], /, **kwargs: Any) -> None:  # noqa: N807
        super(base, kind).__init_subclass__(**kwargs)
        _watch_own_load(kind)

    base.__init_subclass__ = classmethod(__init_subclass__)


def _watch_own_load(kind: Any) -> None:
    own = vars(kind).get("load")
    if isinstance(own, FunctionType):
        kind.load = _timed_load(own)


class _Load(local):
    """The outermost load that a thread is in."""

    within = False
    pixels = 0
    """Of what it decodes, as far as is known; 0: nothing."""


_load = _Load()


def _timed_load(original: Callable[..., Any]) -> Callable[..., Any]:
    """Pillow decodes when pixels are asked for; most calls find them there. A load that calls others counts once."""

    @wraps(original)
    def load(self: Any, *args: Any, **kwargs: Any) -> Any:
        pixels = self.size[0] * self.size[1] if getattr(self, "tile", None) else 0  # after draft
        if _load.within:
            _load.pixels = pixels or _load.pixels
            return original(self, *args, **kwargs)
        _load.within, _load.pixels = True, pixels
        began = thread_time_ns()
        try:
            return original(self, *args, **kwargs)
        except FAILURES as error:
            counts["broken"] += _load.pixels > 0 and not isinstance(error, FileNotFoundError)
            raise
        finally:
            _load.within = False
            if _load.pixels:
                counts["pixels"] += _load.pixels
                _count_decoded(began)

    return load


def _count_decoded(began: int) -> None:
    counts["decoded"] += 1
    counts["decode_ns"] += thread_time_ns() - began


def _time_call(original: Callable[..., Any]) -> Callable[..., Any]:
    watched = _watch_open(original)

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        began = thread_time_ns()
        try:
            return watched(*args, **kwargs)
        finally:
            _count_decoded(began)

    return call
