"""What may hold data back: each cause where its evidence is, with what its remedy would make of a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .signals import Signals
from .step import Step

__all__ = ["Action", "Cause", "cause_of", "find_causes", "is_tiny", "suggest_nodes"]

QUEUED = 0.25
"""Share of a fetch, or of the loop's time, without a core: starved, where others have it."""
BLOCKED = 0.40
COLLATE = 0.35
VECTORISED = 0.2
"""What is left of a collate_fn's work without its loops, at least: five times as fast is promised."""
EXTRA = 0.30
EDGE = 0.5
"""Share of the stall that lies at the beginning of passes."""
GIANT_BYTES, GIANT_PIXELS, GIANT_S = 1e6, 4e6, 0.01
SMALL_BYTES, SMALL_PIXELS, SMALL_S = 1.5e5, 500 * 375, 0.005
"""Of a picture that is not too large for the usual crop, and what Pillow and torchvision take for one at least."""
TINY_S, SHORT_S, TINY_SAMPLE_S = 2e-3, 1e-2, 2e-4
"""A step as short as handing over its batch, one that may be on slow machines, and a sample that costs nothing."""
IDLE = 0.5
"""Share of the time in which batches of such samples take all cores, at most."""
SMALL_MODEL, SMALL_STEP = 500_000, 0.5
"""Parameters, and a step with data ready beside what its batch takes all cores: too little to decode for each time."""
LEAN = "give torch's collate less to do: tensors or arrays from the data set, no lists of numbers; uint8, not float32"
WHOLE_TENSORS = "whole tensors from memory, or a larger batch: no DataLoader per sample"
NETWORK = 0.3
"""Share of what is read that came through the network, to call the link the cause."""
READ_BYTES = 1000.0
WORTH = 1.03
NEAR = 1.05
LIKE_FEW = 0.95


@dataclass(frozen=True)
class Action:
    """Something to do."""

    do: str
    gain: float | None = None
    """How much faster the loop gets; None: that cannot be told before it is tried."""
    arguments: str = ""
    """The same for `feedwater doctor --try`, if it is a matter of a DataLoader's arguments."""


@dataclass(frozen=True)
class Cause:
    """Why data is late."""

    name: str
    action: Action
    step_s: float
    """With the remedy, edges included."""


def find_causes(s: Signals) -> list[Cause]:
    """Those with evidence whose remedy is worth something, or cannot be foretold; in the order of ties."""
    step = Step(s)
    return [cause for cause in _all_causes(s, step) if step.gain(cause.step_s) >= WORTH]


def cause_of(s: Signals, found: list[Cause]) -> str:
    """The one that gains most; of those within 5 % the first."""
    step = Step(s)
    if found:
        most = max(step.gain(cause.step_s) for cause in found)
        return next(cause.name for cause in found if step.gain(cause.step_s) * NEAR >= most)
    if s.loader.startswith("feedwater"):
        return "few-nodes" if s.data == "nodes" else "cores-used-up"
    if s.workers > 1.5 * s.cores + 1 and s.queued > QUEUED:
        return "too-many-workers"
    if _is_small(s) and (s.ready_s or s.fed_s) < SMALL_STEP * s.batch_cpu_s / s.cores:
        return "tiny-model"
    if s.workers and s.duty < 0.6 and s.held < 0.5 and s.queued < QUEUED:
        return "hand-over"
    return "cores-used-up"


def is_tiny(s: Signals) -> bool:
    """Whether little is done with samples that are known to cost next to nothing and are there: a short step, by the
    clock or by the model, for whose batches cores are free.
    """
    cheap = s.fetches > 0 and s.sample_cpu_s < TINY_SAMPLE_S
    short = s.fed_s < TINY_S or (_is_small(s) and s.fed_s < SHORT_S and s.batch_cpu_s / s.cores < IDLE * s.period_s)
    return cheap and short and s.blocked < BLOCKED


def suggest_nodes(s: Signals) -> Action:
    """Data made elsewhere: what is seen of it beside workers is a lower bound, replayed batches are the upper one."""
    least = s.least_gain
    if least is not None:
        do = f"feedwater nodes (data made elsewhere), {least:.2f}x to {Step(s).gain(s.ceiling_s):.2f}x beside this load"
        return Action(do)
    bound = "estimated" if s.estimated else "at least" if s.replayed_s is None else "at most"
    return Action(f"feedwater nodes (data made elsewhere), {bound}", Step(s).gain(s.ceiling_s))


