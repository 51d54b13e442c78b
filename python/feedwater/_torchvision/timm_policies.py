"""timm's RandAugment, AutoAugment and AugMix, of strings as rand-m9-mstd0.5-inc1: which op of ours each means."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .._common.numbers import to_whole
from ..transforms._sizes import SIDE
from .genuine import is_own
from .timm_op import TimmOp

__all__ = ["HOME", "POLICIES", "TimmMix", "TimmPolicy"]

HOME = "timm.data.auto_augment"
FILTERS = {0: "nearest", 2: "bilinear", 3: "bicubic"}
"""Those that Pillow's warps know, by its numbers."""
_MOST_OPS = 64
"""The most layers, groups and ops."""

_Row = tuple[str, float, float]
"""An op: name, probability, magnitude."""


@dataclass(frozen=True)
class _TimmOps(TimmOp):
    """Of each op that is chosen: whether it comes, its magnitude, its sign and its filter."""

    std: float | None
    """How far magnitudes are from the op's own: normal; None: even, from 0 to that."""
    most_magnitude: float
    translate_const: float
    translate_pct: float
    interpolation: tuple[str, ...]
    """One is chosen for each op."""
    fill: tuple[float, ...]


@dataclass(frozen=True)
class TimmPolicy(_TimmOps):
    """Some groups of ops, chosen at random."""

    layers: int
    """How many groups are chosen, each from all."""
    groups: tuple[tuple[_Row, ...], ...]
    weights: tuple[float, ...] | None
    """Of groups, none of which is chosen twice then; None: all alike, again and again."""

    name = "RandAugment or AutoAugment"

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

    name = "AugMixAugment"


def _make_rand_augment(leaf: Any) -> TimmPolicy:
    layers = _whole_within("num_layers", leaf.num_layers, 0, _MOST_OPS)
    weights = None if leaf.choice_weights is None else tuple(map(float, leaf.choice_weights))
    if weights is not None and not (len(weights) == len(leaf.ops) and math.isclose(sum(weights), 1, abs_tol=1e-6)):
        raise LookupError("its weights are not one for each op, of a sum of 1")
    return _make_policy(layers, [[op] for op in leaf.ops], weights)


def _make_policy(layers: int, groups: Sequence[Sequence[Any]], weights: tuple[float, ...] | None) -> TimmPolicy:
    _whole_within("the number of its groups", len(groups), 1, _MOST_OPS)
    for group in groups:
        _whole_within("the number of ops in a group", len(group), 1, 8)
    space = _read_space([op for group in groups for op in group])
    return TimmPolicy(
        weights=weights, layers=layers, groups=tuple(tuple(map(_read_op, group)) for group in groups), **space
    )


def _make_mix(leaf: Any) -> TimmMix:
    _whole_within("the number of its ops", len(leaf.ops), 1, _MOST_OPS)
    ops, space = tuple(map(_read_op, leaf.ops)), _read_space(leaf.ops)
    if space["std"] in (None, 0):  # no magnitude is larger than the op's own
        space["most_magnitude"] = min(space["most_magnitude"], max(magnitude for _, _, magnitude in ops))
    _within("magnitude_max", space["most_magnitude"], 0, 29)
    depth = _whole_within("depth", leaf.depth, -math.inf, 32)
    return TimmMix(
        ops=ops,
        mixture_width=_whole_within("width", leaf.width, 1, 32),
        chain_depth=depth if depth > 0 else -1,
        alpha=_within("alpha", float(leaf.alpha), 0.01, 1000),
        blended=bool(leaf.blended),
        **space,
    )


POLICIES: dict[str, Callable[[Any], TimmPolicy | TimmMix]] = {
    "AugMixAugment": _make_mix,
    "AutoAugment": lambda leaf: _make_policy(1, leaf.policy, None),
    "RandAugment": _make_rand_augment,
}
"""What makes an op of ours of each class. They raise LookupError with the reason if there is none."""


def _within(what: str, number: float, low: float, high: float) -> float:
    """A number from low to high."""
    if not low <= number <= high:
        raise LookupError(f"{what} is not a number from {low:g} to {high:g}")
    return number


def _whole_within(what: str, value: Any, low: float, high: int) -> int:
    """A whole number from low to high."""
    number = to_whole(value)
    if number is None or not low <= number <= high:
        raise LookupError(f"{what} is not a whole number from {low:g} to {high}")
    return number


def _read_op(op: Any) -> _Row:
    magnitude = _within(f"the magnitude of {op.name}", float(op.magnitude), 0, SIDE)
    return op.name, min(max(float(op.prob), 0.0), 1.0), magnitude


