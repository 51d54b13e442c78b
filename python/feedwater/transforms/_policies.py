"""Policies: ops that are chosen at random, as papers found them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._common.numbers import to_whole
from ._checks import check_number, check_whole
from ._op import Op
from ._warp import Warp

__all__ = ["AugMix", "AutoAugment", "RandAugment", "TrivialAugmentWide"]


class Policy(Warp):
    """An op that nodes do in both dialects."""

    generation: int = 2
    """1 for torchvision.transforms: thresholds of its Solarize are others than those of v2, from the same draws."""

    def plan(self) -> dict[str, Any]:
        plan = super().plan()
        return plan if self.generation == 1 else {key: plan[key] for key in plan if key != "generation"}


@dataclass(frozen=True)
class RandAugment(Policy):
    """Some ops, chosen at random, all at one magnitude."""

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: Any = "nearest"
    fill: Any = None
    generation: int = 2

    def __post_init__(self) -> None:
        check_whole(self, "num_ops", 0, 64)
        check_whole(self, "num_magnitude_bins", 2, 1000)
        check_whole(self, "magnitude", 0, self.num_magnitude_bins - 1)
        self.check_look()
        check_whole(self, "generation", 1, 2)


@dataclass(frozen=True)
class TrivialAugmentWide(Policy):
    """One op at one magnitude, both chosen at random."""

    num_magnitude_bins: int = 31
    interpolation: Any = "nearest"
    fill: Any = None
    generation: int = 2

    def __post_init__(self) -> None:
        check_whole(self, "num_magnitude_bins", 2, 1000)
        self.check_look()
        check_whole(self, "generation", 1, 2)


@dataclass(frozen=True)
class AutoAugment(Policy):
    """Two ops at most: one of 25 pairs that a search on a data set found."""

    policy: Any = "imagenet"
    interpolation: Any = "nearest"
    fill: Any = None
    generation: int = 2

    def __post_init__(self) -> None:
        self.set_argument("policy", getattr(self.policy, "value", self.policy))
        if self.policy not in ("imagenet", "cifar10", "svhn"):
            raise self.make_refusal("policy", '"imagenet", "cifar10" or "svhn"')
        self.check_look()
        check_whole(self, "generation", 1, 2)


@dataclass(frozen=True)
class AugMix(Policy):
    """The picture mixed with what some chains of random ops make of it, in the arithmetic of tensors."""

    severity: int = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    all_ops: bool = True
    interpolation: Any = "bilinear"
    fill: Any = None

    def __post_init__(self) -> None:
        check_whole(self, "severity", 1, 10)
        check_whole(self, "mixture_width", 1, 32)
        depth = to_whole(self.chain_depth)
        if depth is not None and depth < 1:
            self.set_argument("chain_depth", -1)
        check_whole(self, "chain_depth", -1, 32)
        check_number(self, "alpha", 0.01, 1000)
        self.set_argument("all_ops", bool(self.all_ops))
        self.check_look()
        if self.interpolation == "bicubic":
            raise self.make_refusal("interpolation", '"nearest" or "bilinear", as it works on tensors')

    def on_tensor(self) -> Op:
        return self  # it has that arithmetic only
