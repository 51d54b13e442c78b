"""What the doctor says, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .cause_texts import CAUSES
from .causes import Action
from .screen import format_screen
from .signals import Signals

__all__ = ["CAUSES", "Verdict"]

OF_FETCHES = {"fetch_s", "cpu", "queued", "blocked", "collate", "decode", "extra", "duty", "uneven", "pixels"}
OF_FETCHES |= {"batch_cpu_s", "batch_blocked_s", "samples", "read_bytes", "disk", "broken"}
OF_HOST = {"loop_cores", "others", "loop_queued", "throttled", "torch_threads", "network_bytes", "grows_bytes"}
OF_LOOKS = {"sync", "after_sync", "copy", "autocast"}
"""What is unknown, and None in the evidence, where no fetch was seen, nor the machine, nor single steps."""


@dataclass(frozen=True)
class Verdict:
    """One verdict and its evidence. str() is one screen of text."""

    verdict: str
    """healthy, data-bound, not-data, errors or unknown."""
    cause: str
    why: str = ""
    """More than CAUSES says, where there is more to say."""
    signals: Signals | None = None
    """Of the worst rank; None: nothing could be measured."""
    actions: list[Action] = field(default_factory=list)
    """Best first."""
    runner_up: str = ""
    """The next likely cause."""
    ranks: dict[int, float | None] = field(default_factory=dict)
    """Stall by rank."""
    advice: list[tuple[str, str, str]] = field(default_factory=list)
    """Tip, what becomes of it here (yes, no, try, unknown), why."""
    notes: list[str] = field(default_factory=list)
    curve: dict[int, float] = field(default_factory=dict)
    """Seconds per batch by num_workers, where that was measured."""

    @property
    def ceiling(self) -> float | None:
        """How much faster the loop would be if data were always ready, as far as this host can tell. More than
        1 / (1 - stall) only where such steps were seen. JSON says whether it is estimated.
        """
        s = self.signals
        return None if s is None or s.stall is None else s.period_s / s.ceiling_s

    @property
    def exit_code(self) -> int:
        """0 healthy or not data, 3 data-bound, 1 errors or unknown."""
        return {"healthy": 0, "not-data": 0, "data-bound": 3}.get(self.verdict, 1)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: times in seconds, shares from 0 to 1, None for what is unknown."""
        s = self.signals
        return {
            "verdict": self.verdict,
            "cause": self.cause,
            "idle": s.idle if s else None,
            "wait": s.wait if s else None,
            "ceiling": self.ceiling,
            "least_gain": s.least_gain if s else None,
            "estimated": None if s is None or self.ceiling is None else s.estimated,
            "stall": s.stall if s else None,
            "period_s": s.period_s if s else None,
            "evidence": {"why": self.why or CAUSES[self.cause], **_collect_evidence(s)},
            "actions": [
                {"do": a.do, "gain": a.gain, **({"try": a.arguments} if a.arguments else {})} for a in self.actions
            ],
            "runner_up": self.runner_up or None,
            "ranks": {str(rank): stall for rank, stall in sorted(self.ranks.items())},
            "advice": [{"tip": tip, "result": result, "why": why} for tip, result, why in self.advice],
            "notes": list(self.notes),
            "curve": {str(n): took for n, took in self.curve.items()},
        }

    def __str__(self) -> str:
        return format_screen(self)


def _collect_evidence(s: Signals | None) -> dict[str, Any]:
    if s is None:
        return {}
    seen = ((s.fetches, OF_FETCHES), (s.host, OF_HOST), (s.looked, OF_LOOKS))
    unseen = {name for was, names in seen if not was for name in names}
    shown = {k: None if k in unseen else v for k, v in vars(s).items() if k not in ("idle", "wait")}
    return {**shown, "fed_s": s.fed_s, "void": s.replayed_s is not None}
