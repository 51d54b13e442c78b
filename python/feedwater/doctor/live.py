"""The doctor inside a program: diagnose() runs a loop by itself, of_stats() judges a Loader by what it has counted."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter, perf_counter_ns
from typing import Any

from .._common.constants import BOUND_SHARE
from .._meter.gpu_events import synchronize_gpu
from .._meter.idle import NO_GPU
from .._meter.pace import Stats
from ..errors import Error
from . import curve, report
from .kept_pixels import picture_facts
from .measured import measure_run
from .probe import fetches, loaders, passes, settings
from .probe.session import Session
from .rules import judge_loop
from .signals import LEAST_ROWS, Signals
from .verdict import Verdict

__all__ = ["diagnose", "of_stats"]

LEAST_STEPS = 40
REPLAYED = 8
"""Batches that come again and again to time a step that waits for nothing."""
WARM_REPLAYS = 3


def diagnose(dataloader: Any, step: Callable[[Any], Any], *, steps: int = 100, workers: bool = True) -> Verdict:
    """Runs so many steps over a DataLoader or Loader and says what data costs, why, and what to do:

        print(feedwater.diagnose(loader, lambda batch: train_step(*batch)))

    step gets a batch and does what the training loop does with it. It is called steps times with batches as they come,
    and then with some of them again: that times a step for which data is always ready, the true ceiling. So the model
    is trained on, with batches seen twice: do this before training, or on a copy. With workers, the DataLoader's data
    set is then fetched with 0, 1, 2, 4 … workers for two seconds each, to measure what num_workers gives. Workers must
    be forked for their own times to be seen. torch's and Python's random state are afterwards as after the steps alone.
    """
    if steps < LEAST_STEPS:
        raise ValueError(f"steps={steps}: needs at least {LEAST_STEPS}")
    session = Session()
    try:
        with _time_fetches() as folder:
            kept = _run_steps(session, dataloader, step, steps)
            boards = report.read_boards(folder, os.getpid())
        measured = measure_run(report.Run(session.make_report(), *boards))
    finally:
        session.looks.close_window()
        atexit.unregister(session.end_session)
    if measured is None:
        raise Error(f"the loader gave fewer than {LEAST_ROWS + 10} batches in a row: too few to judge by")
    s = replace(measured, replayed_s=_time_replay(step, kept, steps // 2), ready_s=None)
    times = curve.measure_curve(dataloader, s) if workers else {}
    return curve.apply_curve(judge_loop(s), times)


def of_stats(stats: Stats, *, elsewhere: bool, pictures: Mapping[str, Any] | None = None) -> Verdict:
    """Of a feedwater.Loader, by its own counters. elsewhere: nodes make its batches; pictures: Loader._pictures."""
    if stats.batches < LEAST_ROWS or not stats.step_s:
        return Verdict("unknown", "too-short", f"{stats.batches} batches; it takes {LEAST_ROWS}")
    gpu = stats.idle_unknown != NO_GPU
    s = Signals(
        loader="feedwater.Loader",
        data="nodes" if elsewhere else "folder",
        workers=0,
        steps=stats.batches,
        cores=len(os.sched_getaffinity(0)),
        step_s=stats.step_s / stats.batches,
        wait=stats.wait_share,
        gpu=gpu,
        idle=_judge_idle(stats) if gpu else None,
        idle_unknown=stats.idle_unknown if gpu else "",
        fetches=0,
        host=False,
        broken=(stats.skipped + stats.substituted) / max(1, stats.samples),
        **picture_facts(**(pictures or {"use": stats.index})),
    )
    return judge_loop(s)


def _judge_idle(stats: Stats) -> float | None:
    """Where a stream may work that nobody sees, the bound, if that is too little to matter."""
    most = stats.idle_most_share
    if stats.idle_unknown and most is not None and most < BOUND_SHARE:
        return most
    return None if stats.idle_unknown else stats.idle_share


# -- the loop ----------------------------------------------------------------------------------------------------------


def _run_steps(session: Session, dataloader: Any, step: Callable[[Any], Any], steps: int) -> list[Any]:
    """As many steps, in as many passes as they take. The last batches."""
    kept: list[Any] = []
    loop = session.add_loop(_describe_loader(dataloader))
    while loop.steps < steps:
        before, began = loop.steps, perf_counter_ns()
        iterator = iter(dataloader)
        loop.begin_pass(began)
        while loop.steps < steps:
            try:
                batch = session.advance_loop(loop, iterator, next)
            except StopIteration:
                break
            kept = [*kept[1 - REPLAYED :], batch]
            step(batch)
        if loop.steps == before:
            raise Error("the loader is empty")
    return kept


def _time_replay(step: Callable[[Any], Any], batches: list[Any], number: int) -> float:
    """Mean time of a step with batches that are there, in seconds."""
    for at in range(WARM_REPLAYS):
        step(batches[at % len(batches)])
    synchronize_gpu()
    began = perf_counter()
    for at in range(number):
        step(batches[at % len(batches)])
    synchronize_gpu()
    return (perf_counter() - began) / number


def _describe_loader(loader: Any) -> dict[str, Any]:
    if hasattr(loader, "_config"):
        return passes.describe_loader(loader)
    if hasattr(loader, "num_workers") and hasattr(loader, "dataset"):
        return loaders.describe_loader(loader)
    about: dict[str, Any] = {"loader": type(loader).__name__, "workers": 0, "batch_size": 0, "pin_memory": False}
    return about | {"prefetch": 0, "persistent": False, "data": "", "iterable": True, "own_collate": True}


@contextmanager
def _time_fetches() -> Iterator[str]:
    """Times fetches, in this process and in those that it forks meanwhile; yields the folder of their boards."""
    module = sys.modules.get("torch.utils.data._utils.fetch")
    before = settings.FOLDER
    with tempfile.TemporaryDirectory(prefix="feedwater-doctor-") as folder:
        settings.FOLDER = folder
        kinds: list[Any] = []
        if module is not None:
            kinds = [module._BaseDatasetFetcher, module._MapDatasetFetcher, module._IterableDatasetFetcher]
        kept = [
            (kind, name, vars(kind)[name]) for kind in kinds for name in ("__init__", "fetch") if name in vars(kind)
        ]
        fetches.here.forget_measures()
        try:
            if module is not None:
                fetches.patch(module)
            yield folder
        finally:
            settings.FOLDER = before
            for kind, name, original in kept:
                setattr(kind, name, original)
