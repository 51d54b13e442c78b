"""torchvision's transforms with transforms inside, to ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..transforms import _containers
from ..transforms._op import Op
from .origin import is_first

__all__ = ["BUILDERS"]


def _convert_choice(leaf: Any) -> Op:
    """v2 divides the weights by their sum itself."""
    shares = leaf.p if is_first(leaf) else _containers.Shares(map(float, leaf.p))
    return _containers.RandomChoice(list(leaf.transforms), shares)


BUILDERS: dict[str, Callable[[Any], Op]] = {
    "RandomApply": lambda leaf: _containers.RandomApply(list(leaf.transforms), leaf.p),
    "RandomChoice": _convert_choice,
    "RandomOrder": lambda leaf: _containers.RandomOrder(list(leaf.transforms)),
}
