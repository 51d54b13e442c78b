"""A policy that learns from the training loop."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..errors import UnsupportedTransformError
from ._checks import check_number, check_whole
from ._op import Op

__all__ = ["CTAugment"]


@dataclass(frozen=True)
class CTAugment(Op):
    """CTAugment (ReMixMatch, FixMatch): some of 19 ops, chosen evenly, at levels that Loader.feedback teaches.

    depth      ops for each picture
    probe      share of the samples that are probes: their levels are drawn evenly, and they alone teach
    threshold  levels that went less well than this, next to the best one of their op, are not drawn any more
    decay      how much of what was learnt a probe leaves as it is
    lag        the batch of step t is drawn by what was learnt up to step t - lag, so at most lag batches are made ahead
    """

    depth: int = 2
    probe: float = 0.5
    threshold: float = 0.85
    decay: float = 0.99
    lag: int = 8

    def __post_init__(self) -> None:
        for name, most in (("depth", 16), ("lag", 256)):
            check_whole(self, name, 1, most)
        for name in ("probe", "threshold", "decay"):
            check_number(self, name, 0, 1)

    def on_tensor(self) -> Op:
        raise UnsupportedTransformError("CTAugment works on pictures, as its code does: put it before ToImage")

    def plan(self) -> dict[str, Any]:
        return {"op": "CTAugment", **asdict(self)}
