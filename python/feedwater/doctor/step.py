"""How long a step would take, were something else: by work and cores, not by guess.

    step(n) = max(fed, (own + cpu) ÷ cores, (cpu ÷ rate + blocked) ÷ n) + edge
    rate    = cores ÷ (threads of ours and of others that want to run), at most 1

fed is the step with data ready, own what a step costs the loop, cpu and blocked what a batch costs a worker. Others are
counted by how our threads queued beside them, for by head the scheduler shares. With n = 0 the loop fetches by itself:
fed + cpu + blocked + edge. Neither caches nor sibling threads of a core are in it.
"""

from __future__ import annotations

from collections.abc import Iterable

from .signals import Signals

__all__ = ["Step"]

FREE = 0.95
"""A thread that runs in this part of the time in which it could has cores enough."""
NEAR = 1.05
"""The smallest number of workers within that of the best is the best."""


class Step:
    """Predicts steps of one loop."""

    def __init__(self, signals: Signals) -> None:
        self._s = s = signals
        own_s = s.loop_cores * s.step_s
        self._own = (own_s if s.workers else max(0.0, own_s - s.batch_cpu_s)) / s.step_s
        self._own_s = min(self._own * s.step_s, s.cores * s.fed_s)
        self._others = _other_threads(s, self._own)

    def step_seconds(
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
        cpu_s = s.batch_cpu_s if cpu_s is None else cpu_s
        blocked_s = s.batch_blocked_s if blocked_s is None else blocked_s
        edge_s = s.edge_s if edge_s is None else edge_s
        workers = s.workers if workers is None else workers
        if not workers:
            return s.fed_s + cpu_s + blocked_s + edge_s
        wanted = workers * cpu_s / (cpu_s + blocked_s + 1e-9) + self._own
        rate = min(1.0, s.cores / (wanted + (0.0 if alone else self._others)))
        return max(s.fed_s, (self._own_s + cpu_s) / s.cores, (cpu_s / rate + blocked_s) / workers) + edge_s

    def best_workers(self, numbers: Iterable[int]) -> int:
        """Of so many workers, the fewest that are as good as the best."""
        took = {n: self.step_seconds(n) for n in sorted(set(numbers))}
        return next(n for n, seconds in took.items() if seconds <= NEAR * min(took.values()))

    def gain(self, seconds: float) -> float:
        """How much faster the loop would be with steps of that length, edges included. Below 1 is slower."""
        return self._s.period_s / seconds if seconds > 0 else 1.0


def _other_threads(s: Signals, own: float) -> float:
    """Threads of other programs that want to run; at least the cores that they use."""
    rate = s.cpu / max(1e-9, s.cpu + s.queued)
    if rate > FREE or not s.fetches:
        return s.others
    ours = s.workers * s.duty * (s.cpu + s.queued + s.extra) + own if s.workers else 1.0
    return max(s.others, s.cores / rate - ours)