def _all_causes(s: Signals, step: Step) -> Iterator[Cause]:
    def cause(name: str, do: str, seconds: float, arguments: str = "", told: bool = True) -> Cause:
        return Cause(name, Action(do, round(step.gain(seconds), 2) if told else None, arguments), seconds)

    if s.edge_s / s.period_s > EDGE * (s.stall or 0.0):
        yield _edge_cause(s, step)
    if not s.fetches:
        if s.crowded and s.loop_queued > QUEUED:
            yield cause("cpu-starved", _describe_others(s), step.step_seconds(alone=True), told=False)
        return
    if s.extra > EXTRA and s.workers:
        do = "one thread per worker: torch.set_num_threads(1), OMP_NUM_THREADS=1, cv2.setNumThreads(0)"
        lean = step.step_seconds(cpu_s=s.cpu / max(1e-9, s.cpu + s.extra) * s.batch_cpu_s, blocked_s=0.0)
        yield cause("worker-threads", do, lean, told=False)  # threads that spin and threads that work look alike
    if s.queued > QUEUED and s.crowded:
        told = s.loop_queued <= QUEUED  # else the loop itself gets faster, nobody knows how much
        yield cause("cpu-starved", _describe_others(s), step.step_seconds(alone=True), told=told)
    if s.collate > COLLATE and s.sample_cpu_s > (2e-5 if s.own_collate else TINY_SAMPLE_S):
        lean_s = s.batch_cpu_s * (1 - (1 - VECTORISED) * s.collate)
        do = "vectorise collate_fn: stack once, no loop over values" if s.own_collate else LEAN
        yield cause("slow-collate", do, step.step_seconds(cpu_s=lean_s), told=s.own_collate)
    if s.blocked > BLOCKED:
        n = step.best_workers(range(max(1, s.workers), 8 * s.cores + 1))
        near = step.gain(step.step_seconds(max(1, s.workers), blocked_s=0.0))
        each = step.gain(step.step_seconds(n))
        do = f"the data near, or cached: {near:.2f}x; or num_workers={n}: {each:.2f}x if each waits for itself, "
        do += "nothing if all share one limit"  # which one alone can tell by trying
        yield cause(_describe_blocking(s), do, step.step_seconds(n), f"num_workers={n}", told=False)
    if (_sample_bytes(s) > GIANT_BYTES or s.pixels > GIANT_PIXELS) and s.sample_cpu_s > GIANT_S:
        do = f"store smaller pictures: {_describe_size(s)} each now"
        yield cause("giant-images", do, step.step_seconds(cpu_s=_small_s(s)), told=bool(s.pixels) or not s.iterable)
    if is_tiny(s):
        yield cause("tiny-model", WHOLE_TENSORS, s.fed_s * LIKE_FEW + s.edge_s, told=False)
    elif s.blocked < BLOCKED:
        n = step.best_workers(range(s.workers, s.cores + 1)) if s.workers <= s.cores else s.workers
        if n > s.workers:
            yield cause("too-few-workers", f"num_workers={n}", step.step_seconds(n), f"num_workers={n}")
    if s.workers and s.uneven > 3 and s.held > 0.2 and s.duty < 0.85:
        do = f"prefetch_factor={4 * max(2, s.prefetch)}: batches take unevenly long"
        yield cause("uneven-batches", do, step.step_seconds(), f"prefetch_factor={4 * max(2, s.prefetch)}", told=False)


def _is_small(s: Signals) -> bool:
    return bool(s.model.get("parameters", SMALL_MODEL) < SMALL_MODEL)


def _edge_cause(s: Signals, step: Step) -> Cause:
    """Workers start anew at each pass, or fill the queue anew."""
    seconds = s.step_s + min(s.edge_s, (s.batch_cpu_s + s.batch_blocked_s) / s.steps_per_pass)
    fresh = s.workers and not s.persistent
    do = "persistent_workers=True" if fresh else "longer epochs: workers begin each with an empty queue"
    gain = round(step.gain(seconds), 2) if fresh else None
    return Cause("epoch-boundary", Action(do, gain, "persistent_workers=True" if fresh else ""), seconds)


def _sample_bytes(s: Signals) -> float:
    """What is read for a sample. Of an IterableDataset each worker may read all and keep its part: where pixels tell
    what giant is, no more is believed than what that leaves.
    """
    return s.read_bytes / max(1, s.workers) if s.iterable and s.pixels else s.read_bytes


def _describe_size(s: Signals) -> str:
    return f"{s.pixels / 1e6:.0f} megapixels" if s.pixels else f"{s.read_bytes / 1e6:.1f} MB"


def _small_s(s: Signals) -> float:
    """What a batch of small pictures would cost: decoding and resizing go by pixels, else by bytes."""
    share = SMALL_PIXELS / s.pixels if s.pixels else SMALL_BYTES / s.read_bytes
    return min(s.batch_cpu_s, max(s.batch_cpu_s * share, SMALL_S * s.samples))


def _describe_others(s: Signals) -> str:
    return f"stop or move the other programs: they take {s.others:.1f} of {s.cores} cores"


def _describe_blocking(s: Signals) -> str:
    """Bytes say what workers wait for; reads of sockets are no reads of files."""
    if s.network_bytes > 4096 and s.network_bytes > NETWORK * max(s.read_bytes, 4096):
        return "slow-link"
    return "storage" if s.read_bytes > READ_BYTES else "worker-blocked"
