"""How long a step would take, were something else: by work and cores, not by guess.

    step(n) = max(fed, (cpu + blocked) ÷ n, (cpu + own) ÷ cores to be had) + edge

fed is the step with data ready, cpu and blocked what a batch costs a worker, own the loop's CPU time per step. With
n = 0 the loop fetches by itself: fed + cpu + blocked + edge. Neither caches nor sibling threads of a core are in it.
"""

from __future__ import annotations

from collections.abc import Iterable

from .signals import Signals

__all__ = ["Step"]

QUIET = 0.1
"""Cores of other programs that nobody feels."""
NEAR = 1.05
"""The smallest number of workers within that of the best is the best."""


class Step:
    """Predicts steps of one loop."""

    def __init__(self, signals: Signals) -> None:
        self._s = s = signals
        self.cpu_s, self.blocked_s = s.batch_cpu_s, s.batch_blocked_s
        own_s = s.loop_cores * s.step_s
        self._own_s = own_s if s.workers else max(0.0, own_s - s.batch_cpu_s)

    def seconds(
        self,
        workers: int | None = None,
        *,
        cpu_s: float | None = None,
        blocked_s: float | None = None,
        edge_s: float | None = None,
        alone: bool = False,
    ) -> float:
        """With so many workers, or so much work per batch, or a machine without other programs."""
        s = self._s
        cpu_s = self.cpu_s if cpu_s is None else cpu_s
        blocked_s = self.blocked_s if blocked_s is None else blocked_s
        edge_s = s.edge_s if edge_s is None else edge_s
        workers = s.workers if workers is None else workers
        if not workers:
            return s.fed_s + cpu_s + blocked_s + edge_s
        by_cores = (cpu_s + self._own_s) / (s.cores if alone else self._cores(workers, cpu_s, blocked_s))
        return max(s.fed_s, (cpu_s + blocked_s) / workers, by_cores) + edge_s

    def _cores(self, workers: int, cpu_s: float, blocked_s: float) -> float:
        """That this program would get: those that are free, or its part of all by runnable threads, if that is more."""
        s = self._s
        if s.others <= QUIET:
            return float(s.cores)
        running = workers * cpu_s / (cpu_s + blocked_s + 1e-9) + self._own_s / s.step_s
        return max(0.25, s.cores - s.others, s.cores * running / (running + s.others + 0.01))

    def best(self, numbers: Iterable[int]) -> int:
        """Of so many workers, the fewest that are as good as the best."""
        took = {n: self.seconds(n) for n in sorted(set(numbers))}
        return next(n for n, seconds in took.items() if seconds <= NEAR * min(took.values()))

    def gain(self, seconds: float) -> float:
        """How much faster the loop would be with steps of that length, edges included. Below 1 is slower."""
        return self._s.period_s / seconds if seconds > 0 else 1.0
