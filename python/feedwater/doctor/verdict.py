"""What the doctor says, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .causes import Action
from .signals import Signals

__all__ = ["CAUSES", "Verdict"]

CAUSES = {
    "too-few-workers": "workers compute all the time, and cores are free",
    "too-many-workers": "more workers than cores",
    "worker-threads": "threads inside the workers fight for the cores",
    "cpu-starved": "other programs take the cores",
    "storage": "workers wait for files",
    "slow-link": "workers wait for the network",
    "worker-blocked": "workers wait: locks, sleeps, remote calls",
    "slow-collate": "collate_fn takes the workers' time",
    "giant-images": "pictures far larger than the crop",
    "uneven-batches": "some batches take much longer than others",
    "epoch-boundary": "workers start again at every epoch",
    "tiny-model": "a step takes next to nothing beside making or handing over its batch",
    "hand-over": "the main process receives batches slower than workers make them",
    "cores-used-up": "every core makes data already",
    "few-nodes": "nodes make batches slower than this loop takes them",
    "straggler-rank": "one rank is late, the others wait for it",
    "bad-images": "broken pictures are decoded, then dropped",
    "graph-leak": "the autograd graph grows every step",
    "missing-no-grad": "graphs are built in a loop without backward",
    "pin-memory-off": "copies from pageable memory hold up the GPU",
    "gpu-shared": "another program uses this GPU",
    "sync-in-loop": "the loop waits for the GPU inside the step",
    "launch-bound": "the GPU is done before the host has launched more",
    "host-contended": "other programs take the training loop's cores",
    "gpu-bound": "the GPU always has work",
    "step-bound": "the step itself takes the time",
    "script-failed": "the script failed",
    "out-of-memory": "memory ran out",
    "not-hooked": "no Python of this command could be looked into",
    "no-loader": "no DataLoader was used",
    "too-short": "too few steps to judge by",
    "unsteady": "the loop waits for data, yet steps with data ready took no less",
    "probe-failed": "the doctor itself failed",
    "off-thread": "batches are fetched by another thread than the loop's",
    "idle-unknown": "the loop waits for data, and whether the GPU feels it is not known",
}
"""Every cause, in a line."""


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
            "estimated": None if s is None or self.ceiling is None else s.estimated,
            "stall": s.stall if s else None,
            "period_s": s.period_s if s else None,
            "evidence": {"why": self.why or CAUSES[self.cause], **_evidence(s)},
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
        from .screen import text

        return text(self)


def _evidence(s: Signals | None) -> dict[str, Any]:
    if s is None:
        return {}
    seen = ((s.fetches, OF_FETCHES), (s.host, OF_HOST), (s.looked, OF_LOOKS))
    unseen = {name for was, names in seen if not was for name in names}
    shown = {k: None if k in unseen else v for k, v in vars(s).items() if k not in ("idle", "wait")}
    return {**shown, "fed_s": s.fed_s, "void": s.replayed_s is not None}
