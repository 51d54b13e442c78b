"""timm's RandAugment, AutoAugment and AugMix, of strings as rand-m9-mstd0.5-inc1: which op of ours each means."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UnsupportedTransformError
from ..transforms._op import Op
from .genuine import is_own

__all__ = ["HOME", "TimmMix", "TimmPolicy", "convert_policy"]

HOME = "timm.data.auto_augment"
FILTERS = {0: "nearest", 2: "bilinear", 3: "bicubic"}
"""Those that Pillow's warps know, by its numbers."""


_Row = tuple[str, float, float]
"""An op: name, probability, magnitude."""


@dataclass(frozen=True)
class _TimmOps(Op):
    """Of each op that is chosen: whether it comes, its magnitude, its sign and its filter."""

    std: float | None
    """How far magnitudes are from the op's own: normal; None: even, from 0 to that."""
    most_magnitude: float
    translate_const: float
    translate_pct: float
    interpolation: tuple[str, ...]
    """One is chosen for each op."""
    fill: tuple[float, ...]

    def plan(self) -> dict[str, Any]:
        return {"op": type(self).__name__, **vars(self)}

    def on_tensor(self) -> Op:
        raise UnsupportedTransformError("timm's policies work on PIL images: put it before ToImage and ToTensor")


@dataclass(frozen=True)
class TimmPolicy(_TimmOps):
    """Some groups of ops, chosen at random."""

    layers: int
    """How many groups are chosen, each from all."""
    groups: tuple[tuple[_Row, ...], ...]
    weights: tuple[float, ...] | None
    """Of groups, none of which is chosen twice then; None: all alike, again and again."""

    def plan(self) -> dict[str, Any]:
        return {name: value for name, value in super().plan().items() if name != "weights" or value}


@dataclass(frozen=True)
class TimmMix(_TimmOps):
    """A picture mixed with what chains of ops make of it."""

    ops: tuple[_Row, ...]
    """Chosen evenly, again and again."""
    mixture_width: int
    chain_depth: int
    """Below 1: one to three, drawn for each chain."""
    alpha: float
    """Of the beta and the Dirichlet distribution of weights."""
    blended: bool
    """Whether the picture is moved towards each chain in turn, not once towards their sum."""


def convert_policy(leaf: Any) -> TimmPolicy | TimmMix:
    """The same of ours. Raises LookupError with the reason if there is none."""
    name = type(leaf).__name__
    if name == "RandAugment":
        return _make_policy(int(leaf.num_layers), [[op] for op in leaf.ops], leaf.choice_weights)
    if name == "AutoAugment":
        return _make_policy(1, leaf.policy)
    if name == "AugMixAugment":
        return _make_mix(leaf)
    raise LookupError("not there yet")


def _make_policy(layers: int, groups: Sequence[Sequence[Any]], weights: Sequence[float] | None = None) -> TimmPolicy:
    return TimmPolicy(
        weights=None if weights is None else tuple(map(float, weights)),
        layers=layers,
        groups=tuple(tuple(map(_read_op, group)) for group in groups),
        **_read_space([op for group in groups for op in group]),
    )


def _make_mix(leaf: Any) -> TimmMix:
    return TimmMix(
        ops=tuple(map(_read_op, leaf.ops)),
        mixture_width=int(leaf.width),
        chain_depth=int(leaf.depth),
        alpha=float(leaf.alpha),
        blended=bool(leaf.blended),
        **_read_space(leaf.ops),
    )


def _read_op(op: Any) -> _Row:
    return op.name, float(op.prob), float(op.magnitude)


def _read_space(ops: Sequence[Any]) -> dict[str, Any]:
    """What magnitudes of ops stand for, which is the same of them all."""
    for op in ops:
        _check_op(op)
    first = ops[0]
    if any((op.hparams, op.kwargs) != (first.hparams, first.kwargs) for op in ops):
        raise LookupError("ops with other hparams than the first one's are not there")
    std, hparams = first.magnitude_std, first.hparams
    fill = first.kwargs["fillcolor"]
    return {
        "std": None if std == math.inf else float(std),
        "most_magnitude": float(first.magnitude_max or 10),
        "translate_const": float(hparams.get("translate_const", 250)),
        "translate_pct": float(hparams.get("translate_pct", 0.45)),
        "interpolation": _read_filters(first.kwargs["resample"]),
        "fill": tuple(map(float, fill)) if isinstance(fill, (tuple, list)) else (float(fill),) * 3,
    }


def _check_op(op: Any) -> None:
    """Raises LookupError for one that is not there, or whose functions are not timm's."""
    if type(op).__name__ != "AugmentOp" or type(op).__module__ != HOME:
        raise LookupError(f"{type(op).__name__} among its ops is not timm's AugmentOp, and code does not travel")
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
