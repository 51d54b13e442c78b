"""A transform, as the user wrote it, to what nodes do and what the last hop does.

Everything that cannot run there is refused here, at construction, by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .. import transforms
from .._torchvision import convert
from .._torchvision.genuine import check_functions
from .._torchvision.origin import is_first
from .._value_table import CHANNELS, IDENTITY, Pixels, Table, first_that_becomes
from ..errors import UnsupportedTransformError
from ..transforms._checks import check_colour, is_colour
from ..transforms._containers import Container, group_ops
from ..transforms._erasing import RandomErasing, make_erasure
from ..transforms._op import FillsMasks, Op, Pointwise
from ..transforms._sizes import PADDING, on_picture
from .unknown import CONVERSIONS, UnknownTransformError

__all__ = ["CONVERSIONS", "Compiled", "compile_transform", "recognise_leaf", "walk_leaves"]


@dataclass(frozen=True)
class Compiled:
    """A transform, cut in two."""

    ops: tuple[Op, ...]
    """Run on nodes, in order."""
    tail: tuple[str, ...]
    """What the last hop does, for people."""
    table: Table
    """What it does to values."""
    to_tensor: bool
    """Whether the user asked for tensors (channels first) rather than pictures."""
    erasing: tuple[RandomErasing, ...] = ()
    """Ops behind all others: nodes draw their rectangles, the last hop fills them."""
    erasures: tuple[Table, ...] = ()
    """With what; tables of one value per channel."""
    crops: int = 1
    """How many pictures nodes make of one, below each other."""
    erased_behind: tuple[int, ...] = ()
    """How many steps of the tail come before each erasing."""
    mask_dtype: str | None = None
    """The type that a step gives masks, by torch's name; None: they stay uint8."""

    @property
    def spoils_masks(self) -> bool:
        """Whether a step puts a number around masks that they cannot hold."""
        return any(map(_spoils_masks, self.ops))

    def plan_ops(self) -> list[dict[str, Any]]:
        """The transforms of the plan."""
        return [op.plan() for op in self.ops] + [step.plan() for step in self.erasing]


def compile_transform(transform: Any, several: bool = False) -> Compiled:
    """Compiles torchvision objects or feedwater.transforms; None is plain decoding.

    several: it makes one of several pictures. Raises UnsupportedTransformError for what nodes cannot do.
    """
    check_functions(parts := list(walk_leaves(transform)))
    done: list[Any] = []
    try:
        return _compile_leaves(parts, done)
    except UnknownTransformError as error:
        said = str(error) if several else error.say_where(done, parts[len(done) :])
        raise UnsupportedTransformError(said) from None


def _compile_leaves(parts: list[Any], done: list[Any]) -> Compiled:
    """Compiles single transforms one after the other, and notes those that it has done."""
    ops: list[Op] = []
    tail: list[Any] = []
    erasing: list[tuple[RandomErasing, int]] = []
    masks: str | None = None
    for leaf in parts:
        masks = convert.mask_dtype_of(leaf) or masks
        settled = convert.settle_dtype(leaf, tail)
        _compile_next(settled, ops, tail, erasing)
        done.append(leaf)
    erased = tuple(_make_erasure(step, tail, before) for step, before in erasing)
    steps = tuple(step for step, _ in erasing)
    behind = tuple(before for _, before in erasing)
    said = tuple(repr(recognise_leaf(leaf)) for leaf in tail)
    return Compiled(tuple(ops), said, _make_table(tail), bool(tail), steps, erased, _count_crops(ops), behind, masks)


def _compile_next(leaf: Any, ops: list[Op], tail: list[Any], erasing: list[tuple[RandomErasing, int]]) -> None:
    """Adds one to those before it; None and what does nothing add nothing."""
    if leaf is None:
        return
    _check_crops(leaf, ops)
    _check_arrays(leaf, tail)
    step = recognise_leaf(leaf)
    if step is None or (isinstance(step, transforms.ToPureTensor) and not tail):
        return
    if isinstance(step, Op):
        if erasing:
            raise UnsupportedTransformError(
                f"{type(step).__name__} after RandomErasing, which is done last: put RandomErasing behind it"
            )
        _check_generation(leaf, step, tail)
        ops.append(_compile_leaf(step, leaf, tail))
        return
    _check_tail(step, tail)
    if isinstance(step, RandomErasing):
        erasing.append((step, len(tail)))
    else:
        tail.append(leaf)


