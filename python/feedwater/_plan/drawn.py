"""What nodes tell that they drew: which transforms of those inside others were applied, and with which parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .compiler import recognise_leaf, walk_leaves

__all__ = ["CONTAINERS", "parameters_of", "walk_drawn"]

CONTAINERS = ("RandomApply", "RandomChoice", "RandomOrder")
_BOOKS = ("op", "applied", "transforms")


def parameters_of(draw: dict[str, Any]) -> dict[str, Any]:
    """What torchvision's own object takes of a draw: what was drawn, without what is told about it."""
    return {name: value for name, value in draw.items() if name not in _BOOKS}


def walk_drawn(step: Any, draw: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The transforms that one with a draw comes to, with theirs: itself, or those inside it that were applied."""
    name = type(step).__name__
    if name not in CONTAINERS:
        if draw["applied"]:
            yield step, draw
        return
    inside = list(step.transforms)
    if name == "RandomChoice":
        inside = [inside[draw["index"]]]
    elif name == "RandomOrder":
        inside = [inside[place] for place in draw["order"]]
    elif not draw["applied"]:
        return
    for part, drawn in zip(inside, draw["transforms"], strict=True):
        yield from _walk_part(part, drawn)


def _walk_part(part: Any, draw: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Those of one of a container's transforms. One draw tells of it, also of several that it holds."""
    steps = [leaf for leaf in walk_leaves(part) if recognise_leaf(leaf) is not None]
    draws = [draw] if len(steps) == 1 else draw.get("transforms", ())
    for step, drawn in zip(steps, draws, strict=True):
        yield from walk_drawn(step, drawn)
