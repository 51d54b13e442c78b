"""A run in numbers: what the rules look at. Shares are from 0 to 1; None is unknown, and never 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._common.constants import FEW_STEPS

__all__ = ["LEAST_ROWS", "Signals"]

LEAST_ROWS = FEW_STEPS
"""Steps below which a loop says nothing."""
CROWDED = 0.25
"""Share of the cores that others have, from which on they are to blame where ours are wanting."""
SURE = 5
"""Steps with data ready by which a loop is known to get faster than by what it waits; fewer may be short by chance."""


@dataclass(frozen=True)
class Signals:
    """Of the busiest loop of one process. The defaults are of a healthy loop on two cores."""

    rank: int = 0
    loader: str = "DataLoader"
    data: str = ""
    workers: int = 1
    batch_size: int = 0
    pin_memory: bool = False
    prefetch: int = 2
    persistent: bool = False
    iterable: bool = False
    own_collate: bool = True
    """The script's own collate_fn, or one that is not known; False: torch's."""
    steps: int = 200
    cores: int = 2

    step_s: float = 0.02
    """Mean of a step, by the GPU's clock where it has events."""
    long_waits: int = 0
    """Steps that are not in the mean, as pauses are not, and mostly waited for data."""
    long_wait_s: float = 0.0
    """What they waited, all together."""
    long_wait: float = 0.0
    """Share of the loop's time that is."""
    ready_s: float | None = None
    """Mean of steps after a burst, which found their batches ready; None: fewer than three were seen."""
    ready_steps: int = 0
    replayed_s: float | None = None
    """Mean of a step with batches that were seen before."""
    wait: float = 0.0
    """Share of a step the loop was blocked in next."""
    gpu: bool = False
    """A GPU is used."""
    idle: float | None = None
    """Share of a step the GPU stood still for data."""
    idle_unknown: str = ""
    dry: float | None = None
    """Share of steps at whose next the GPU had nothing left to do."""
    edge_s: float = 0.0
    """Time per step lost between iter() and the first batch, the first pass apart."""
    steps_per_pass: float = 1e9
    empty: float = 0.0
    """Share of steps that found no batch ready."""
    held: float = 0.0
    """Share of steps that found batches ready behind one that was not."""

    fetches: int = 100
    """Batches that workers made; 0: nothing is known of them."""
    fetch_s: float = 0.01
    """One of them, from asked to made."""
    cpu: float = 1.0
    """Share of a fetch the worker computed."""
    queued: float = 0.0
    """Share it was ready to compute and had no core."""
    blocked: float = 0.0
    """Share it waited: for files, network, locks."""
    collate: float = 0.0
    """Share in collate_fn, whether it computed or not."""
    decode: float | None = None
    """Share of what the worker computed that decoded pictures; None: no picture was seen to be."""
    pixels: float = 0.0
    """Of a picture, as far as it was decoded; 0 where that is unknown."""
    extra: float = 0.0
    """CPU time of further threads of the workers, in shares of the fetch."""
    duty: float = 0.5
    """Share of their lives in which workers fetched."""
    uneven: float = 1.0
    """Longest fetch over the mean."""
    batch_cpu_s: float = 0.01
    """Of all threads of the worker."""
    batch_blocked_s: float = 0.0
    samples: float = 16.0
    """Per fetch."""
    read_bytes: float = 0.0
    """Per sample."""
    disk: float = 0.0
    """Share of them that came from a device."""
    network_bytes: float = 0.0
    """Per sample, whoever received them."""
    broken: float = 0.0
    """Share of samples that did not decode."""
    missing_copies: float = 0.0
    """Share of the pictures decoded for a feedwater.Loader that could have had a copy, for which no room was given."""
    made_copies: float = 0.0
    """Share of them that had their copy made on the way."""
    more_copies_bytes: float = 0.0
    """What copies of all pictures of its data set that lack one would take, about; 0: not known."""
    all_copies_bytes: float = 0.0
    """The same with those that are there."""
    folder: str = ""
    """What `feedwater index` reads its pictures from; empty: not known."""
    room: str = ""
    """FEEDWATER_INDEX_COPIES, of this process."""

    unkept: int = 0
    """Samples of its data set where most are of encodings that gain most by kept pixels, and none are kept here."""

    host: bool = True
    """Whether the machine was looked at; without, the next lines are unknown."""
    loop_cores: float = 0.1
    """Cores that the training process used itself."""
    others: float = 0.0
    """Cores that other programs used."""
    loop_queued: float = 0.0
    """Share of time in which the loop's thread had no core."""
    throttled: int = 0
    torch_threads: int = 2

    graph: str = ""
    """Variable whose autograd graph grows."""
    without_backward: bool = False
    """The loop builds graphs and never goes backward."""
    off_thread: int = 0
    looked: int = 0
    """Steps of the closer look; without them the next lines are unknown."""
    sync: float = 0.0
    """Share of a step in calls that wait for the GPU: item, cpu, synchronize."""
    after_sync: float = 0.0
    """Share of a step between the last of them and next."""
    sync_line: str = ""
    copy: float = 0.0
    """Share of a step in which copies from pageable memory to the GPU ran."""
    copy_line: str = ""
    autocast: bool = False
    compiled: bool = False
    model: dict[str, Any] = field(default_factory=dict)
    shapes: int = 1
    memory: dict[str, int] = field(default_factory=dict)
    grows_bytes: float = 0.0
    """Resident memory per step."""

    @property
    def crowded(self) -> bool:
        """Whether other programs have cores that ours may want."""
        return self.others > CROWDED * self.cores

    @property
    def period_s(self) -> float:
        """A step and its part of the epoch's beginning."""
        return self.step_s + self.edge_s

    @property
    def in_step(self) -> float | None:
        """Share of a step that data cost: the GPU's idle, without a GPU the wait; None: a GPU that does not tell."""
        return self.idle if self.gpu else self.wait

    @property
    def stall(self) -> float | None:
        """Share of all time that data cost."""
        return None if self.in_step is None else (self.in_step * self.step_s + self.edge_s) / self.period_s

    @property
    def rest_s(self) -> float:
        """A step without what data cost of it."""
        return self.step_s * (1 - (self.in_step or 0.0))

    @property
    def fed_s(self) -> float:
        """A step with data ready: seen after bursts, else without its stall, which on a busy host is a guess. It may be
        shorter than that, for the loop then has the cores that make batches: where enough were seen, down to half of
        what is left without the time in which the loop's thread queued for a core that our own workers had.
        """
        if self.ready_s is None:
            return self.rest_s
        queued_s = 0.0 if self.crowded else self.loop_queued * self.step_s
        least_s = (self.rest_s - queued_s) / 2 if self.ready_steps >= SURE else self.rest_s
        return max(min(self.step_s, self.ready_s), least_s)

    @property
    def ceiling_s(self) -> float:
        """A step with data made elsewhere: with batches replayed, else what can be told of it here."""
        return self.replayed_s or self.fed_s

    @property
    def least_gain(self) -> float | None:
        """What data always ready gives at least, where steps that promise more were seen beside other programs, who may
        have taken less of the cores just then; else None.
        """
        if not self.crowded or self.replayed_s is not None or self.fed_s >= self.rest_s:
            return None
        return self.period_s / self.rest_s

    @property
    def estimated(self) -> bool:
        """Whether no step was seen that took ceiling_s."""
        return self.replayed_s is None and self.fed_s != self.ready_s

    @property
    def sample_cpu_s(self) -> float:
        """Core-seconds that a sample costs."""
        return self.batch_cpu_s / max(1.0, self.samples)
