"""What of the numbers other programs may have made, and what is left to say: one story, and no promise beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .causes import Action
from .signals import Signals
from .step import Step

__all__ = ["doubt_tips", "is_oversubscribed", "ours_queue", "suggest_fewer", "without_lucky_steps"]

Tip = tuple[str, str, str]
LUCKY = 0.95
"""Steps after pauses that took less than this part of what a step takes beside its wait need a reason."""
QUEUED = 0.25
OF_DATA = {
    "num_workers",
    "prefetch_factor",
    "persistent_workers",
    "one thread per worker",
    "a faster decoder",
    "faster storage, or a copy in memory",
}


def without_lucky_steps(s: Signals) -> tuple[Signals, list[str]]:
    """For a loop that hardly waits: steps after pauses do not count that were so short while others have the cores.

    Their number is small, and what others take changes from second to second.
    """
    if not s.crowded or s.ready_s is None or s.fed_s >= LUCKY * s.rest_s:
        return s, []
    took = f"{s.ready_steps} steps after pauses took {s.ready_s * 1e3:.1f} ms, and are not used"
    why = f"other programs take {s.others:.1f} of {s.cores} cores, and may have taken less just then"
    return replace(s, ready_s=None, ready_steps=0), [f"{took}: {why}"]


def doubt_tips(s: Signals, tips: list[Tip]) -> list[Tip]:
    """For a loop that hardly waits, beside other programs: no tip about its data is known to help."""
    if not s.crowded:
        return tips
    why = f"the loop hardly waits, and other programs take {s.others:.1f} of {s.cores} cores: look again without them"
    return [
        (tip, "unknown", why) if tip in OF_DATA and result == "yes" else (tip, result, was) for tip, result, was in tips
    ]


def is_oversubscribed(s: Signals) -> bool:
    """Whether more workers than cores queue for them."""
    return s.fetches > 0 and s.workers > 1.5 * s.cores + 1 and s.queued > QUEUED


def ours_queue(s: Signals) -> bool:
    """Whether workers are more of those who queue than other programs are."""
    return is_oversubscribed(s) and s.workers * s.duty * (s.cpu + s.queued) > 2 * s.others


def suggest_fewer(s: Signals) -> Iterator[Action]:
    """Fewer workers, where they queue for cores that others take too: how much faster that is nobody knows."""
    if is_oversubscribed(s):
        n = Step(s).best_workers(range(1, s.cores + 1))
        do = f"num_workers={n}: {s.workers} workers and the loop queue for {s.cores} cores"
        yield Action(do, None, f"num_workers={n}")
