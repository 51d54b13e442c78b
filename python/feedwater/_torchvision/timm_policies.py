"""timm's RandAugment and AutoAugment, of config strings as rand-m9-mstd0.5-inc1: which op of ours each means."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UnsupportedTransformError
from ..transforms._op import Op
from .genuine import is_own

__all__ = ["HOME", "TimmPolicy", "convert_policy"]

HOME = "timm.data.auto_augment"
FILTERS = {0: "nearest", 2: "bilinear", 3: "bicubic"}
"""Those that Pillow's warps know, by its numbers."""
BLURS = ("GaussianBlur", "GaussianBlurRand")
"""Ops of timm that are not there."""


@dataclass(frozen=True)
class TimmPolicy(Op):
    """Some groups of ops, chosen at random; of each op whether it comes, its magnitude, its sign and its filter."""

    weights: tuple[float, ...] | None
    """Of groups, none of which is chosen twice then; None: all alike, again and again."""
    layers: int
    """How many groups are chosen, each from all."""
    groups: tuple[tuple[tuple[str, float, float], ...], ...]
    """Ops: name, probability, magnitude."""
    std: float | None
    """How far magnitudes are from the op's own: normal; None: even, from 0 to that."""
    most_magnitude: float
    translate_const: float
    translate_pct: float
    interpolation: tuple[str, ...]
    """One is chosen for each op."""
    fill: tuple[float, ...]

    def plan(self) -> dict[str, Any]:
        return {"op": "TimmPolicy", **{name: value for name, value in vars(self).items() if name != "weights" or value}}

    def on_tensor(self) -> Op:
        raise UnsupportedTransformError("timm's policies work on PIL images: put it before ToImage and ToTensor")


def convert_policy(leaf: Any) -> TimmPolicy:
    """The same of ours. Raises LookupError with the reason if there is none."""
    name = type(leaf).__name__
    if name == "RandAugment":
        return _make_policy(int(leaf.num_layers), [[op] for op in leaf.ops], leaf.choice_weights)
    if name == "AutoAugment":
        return _make_policy(1, leaf.policy)
    raise LookupError(
        "pictures mixed of chains, 'augmix-…', are not there; 'rand-…' and AutoAugment's policies are, and "
        "torchvision's v2.AugMix"
    )


def _make_policy(layers: int, groups: Sequence[Sequence[Any]], weights: Sequence[float] | None = None) -> TimmPolicy:
    ops = [op for group in groups for op in group]
    for op in ops:
        _check_op(op)
    first = ops[0]
    if any((op.hparams, op.kwargs) != (first.hparams, first.kwargs) for op in ops):
        raise LookupError("ops with other hparams than the first one's are not there")
    std, hparams = first.magnitude_std, first.hparams
    fill = first.kwargs["fillcolor"]
    return TimmPolicy(
        weights=None if weights is None else tuple(map(float, weights)),
        layers=layers,
        groups=tuple(tuple((op.name, float(op.prob), float(op.magnitude)) for op in group) for group in groups),
        std=None if std == math.inf else float(std),
        most_magnitude=float(first.magnitude_max or 10),
        translate_const=float(hparams.get("translate_const", 250)),
        translate_pct=float(hparams.get("translate_pct", 0.45)),
        interpolation=_read_filters(first.kwargs["resample"]),
        fill=tuple(map(float, fill)) if isinstance(fill, (tuple, list)) else (float(fill),) * 3,
    )


def _check_op(op: Any) -> None:
    """Raises LookupError for one that is not there, or whose functions are not timm's."""
    if type(op).__name__ != "AugmentOp" or type(op).__module__ != HOME:
        raise LookupError(f"{type(op).__name__} among its ops is not timm's AugmentOp, and code does not travel")
    if op.name in BLURS:
        raise LookupError(f"{op.name}, Pillow's blur, which the sets '3a' and '3aw' have, is not there")
    for function in (op.aug_fn, op.level_fn):
        plain = function.func if isinstance(function, functools.partial) else function
        if plain is not None and (not is_own(plain) or plain.__module__ != HOME):
            raise LookupError(f"a function of its op {op.name} was replaced, and code does not travel")


def _read_filters(resample: Any) -> tuple[str, ...]:
    codes = [int(code) for code in (resample if isinstance(resample, (tuple, list)) else (resample,))]
    other = next((code for code in codes if code not in FILTERS), None)
    if other is not None:
        raise LookupError(f"its filter is Pillow's {other}, and warps know nearest, bilinear and bicubic")
    return tuple(FILTERS[code] for code in codes)
