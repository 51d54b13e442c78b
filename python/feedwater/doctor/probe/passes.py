"""Feedwater's own Loader, timed like torch's."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import perf_counter_ns
from typing import Any
from weakref import ref

from . import settings
from .session import sessions


def patch(module: Any) -> None:
    """Of feedwater._pass."""
    original = module.Pass.__next__

    @wraps(original)
    def __next__(self: Any) -> Any:  # noqa: N807
        try:
            session = sessions.get_session()
            loader = self._loader
            loop = session.loop_of(loader, describe_loader)
            if not loader._progress.is_latest(self._number) and not self._ended:
                loop.begin_pass(perf_counter_ns())
        except Exception as error:
            settings.note_error(f"feedwater: {error!r}")
            return original(self)
        return session.advance_loop(loop, self, original)

    module.Pass.__next__ = __next__


def describe_loader(loader: Any) -> dict[str, Any]:
    """What a Loader was told."""
    config = loader._config
    return {
        "loader": "feedwater.Loader",
        "workers": 0,
        "batch_size": loader.batch_size or 0,
        "pin_memory": False,
        "prefetch": 0,
        "persistent": True,
        "data": "nodes" if config.nodes else "folder",
        "iterable": False,
        "own_collate": True,
        "so_far": _count_for(loader),
    }


def _count_for(loader: Any) -> Callable[[], dict[str, Any]]:
    """What tells of a Loader's pictures, of one that is gone what it told last."""
    kept = ref(loader)
    told: dict[str, Any] = {}

    def so_far() -> dict[str, Any]:
        loader = kept()
        if loader is not None:
            told.update(pictures=loader._pictures)
        return told

    return so_far