def _check_arrays(leaf: Any, tail: list[Any]) -> None:
    """Raises UnsupportedTransformError beside timm's ToNumpy: torchvision passes its arrays by."""
    name, before = type(leaf).__name__, type(tail[-1]).__name__ if tail else ""
    if before == "ToNumpy":
        raise UnsupportedTransformError(f"{name} after ToNumpy, whose arrays transforms do not know: put ToNumpy last")
    if tail and name == "ToNumpy":
        raise UnsupportedTransformError(f"ToNumpy after {before}, which makes tensors: leave it out")


def _spoils_masks(op: Op) -> bool:
    inside = op.transforms if isinstance(op, Container) else ()
    return any(map(_spoils_masks, inside)) or (isinstance(op, FillsMasks) and op.mask_fill is None)


def _count_crops(ops: list[Op]) -> int:
    return ops[-1].crops if ops else 1


def _check_crops(leaf: Any, ops: list[Op]) -> None:
    """Raises UnsupportedTransformError for what cannot be done to several crops."""
    if _count_crops(ops) == 1:
        return
    name, crops = type(leaf).__name__, type(ops[-1]).__name__
    if name == "Lambda":
        raise UnsupportedTransformError(
            f"Lambda after {crops}: crops come stacked, [B, {_count_crops(ops)}, 3, h, w]: leave out what stacks them, "
            "and write ToImage, ToDtype or ToTensor behind it as for one picture"
        )
    if isinstance(step := recognise_leaf(leaf), (Op, RandomErasing)):
        raise UnsupportedTransformError(f"{type(step).__name__} after {crops}, which is done last: put it before")


def _make_erasure(step: RandomErasing, tail: list[Any], before: int) -> Table:
    behind = [other for leaf in tail[before:] if isinstance(other := recognise_leaf(leaf), Pointwise)]
    return make_erasure(step, _make_table(tail[:before]).dtype, behind)


def walk_leaves(transform: Any) -> Iterator[Any]:
    """The transforms in it, one after the other, whatever they are composed by."""
    if transform is None:
        return
    inner = transform if isinstance(transform, (list, tuple)) else convert.list_inside(transform)
    if inner is None and isinstance(transform, transforms.Compose):
        inner = transform.transforms
    if inner is None:
        yield transform
        return
    for part in inner:
        yield from walk_leaves(part)


def recognise_leaf(leaf: Any) -> Op | Pointwise | None:
    """The step a leaf means; None for one that does nothing."""
    step = leaf if isinstance(leaf, (Op, Pointwise)) else _convert_leaf(leaf)
    return None if isinstance(step, transforms.Identity) else step


def _check_generation(leaf: Any, step: Any, tail: list[Any]) -> None:
    """Raises UnsupportedTransformError for transforms of the first generation whose arithmetic is not that of v2."""
    if not tail or not isinstance(step, Op) or step.alike or step.same or isinstance(step, Container):
        return
    if is_first(leaf):
        name = type(leaf).__name__
        raise UnsupportedTransformError(
            f"torchvision.transforms.{name} after {type(tail[0]).__name__} works on tensors by arithmetic of its own: "
            f"write torchvision.transforms.v2.{name}, or put it before"
        )


def _place_step(step: Op, tail: list[Any]) -> Op:
    """The step as nodes do it behind the steps on values so far."""
    if isinstance(step, Container):
        return step.compile_parts(lambda part: _compile_inside(part, step, tail))
    if not tail:
        check_colour(step)
    return _move_behind(step, tail) if tail else on_picture(step)


def _compile_inside(part: Any, container: Container, tail: list[Any]) -> Op:
    """The op for one of a container's transforms; raises UnsupportedTransformError for steps on values."""
    steps = [(step, leaf) for leaf in walk_leaves(part) if (step := recognise_leaf(leaf)) is not None]
    for step, _ in steps:
        if not isinstance(step, Op):
            raise UnsupportedTransformError(
                f"{type(step).__name__} inside {type(container).__name__}: only what nodes do can be there"
            )
        if isinstance(step, Op) and step.crops > 1:
            raise UnsupportedTransformError(
                f"{type(step).__name__} inside {type(container).__name__}, which is done last: put it behind"
            )
    for leaf in walk_leaves(part):
        _check_generation(leaf, recognise_leaf(leaf), tail)
    return group_ops([_compile_leaf(step, leaf, tail) for step, leaf in steps if isinstance(step, Op)])


