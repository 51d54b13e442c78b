"""What becomes of the usual tips here. Each is tested against what was measured, and says so where that cannot tell."""

from __future__ import annotations

from collections.abc import Iterator

from .._common.constants import BOUND_SHARE, PREFETCH_SHARE
from .causes import Action
from .signals import Signals
from .step import Step

__all__ = ["judge_tips", "suggest_fits"]

Tip = tuple[str, str, str]
YES, NO, TRY, UNKNOWN = "yes", "no", "try", "unknown"
WORTH = 1.03
SPARE = 0.95
"""Part of a GPU's memory that batches may fill."""


def judge_tips(s: Signals) -> list[Tip]:
    """Tip, result and reason. yes: measured to help; no: measured not to; try: it may, and only a run would tell."""
    ours = s.loader.startswith("feedwater")
    return [*_gpu_tips(s)] if ours else [*_worker_tips(s), *_picture_tips(s), *_gpu_tips(s)]


def _worker_tips(s: Signals) -> Iterator[Tip]:
    yield _num_workers_tip(s)
    yield _prefetch_tip(s)
    edge = s.edge_s / s.period_s
    if s.persistent or not s.workers:
        yield "persistent_workers", NO, "they are" if s.persistent else "no workers"
    elif s.steps_per_pass > 1e6:
        yield "persistent_workers", UNKNOWN, "one epoch was seen"
    else:
        yield "persistent_workers", YES if edge > 0.03 else NO, f"epoch starts cost {edge:.1%}"
    yield _pin_tip(s)
    if s.fetches and s.workers:
        result = YES if s.extra > 0.3 else NO
        yield "one thread per worker", result, f"further threads use {s.extra:.0%} of a worker's time"


def _num_workers_tip(s: Signals) -> Tip:
    """num_workers, by the model of step.py."""
    if not s.fetches:
        return "num_workers", UNKNOWN, "no fetch was seen"
    step = Step(s)
    numbers = {0, 1, 2, 4, 8, s.workers, s.cores, 2 * s.cores}
    best = step.best_workers({*numbers, *range(2 * s.cores)})
    curve = ", ".join(f"{n}: {step.step_seconds(n) * 1e3:.1f}" for n in sorted({*numbers, best}))
    took_s, told = step.step_seconds(best), f"expected ms a step {curve}"
    better = min(step.gain(took_s), step.step_seconds() / took_s) >= WORTH
    if s.workers > best and not better:
        return "num_workers", NO, f"{best} would do; more is not better; {told}"
    return "num_workers", YES if better else NO, told


def _prefetch_tip(s: Signals) -> Tip:
    if not s.workers or not s.fetches:
        return "prefetch_factor", NO, "no workers to run ahead"
    if s.wait < PREFETCH_SHARE:
        return "prefetch_factor", NO, "batches are there when they are asked for"
    if s.duty > 0.9:
        return "prefetch_factor", NO, f"workers are busy {s.duty:.0%} of the time: there is nothing to run ahead with"
    return "prefetch_factor", TRY, f"workers rest {1 - s.duty:.0%} of the time while the loop waits {s.wait:.0%}"


def _pin_tip(s: Signals) -> Tip:
    if not s.gpu:
        return "pin_memory", NO, "no GPU"
    if s.pin_memory:
        return "pin_memory", NO, "it is on"
    if not s.looked:
        return "pin_memory", UNKNOWN, "copies were not looked at"
    return "pin_memory", TRY if s.copy > 0.03 else NO, f"copies run {s.copy:.1%} of the time"


def _picture_tips(s: Signals) -> Iterator[Tip]:
    if s.decode is None:
        yield "a faster decoder", UNKNOWN, "no picture was seen to be decoded in the workers"
    else:
        half = Step(s)
        seconds = half.step_seconds(cpu_s=s.batch_cpu_s * (1 - 0.5 * s.decode))
        gain = half.gain(seconds)
        why = f"decoding is {s.decode:.0%} of what the workers compute; one twice as fast gives {gain:.2f}x"
        yield "a faster decoder", YES if gain >= WORTH else NO, why
    if not s.fetches:
        return
    gain = Step(s).gain(Step(s).step_seconds(blocked_s=0.0))
    place = f"{s.disk:.0%} of what is read comes from a disk" if s.read_bytes > 1000 else "little is read"
    why = f"workers wait {s.blocked:.0%} of a fetch, {place}"
    yield "faster storage, or a copy in memory", YES if gain >= WORTH and s.blocked > 0.1 else NO, why


def _gpu_tips(s: Signals) -> Iterator[Tip]:
    if not s.gpu:
        yield "cudnn.benchmark, channels_last, AMP", NO, "no GPU"
        return
    model = s.model
    bound = s.idle is not None and s.idle < BOUND_SHARE
    tips = (
        ("cudnn.benchmark", model.get("cudnn_benchmark"), s.shapes == 1, f"{s.shapes} shapes of batches"),
        ("channels_last", model.get("channels_last"), model.get("convolutions", 0) > 0, "for convolutions"),
        ("AMP", s.autocast or model.get("half"), True, "half precision"),
    )
    for tip, on, fit, about in tips:
        if not model:
            yield tip, UNKNOWN, "no model was seen"
        elif on:
            yield tip, NO, "it is on"
        elif not fit or not bound:
            yield tip, NO, about if not fit else "the GPU waits: a faster step would wait longer"
        else:
            yield tip, TRY, f"{about}; it is off"
    yield _batch_tip(s)


def _batch_tip(s: Signals) -> Tip:
    largest = _largest_batch(s)
    if largest is None:
        return "a larger batch", UNKNOWN, "memory was not seen"
    if s.dry is not None and s.dry > 0.8:
        return "a larger batch", TRY, f"about {largest} fit; the GPU waits for launches"
    return "a larger batch", NO, f"about {largest} fit, {s.batch_size} are used; the GPU has work anyway"


def _largest_batch(s: Signals) -> int | None:
    """Samples that fit: memory = model + batch × sample."""
    m = s.memory
    if not m or not s.batch_size or m["most"] <= m["held"]:
        return None
    per_sample = (m["most"] - m["held"]) / s.batch_size
    return max(1, int((SPARE * m["total"] - m["held"]) / per_sample))


def suggest_fits(s: Signals | None) -> list[Action]:
    """What to do when memory ran out."""
    largest = _largest_batch(s) if s is not None else None
    if largest is None:
        return [Action("a smaller batch with gradient accumulation, or less held between steps")]
    return [Action(f"batch_size={largest} is what fits, by {s.memory['total'] / 1e9:.0f} GB" if s else "")]
