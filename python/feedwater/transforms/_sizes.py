"""Crops, padding, drawn sizes; how pictures are resized, and that tensors are resized otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._common.numbers import to_whole
from ..errors import UnsupportedTransformError
from ._checks import check_fill, check_probability, height_width, is_list, name_of, to_numbers, to_positive
from ._op import BehindToImage, Op

__all__ = [
    "PADDING",
    "SIDE",
    "OnTensor",
    "Pad",
    "RandomCrop",
    "RandomResize",
    "RandomShortestSize",
    "RandomZoomOut",
    "Resizing",
    "ScaleJitter",
    "check_filter",
    "check_look",
    "check_method",
    "on_picture",
    "plan_look",
    "plan_method",
]

_OF_PILLOW = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_NAMES = ("nearest", "nearest-exact", "bilinear", "bicubic", "lanczos", "box", "hamming")
_OF_PICTURES = ("box", "hamming")
_ALIASED = ("bilinear", "bicubic")
_MODES = ("constant", "edge", "reflect", "symmetric")
SIDE = 65500
"""The longest side that there is."""


def check_filter(op: Any) -> None:
    """Brings the filter into its name; it may be spelled as that, as torchvision's enum or as Pillow's number."""
    spelled = getattr(op.interpolation, "value", op.interpolation)
    code = to_whole(spelled)
    name = spelled if code is None else _OF_PILLOW.get(code)
    if name not in _NAMES:
        raise _make_refusal(op, "interpolation", " or ".join(_NAMES))
    object.__setattr__(op, "interpolation", name)


def check_method(op: Any) -> None:
    """Checks filter and antialias of what resizes."""
    check_filter(op)
    if op.antialias not in (True, False, None):
        raise _make_refusal(op, "antialias", "True or False")


def plan_method(op: Any) -> dict[str, Any]:
    """What the plan says of it for pictures."""
    return {"interpolation": op.interpolation}


@dataclass(frozen=True)
class OnTensor(BehindToImage):
    """An op that resizes behind ToImage."""

    def __post_init__(self) -> None:
        op: Any = self.op
        if op.interpolation in _OF_PICTURES:
            raise UnsupportedTransformError(
                f"{type(op).__name__}(interpolation={op.interpolation!r}) behind ToImage: torch knows it for pictures "
                f"only. Put ToImage behind {type(op).__name__}"
            )
        if op.interpolation == "lanczos" and not op.antialias:
            raise _make_refusal(op, "antialias", "True with lanczos")

    def plan(self) -> dict[str, Any]:
        op: Any = self.op
        plain = {} if op.antialias or op.interpolation not in _ALIASED else {"antialias": False}
        return {**super().plan(), **plain}


class Resizing(Op):
    """What resizes."""

    def on_tensor(self) -> Op:
        return OnTensor(self)


def on_picture(op: Op) -> Op:
    """An op in front of ToImage. Raises UnsupportedTransformError where it asks for what only tensors have."""
    if getattr(op, "antialias", True) is False:
        raise UnsupportedTransformError(
            f"{type(op).__name__}(antialias=False) is not there: pictures from files are always antialiased; pass "
            "antialias=True"
        )
    return replace(op, antialias=True) if hasattr(op, "antialias") else op  # type: ignore[type-var]


@dataclass(frozen=True)
class Pad(Op):
    """More picture on each side.

    padding is for all sides, or for (left and right, top and bottom), or for (left, top, right, bottom).
    """

    padding: int | Sequence[int]
    fill: Any = 0
    padding_mode: str = "constant"

    alike = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "padding", _check_border(self, self.padding))
        check_look(self)

    @property
    def paints(self) -> tuple[float, ...]:  # type: ignore[override]
        return self.fill if self.padding_mode == "constant" else ()

    def plan(self) -> dict[str, Any]:
        return {"op": "Pad", "padding": list(self.padding), **plan_look(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class RandomCrop(Op):
    """A part of size somewhere in the picture, after it is padded."""

    size: int | Sequence[int]
    padding: int | Sequence[int] | None = None
    pad_if_needed: bool = False
    fill: Any = 0
    padding_mode: str = "constant"

    alike = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", height_width("RandomCrop", self.size))
        if self.padding is not None:
            object.__setattr__(self, "padding", _check_border(self, self.padding))
        if not isinstance(self.pad_if_needed, bool):
            raise _make_refusal(self, "pad_if_needed", "True or False")
        check_look(self)

    @property
    def paints(self) -> tuple[float, ...]:  # type: ignore[override]
        pads = self.padding is not None or self.pad_if_needed
        return self.fill if pads and self.padding_mode == "constant" else ()

    def plan(self) -> dict[str, Any]:
        return {
            "op": "RandomCrop",
            "size": list(self.size),  # type: ignore[arg-type]
            "padding": None if self.padding is None else list(self.padding),  # type: ignore[arg-type]
            "pad_if_needed": self.pad_if_needed,
            **plan_look(self),
        }


@dataclass(frozen=True)
class RandomZoomOut(Op):
    """The picture somewhere on a larger canvas, with probability p; side_range says how much larger."""

    fill: Any = 0
    side_range: Sequence[float] = (1.0, 4.0)
    p: float = 0.5

    alike = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "fill", check_fill(self))
        object.__setattr__(self, "side_range", _check_range(self, "side_range", 1.0))
        check_probability(self)

    @property
    def paints(self) -> tuple[float, ...]:  # type: ignore[override]
        return self.fill  # type: ignore[no-any-return]

    def plan(self) -> dict[str, Any]:
        return {
            "op": "RandomZoomOut",
            "fill": _whole_fill(self.fill),
            "side_range": list(self.side_range),
            "p": float(self.p),
        }


PADDING = (Pad, RandomCrop, RandomZoomOut)
"""What puts a colour around pictures, and around their masks."""


@dataclass(frozen=True)
class RandomResize(Resizing):
    """The picture with a short edge from min_size to max_size - 1."""

    min_size: int
    max_size: int
    interpolation: Any = "bilinear"
    antialias: bool | None = True

    def __post_init__(self) -> None:
        for argument in ("min_size", "max_size"):
            _set_positive(self, argument)
        if self.max_size <= self.min_size:
            raise _make_refusal(self, "max_size", f"more than min_size, {self.min_size}")
        check_method(self)

    def plan(self) -> dict[str, Any]:
        return {"op": "RandomResize", "min_size": self.min_size, "max_size": self.max_size, **plan_method(self)}


@dataclass(frozen=True)
class RandomShortestSize(Resizing):
    """The picture with a short edge out of min_size, and a long one of at most max_size."""

    min_size: int | Sequence[int]
    max_size: int | None = None
    interpolation: Any = "bilinear"
    antialias: bool | None = True

    def __post_init__(self) -> None:
        sizes = to_numbers(self.min_size, to_positive)
        if not sizes:
            raise _make_refusal(self, "min_size", "a positive whole number, or several")
        if self.max_size is not None:
            _set_positive(self, "max_size")
        object.__setattr__(self, "min_size", sizes)
        check_method(self)

    def plan(self) -> dict[str, Any]:
        sizes = list(self.min_size)  # type: ignore[arg-type]
        return {"op": "RandomShortestSize", "min_size": sizes, "max_size": self.max_size, **plan_method(self)}


@dataclass(frozen=True)
class ScaleJitter(Resizing):
    """The picture scaled to target_size, and by a random factor from scale_range."""

    target_size: Sequence[int]
    scale_range: Sequence[float] = (0.1, 2.0)
    interpolation: Any = "bilinear"
    antialias: bool | None = True

    def __post_init__(self) -> None:
        if not isinstance(self.target_size, Sequence) or len(self.target_size) != 2:
            raise _make_refusal(self, "target_size", "two positive whole numbers")
        object.__setattr__(self, "target_size", height_width("ScaleJitter", self.target_size))
        object.__setattr__(self, "scale_range", _check_range(self, "scale_range", 0.0))
        check_method(self)

    def plan(self) -> dict[str, Any]:
        sizes = {"target_size": list(self.target_size), "scale_range": list(self.scale_range)}
        return {"op": "ScaleJitter", **sizes, **plan_method(self)}


def plan_look(op: Any) -> dict[str, Any]:
    """What the plan says of what is put around a picture."""
    return {"fill": _whole_fill(op.fill), "padding_mode": op.padding_mode}


def check_look(op: Any) -> None:
    """Checks padding_mode, and brings fill into numbers."""
    if op.padding_mode not in _MODES:
        raise _make_refusal(op, "padding_mode", " or ".join(_MODES))
    object.__setattr__(op, "fill", check_fill(op))


def _whole_fill(fill: Sequence[float]) -> list[int]:
    """The colour on pictures: fractions are cut off, as torchvision does."""
    return [int(x) for x in fill]


def _check_border(op: Any, padding: Any) -> tuple[int, ...]:
    """(left, top, right, bottom)."""
    numbers = to_numbers(padding, to_whole)
    if len(numbers) not in (1, 2, 4) or not all(0 <= x <= SIDE for x in numbers):
        raise _make_refusal(op, "padding", "a whole number from 0, or two, or four (left, top, right, bottom)")
    return tuple((numbers * 4)[:4])


def _check_range(op: Any, argument: str, low: float) -> tuple[float, float]:
    value = getattr(op, argument)
    ends = to_numbers(value) if is_list(value) else ()
    if len(ends) != 2 or not low <= ends[0] <= ends[1]:
        raise _make_refusal(op, argument, f"two ascending numbers from {low:g}")
    return (float(ends[0]), float(ends[1]))


def _set_positive(op: Any, argument: str) -> None:
    size = to_positive(getattr(op, argument))
    if size is None:
        raise _make_refusal(op, argument, "a positive whole number")
    object.__setattr__(op, argument, size)


def _make_refusal(op: Any, argument: str, needs: str) -> UnsupportedTransformError:
    return UnsupportedTransformError(f"{name_of(op)}({argument}={getattr(op, argument)!r}): needs {needs}")