def _compile_leaf(step: Op, leaf: Any, tail: list[Any]) -> Op:
    """The step as nodes do it, with what its leaf puts around masks if that is another value than around pictures."""
    step, mask_fill = convert.with_fill(step, leaf, tail)
    op = _place_step(step, tail)
    if mask_fill is None and isinstance(step, PADDING):
        return _unpaint_masks(step, op)
    return op if mask_fill is None else FillsMasks(op, mask_fill)


def _unpaint_masks(step: Any, op: Any) -> Op:
    """The op that puts around masks the step's own colour, where pictures got what becomes it."""
    plain: Op = op
    if not all(0 <= value <= 255 for value in step.paints):
        return FillsMasks(plain, None)
    if op.fill == step.fill or len(set(step.paints)) != 1:
        return plain
    return FillsMasks(plain, int(step.paints[0]))  # as torch does to 8-bit values


def _convert_leaf(leaf: Any) -> Op | Pointwise | None:
    _check_object(leaf)
    try:
        return convert.convert_leaf(leaf)
    except LookupError as error:
        raise UnknownTransformError(leaf, str(error.args[0])) from None


def _check_object(leaf: Any) -> None:
    """Raises UnsupportedTransformError for what is no transform object at all."""
    if isinstance(leaf, type):
        raise UnsupportedTransformError(f"{leaf.__name__} is the class of a transform: write {leaf.__name__}(…)")
    if isinstance(leaf, transforms.Views):
        raise UnsupportedTransformError("Views inside another transform: it is the whole transform, put others into it")
    if isinstance(leaf, (int, float)):
        raise UnsupportedTransformError(f"transform={leaf!r}: needs transform objects. Is batch_size={leaf!r} meant?")
    if not callable(leaf):
        raise UnsupportedTransformError(f"transform={leaf!r:.80}: needs transform objects, got a {type(leaf).__name__}")


def _move_behind(step: Op, tail: list[Any]) -> Op:
    """A step behind steps on values: as it is where it only moves them, else in torchvision's arithmetic for tensors.

    What moves values may run before the steps on values; what sets some, where a value becomes what it sets.
    """
    name = type(step).__name__
    table = _make_table(tail)
    if not table.is_identity():
        if step.alike:
            return _repaint_step(step, table, tail)
        raise UnsupportedTransformError(
            f"{name} after {type(tail[-1]).__name__} works on floats, which is not there: put it before"
        )
    check_colour(step)
    return step if step.alike else step.on_tensor()


def _repaint_step(step: Op, table: Table, tail: list[Any]) -> Op:
    """A step that sets values behind those of the table, painting what becomes its colour."""
    if not step.paints:
        return step if is_colour(step) else replace(step, fill=0)  # type: ignore[type-var]
    colour = [step.paints[channel % len(step.paints)] for channel in range(CHANNELS)]
    before = [first_that_becomes(wanted, values, table.dtype) for wanted, values in zip(colour, table.to_floats())]
    if None in before or (not hasattr(step, "fill") and any(before)):
        what = f"fill={tuple(colour)}" if any(colour) else "zeros"
        raise UnsupportedTransformError(
            f"{type(step).__name__} after {type(tail[-1]).__name__} puts {what} around, which no 8-bit value becomes "
            f"there: put it before, {_explain_colour(colour, table)}"
        )
    return replace(step, fill=tuple(before)) if hasattr(step, "fill") else step  # type: ignore[type-var]


def _explain_colour(colour: list[float], table: Table) -> str:
    """What comes of a colour that no value becomes."""
    if not any(colour):
        return "then it pads black, not the mean"
    values = table.to_floats()
    nearest = (channel[abs(channel - wanted).argmin()] for wanted, channel in zip(colour, values))
    return (
        f"or pass the nearest that one becomes, fill=({', '.join(f'{value:.9g}' for value in nearest)}), "
        f"of those from {values.min():.9g} to {values.max():.9g}"
    )


def _check_tail(step: Any, tail: list[Any]) -> None:
    name = type(step).__name__
    if not tail and name not in CONVERSIONS:
        raise UnsupportedTransformError(f"{name} needs a tensor: put ToImage() in front of it")
    if tail and name == "ToTensor":
        raise UnsupportedTransformError(f"ToTensor after {type(tail[0]).__name__} does nothing: leave it out")


def _make_table(tail: list[Any]) -> Table:
    if not tail:
        return IDENTITY
    if not any(isinstance(leaf, Pointwise) for leaf in tail):
        return convert.tabulate_tail(tail)
    pixels = Pixels.all_values()
    for leaf in tail:
        step = recognise_leaf(leaf)
        assert isinstance(step, Pointwise)
        pixels = step.apply(pixels)
    return pixels.to_table()
