"""torch's DataLoader: next of its iterators, timed. Attributes of its classes are replaced and call the original, so
that subclasses, pickles and profiler labels stay as they are.
"""

from __future__ import annotations

import inspect
from functools import wraps
from time import perf_counter_ns
from typing import Any

from . import settings
from .session import sessions

ITERABLE = 1
"""torch's number for an IterableDataset."""


def patch(module: Any) -> None:
    """Of torch.utils.data.dataloader."""
    base, loader = module._BaseDataLoaderIter, module.DataLoader
    if settings.TRY:
        loader.__init__ = _wrap_tried(loader.__init__)
    base.__init__ = _wrap_init(base.__init__)
    base.__next__ = _wrap_next(base.__next__)
    loader.__iter__ = _wrap_iter(loader.__iter__)


def describe_loader(loader: Any) -> dict[str, Any]:
    """What a DataLoader was told."""
    data = getattr(loader, "dataset", None)
    sampler = getattr(loader, "batch_sampler", None)
    return {
        "loader": type(loader).__name__,
        "workers": int(loader.num_workers),
        "batch_size": _to_number(loader.batch_size or getattr(sampler, "batch_size", None)),
        "pin_memory": bool(loader.pin_memory),
        "prefetch": _to_number(loader.prefetch_factor),
        "persistent": bool(loader.persistent_workers),
        "data": type(data).__name__,
        "iterable": loader._dataset_kind == ITERABLE,
        "own_collate": not _is_torchs(loader.collate_fn),
    }


def _is_torchs(function: Any) -> bool:
    function = getattr(function, "func", function)  # of a partial
    return str(getattr(function, "__module__", "")).startswith("torch.utils.data.")


def _to_number(value: Any) -> int:
    """0 of what is none: a batch_sampler may call anything its batch_size."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _wrap_init(original: Any) -> Any:
    @wraps(original)
    def __init__(self: Any, loader: Any) -> None:  # noqa: N807
        original(self, loader)
        try:
            session = sessions.get_session()
            self._doctor_loop, self._doctor_session = session.loop_of(loader, describe_loader), session
        except Exception as error:
            settings.note_error(f"iter: {error!r}")

    return __init__


def _wrap_iter(original: Any) -> Any:
    @wraps(original)
    def __iter__(self: Any) -> Any:  # noqa: N807
        began = perf_counter_ns()
        iterator = original(self)
        loop = getattr(iterator, "_doctor_loop", None)
        if loop is not None and iterator._doctor_session is sessions.current:
            loop.begin_pass(began)
        return iterator

    return __iter__


def _wrap_next(original: Any) -> Any:
    @wraps(original)
    def __next__(self: Any) -> Any:  # noqa: N807
        session = getattr(self, "_doctor_session", None)
        if session is not sessions.current or session is None:
            return original(self)
        return session.advance_loop(self._doctor_loop, self, original)

    return __next__


def _wrap_tried(original: Any) -> Any:
    """DataLoader's __init__ with some arguments given by whoever runs the doctor."""
    signature = inspect.signature(original)
    wanted = dict(pair.split("=") for pair in settings.TRY.split(","))

    @wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        given = signature.bind(self, *args, **kwargs).arguments
        rest = given.pop("kwargs", {})
        given.update({name: _parse_value(text) for name, text in wanted.items()})
        if not given.get("num_workers"):
            given.pop("prefetch_factor", None)
            given.pop("persistent_workers", None)
            given.pop("multiprocessing_context", None)
        original(**given, **rest)

    return __init__


def _parse_value(text: str) -> Any:
    return {"True": True, "False": False}.get(text, int(text) if text.lstrip("-").isdigit() else text)