def _read_space(ops: Sequence[Any]) -> dict[str, Any]:
    """What magnitudes of ops stand for, which is the same of them all."""
    for op in ops:
        _check_op(op)
    first = ops[0]
    if any(_settings(op) != _settings(first) for op in ops):
        raise LookupError("ops with other hparams than the first one's are not there")
    std, hparams = float(first.magnitude_std), first.hparams
    fill = first.kwargs["fillcolor"]
    if not (isinstance(fill, tuple) and len(fill) == 3 and all(type(value) is int for value in fill)):
        raise LookupError(f"its img_mean, {fill!r}, is not a tuple of three whole numbers, and no colour for Pillow")
    return {
        "std": None if std == math.inf else _within("magnitude_std", max(std, 0.0), 0, 100),
        "most_magnitude": _within("magnitude_max", float(first.magnitude_max or 10), 0, SIDE),
        "translate_const": _within("translate_const", float(hparams.get("translate_const", 250)), 0, SIDE),
        "translate_pct": _within("translate_pct", float(hparams.get("translate_pct", 0.45)), 0, SIDE),
        "interpolation": _read_filters(first.kwargs["resample"]),
        "fill": tuple(map(float, fill)),
    }


def _settings(op: Any) -> tuple[Any, ...]:
    return op.hparams, op.kwargs, op.magnitude_std, op.magnitude_max


def _check_op(op: Any) -> None:
    """Raises LookupError for one whose functions are not those that timm has for its name."""
    if type(op).__name__ != "AugmentOp" or type(op).__module__ != HOME:
        raise LookupError(f"{type(op).__name__} among its ops is not timm's AugmentOp, and code does not travel")
    known = FUNCTIONS.get(op.name)
    if known is None:
        raise LookupError(f"its op {op.name} is not there")
    if (_name_of(op.aug_fn), _name_of(op.level_fn)) != known or sys.modules[HOME]._LEVEL_DENOM != LEVELS:
        raise LookupError(
            f"a function of its op {op.name}, or what it counts with, was replaced, and code does not travel"
        )


def _name_of(function: Any) -> str | None:
    """A function of timm's, with the arguments that it has already; None for none."""
    if function is None:
        return None
    plain = function.func if isinstance(function, functools.partial) else function
    if not is_own(plain) or plain.__module__ != HOME:
        return ""
    ends = f" {function.args} {function.keywords}" if isinstance(function, functools.partial) else ""
    return f"{plain.__name__}{ends}"


LEVELS = 10
"""How many magnitudes timm divides what an op does into."""


def _minmax(low: float, high: float) -> str:
    return f"_minmax_level_to_arg () {{'min_val': {low}, 'max_val': {high}}}"


FUNCTIONS: dict[str, tuple[str, str | None]] = {
    "AutoContrast": ("auto_contrast", None),
    "Brightness": ("brightness", "_enhance_level_to_arg"),
    "BrightnessIncreasing": ("brightness", "_enhance_increasing_level_to_arg"),
    "Color": ("color", "_enhance_level_to_arg"),
    "ColorIncreasing": ("color", "_enhance_increasing_level_to_arg"),
    "Contrast": ("contrast", "_enhance_level_to_arg"),
    "ContrastIncreasing": ("contrast", "_enhance_increasing_level_to_arg"),
    "Desaturate": ("desaturate", _minmax(0.5, 1.0)),
    "Equalize": ("equalize", None),
    "GaussianBlur": ("gaussian_blur", _minmax(0.1, 2.0)),
    "GaussianBlurRand": ("gaussian_blur_rand", "_minmax_level_to_arg"),
    "Invert": ("invert", None),
    "Posterize": ("posterize", "_posterize_level_to_arg"),
    "PosterizeIncreasing": ("posterize", "_posterize_increasing_level_to_arg"),
    "PosterizeOriginal": ("posterize", "_posterize_original_level_to_arg"),
    "Rotate": ("rotate", "_rotate_level_to_arg"),
    "Sharpness": ("sharpness", "_enhance_level_to_arg"),
    "SharpnessIncreasing": ("sharpness", "_enhance_increasing_level_to_arg"),
    "ShearX": ("shear_x", "_shear_level_to_arg"),
    "ShearY": ("shear_y", "_shear_level_to_arg"),
    "Solarize": ("solarize", "_solarize_level_to_arg"),
    "SolarizeAdd": ("solarize_add", "_solarize_add_level_to_arg"),
    "SolarizeIncreasing": ("solarize", "_solarize_increasing_level_to_arg"),
    "TranslateX": ("translate_x_abs", "_translate_abs_level_to_arg"),
    "TranslateXRel": ("translate_x_rel", "_translate_rel_level_to_arg"),
    "TranslateY": ("translate_y_abs", "_translate_abs_level_to_arg"),
    "TranslateYRel": ("translate_y_rel", "_translate_rel_level_to_arg"),
}
"""timm's functions of each op: what changes a picture, and what makes its argument of a magnitude."""


def _read_filters(resample: Any) -> tuple[str, ...]:
    codes = [int(code) for code in (resample if isinstance(resample, (tuple, list)) else (resample,))]
    other = next((code for code in codes if code not in FILTERS), None)
    if other is not None:
        raise LookupError(f"its filter is Pillow's {other}, and warps know nearest, bilinear and bicubic")
    _whole_within("the number of its filters", len(codes), 1, 3)
    return tuple(FILTERS[code] for code in codes)
