"""What a data set gives with 0, 1, 2, 4 … workers and a loop that does nothing: the num_workers curve, measured."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from time import perf_counter
from typing import Any

from .causes import Action
from .signals import Signals
from .verdict import Verdict

__all__ = ["apply_curve", "measure_curve"]

SECONDS = 2.0
LEAST_BATCHES = 4
WORSE = 0.9
"""A rate that far below that of fewer workers is measured again: the machine may have been busy."""
WORTH = 1.03
MODELLED = ("cores-used-up", "hand-over")
"""What is left when a model sees no use in more workers; a measurement that does wins."""


def measure_curve(loader: Any, s: Signals) -> dict[int, float]:
    """Seconds per batch by number of workers; empty for what is no DataLoader of torch."""
    module = sys.modules.get("torch.utils.data")
    if module is None or not isinstance(loader, module.DataLoader):
        return {}
    times: dict[int, float] = {}
    with _keep_random_state():
        for n in sorted({0, 1, 2, 4, s.cores, 2 * s.cores, s.workers}):
            if n > max(2 * s.cores, s.workers):
                continue
            taken = _batch_s(module.DataLoader, loader, n)
            if times and taken > min(times.values()) / WORSE:
                taken = min(taken, _batch_s(module.DataLoader, loader, n))
            times[n] = taken
    return times


def apply_curve(verdict: Verdict, times: dict[int, float]) -> Verdict:
    """A verdict whose advice on num_workers is what was measured, not what was modelled."""
    s = verdict.signals
    if not times or s is None:
        return verdict
    period_s, fed_s = s.period_s, s.replayed_s or s.fed_s
    gains = {n: period_s / (fed_s + took if n == 0 else max(fed_s, took)) for n, took in times.items()}
    best = next(n for n in sorted(gains) if gains[n] * 1.05 >= max(gains.values()))
    told = ", ".join(f"{n}: {took * 1e3:.1f}" for n, took in times.items())
    better = best != s.workers and gains[best] >= WORTH
    tip = ("num_workers", "yes" if better else "no", f"measured ms a batch {told}")
    tips = [tip if old[0] == tip[0] else old for old in verdict.advice]
    actions = [action for action in verdict.actions if not action.arguments.startswith("num_workers")]
    cause = verdict.cause
    if verdict.verdict == "data-bound" and better:
        actions = [Action(f"num_workers={best} (measured)", round(gains[best], 2), f"num_workers={best}"), *actions]
        cause = "too-few-workers" if cause in MODELLED and best > s.workers else cause
    return replace(verdict, cause=cause, advice=tips, actions=actions, curve=times)


def _batch_s(kind: Any, loader: Any, workers: int) -> float:
    """Seconds per batch with so many workers, after those that the queue holds."""
    own: dict[str, Any] = {"num_workers": workers, "collate_fn": loader.collate_fn}
    own |= {"worker_init_fn": loader.worker_init_fn}
    if workers:
        own["multiprocessing_context"] = loader.multiprocessing_context
    if hasattr(loader.dataset, "__getitem__"):
        own["batch_sampler"] = _Batches(len(loader.dataset), loader.batch_size or 1)
    else:
        own["batch_size"] = loader.batch_size
    batches = iter(kind(loader.dataset, **own))
    for _ in islice(batches, 2 * workers + 1):
        pass
    began, number = perf_counter(), 0
    while number < LEAST_BATCHES or perf_counter() - began < SECONDS:
        if next(batches, None) is None:
            break
        number += 1
    return (perf_counter() - began) / max(1, number)


class _Batches:
    """Endless batches of indices, spread over the data set, without drawing a number."""

    def __init__(self, samples: int, batch: int) -> None:
        self._samples, self._batch = samples, batch

    def __iter__(self) -> Iterator[list[int]]:
        step, at = 7919, 0
        while True:
            yield [(at + k * step) % self._samples for k in range(self._batch)]
            at += self._batch * step


@contextmanager
def _keep_random_state() -> Iterator[None]:
    """Leaves the random state of torch and Python as it was, and says nothing of many workers."""
    torch = sys.modules["torch"]
    states = torch.get_rng_state(), random.getstate()
    try:
        with warnings.catch_warnings():  # of more workers than cores, which is what is to be seen
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
