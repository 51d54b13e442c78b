"""Transforms with transforms inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..errors import UnsupportedTransformError
from ._checks import MOST, check_probability, is_list, to_numbers
from ._op import Op

__all__ = ["Compose", "Container", "Identity", "RandomApply", "RandomChoice", "RandomOrder", "Shares", "group_ops"]

_C = TypeVar("_C", bound="Container")


@dataclass(frozen=True)
class Compose:
    """Several transforms, one after another. May be nested."""

    transforms: Sequence[Any]

    def __post_init__(self) -> None:
        if isinstance(self.transforms, str) or not isinstance(self.transforms, Sequence):
            raise TypeError("Compose takes a sequence of transforms")
        if not self.transforms:
            raise ValueError("Compose needs at least one transform")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.transforms)


@dataclass(frozen=True)
class Identity(Op):
    """Nothing: an alternative of RandomChoice."""

    same = True

    def plan(self) -> dict[str, Any]:
        return {"op": "Identity"}


@dataclass(frozen=True)
class Container(Op):
    """What has transforms inside: any, until it is compiled; then Ops."""

    transforms: Sequence[Any]

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not is_list(self.transforms):
            raise UnsupportedTransformError(f"{name}({self.transforms!r:.80}): needs a list of transforms")
        if not self.transforms:
            raise UnsupportedTransformError(f"{name}([]): needs at least one transform")

    def compile_parts(self: _C, convert: Callable[[Any], Op]) -> _C:
        """The same of what convert makes of the transforms inside."""
        return replace(self, transforms=tuple(convert(transform) for transform in self.transforms))

    def plan(self) -> dict[str, Any]:
        return {"op": type(self).__name__, "transforms": [op.plan() for op in self.transforms]}


@dataclass(frozen=True)
class RandomApply(Container):
    """All of them, in order, with probability p."""

    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_probability(self)

    def plan(self) -> dict[str, Any]:
        return {**super().plan(), "p": float(self.p)}


class Shares(tuple[float, ...]):
    """Probabilities whose sum is one, up to rounding."""


@dataclass(frozen=True)
class RandomChoice(Container):
    """One of them; p are their weights, the same if left out."""

    p: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.p, Shares):
            return
        given = [1] * len(self.transforms) if self.p is None else self.p
        weights = to_numbers(given) if is_list(given) else ()
        if not is_list(given) or len(given) != len(self.transforms):
            raise UnsupportedTransformError(f"RandomChoice(p={self.p!r}): needs a number for each transform")
        if not all(0 <= weight <= MOST for weight in weights) or not any(weights):
            raise UnsupportedTransformError(f"RandomChoice(p={self.p!r}): needs numbers from 0, not all of them 0")
        total = sum(weights)
        object.__setattr__(self, "p", Shares(weight / total for weight in weights))

    def plan(self) -> dict[str, Any]:
        return {**super().plan(), "p": list(self.p or ())}


@dataclass(frozen=True)
class RandomOrder(Container):
    """All of them, in random order."""


@dataclass(frozen=True)
class Group(Container):
    """All of them, in order, where one is wanted."""

    def plan(self) -> dict[str, Any]:
        return {**super().plan(), "op": "Compose"}


def group_ops(ops: Sequence[Op]) -> Op:
    """One op that does the same as several or none."""
    if not ops:
        return Identity()
    return ops[0] if len(ops) == 1 else Group(tuple(ops))
