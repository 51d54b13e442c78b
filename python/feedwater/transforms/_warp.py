"""Rotations and other warps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .._common.numbers import to_number, to_whole
from ..errors import UnsupportedTransformError
from ._checks import check_fill, check_number, is_list, to_numbers
from ._op import BehindToImage, Op

__all__ = ["ElasticTransform", "RandomAffine", "RandomPerspective", "RandomRotation"]

_FILTERS = {"nearest": "nearest", "nearest-exact": "nearest", "bilinear": "bilinear", "bicubic": "bicubic"}
_FILTERS_OF_PILLOW = {0: "nearest", 2: "bilinear", 3: "bicubic"}


class Warp(Op):
    """An op whose plan is its fields."""

    interpolation: Any
    fill: Any

    def plan(self) -> dict[str, Any]:
        return {"op": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]

    def on_tensor(self) -> Op:
        if self.interpolation == "bicubic":
            raise self.make_refusal("interpolation", '"nearest" or "bilinear" behind ToImage')
        return BehindToImage(self)

    def set_argument(self, argument: str, value: Any) -> None:
        """Replaces an argument by its plain form."""
        object.__setattr__(self, argument, value)

    def make_refusal(self, argument: str, needs: str) -> UnsupportedTransformError:
        """The error that says what an argument needs."""
        return UnsupportedTransformError(
            f"{type(self).__name__}({argument}={getattr(self, argument)!r}): needs {needs}"
        )

    def check_look(self) -> None:
        """Brings interpolation and fill into their plain form."""
        spelled = getattr(self.interpolation, "value", self.interpolation)
        code = to_whole(spelled)
        plain = _FILTERS.get(spelled) if code is None else _FILTERS_OF_PILLOW.get(code)
        if plain is None:
            raise self.make_refusal(
                "interpolation", '"nearest", "bilinear" or "bicubic", which are all that PIL images have'
            )
        self.set_argument("interpolation", plain)
        if self.fill is None:
            return
        self.set_argument("fill", [float(value) for value in check_fill(self)])

    def check_numbers(self, argument: str, low: float, high: float, *lengths: int) -> None:
        """Brings an argument that may be None into a list of numbers."""
        value = getattr(self, argument)
        if value is None:
            return
        numbers = to_numbers(value) if is_list(value) else ()
        if len(numbers) not in lengths or not all(low <= x <= high for x in numbers):
            count = " or ".join(map(str, lengths))
            raise self.make_refusal(argument, f"{count} numbers from {low:g} to {high:g}")
        self.set_argument(argument, [float(x) for x in numbers])

    def check_angles(self, argument: str, *lengths: int) -> None:
        """The same for ranges of degrees, where x alone means from -x to x."""
        angle = to_number(getattr(self, argument))
        if angle is not None and angle >= 0:
            self.set_argument(argument, [-angle, angle])
        self.check_numbers(argument, -1e6, 1e6, *lengths)


@dataclass(frozen=True)
class RandomRotation(Warp):
    """The picture turned by a random angle, in degrees against the clock."""

    degrees: float | Sequence[float]
    interpolation: Any = "nearest"
    expand: bool = False
    center: Sequence[float] | None = None
    fill: float | Sequence[float] | None = 0

    def __post_init__(self) -> None:
        if self.degrees is None:
            raise self.make_refusal("degrees", "a number, or two")
        self.check_angles("degrees", 2)
        self.check_numbers("center", -1e6, 1e6, 2)
        self.check_look()
        self.set_argument("expand", bool(self.expand))


@dataclass(frozen=True)
class RandomAffine(Warp):
    """The picture turned, moved, scaled and sheared at random."""

    degrees: float | Sequence[float]
    translate: Sequence[float] | None = None
    scale: Sequence[float] | None = None
    shear: float | Sequence[float] | None = None
    interpolation: Any = "nearest"
    fill: float | Sequence[float] | None = 0
    center: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.degrees is None:
            raise self.make_refusal("degrees", "a number, or two")
        self.check_angles("degrees", 2)
        self.check_numbers("translate", 0, 1, 2)
        self.check_numbers("scale", 1e-6, 1e6, 2)
        self.check_angles("shear", 2, 4)
        self.check_numbers("center", -1e6, 1e6, 2)
        self.check_look()


@dataclass(frozen=True)
class RandomPerspective(Warp):
    """The picture as if seen from another point, with probability p."""

    distortion_scale: float = 0.5
    p: float = 0.5
    interpolation: Any = "bilinear"
    fill: float | Sequence[float] | None = 0

    def __post_init__(self) -> None:
        for argument in ("distortion_scale", "p"):
            check_number(self, argument, 0, 1)
        self.check_look()


@dataclass(frozen=True)
class ElasticTransform(Warp):
    """Every pixel moved by smoothed noise: alpha says how far, sigma how smoothly; one number, or two for x and y."""

    alpha: float | Sequence[float] = 50.0
    sigma: float | Sequence[float] = 5.0
    interpolation: Any = "bilinear"
    fill: float | Sequence[float] | None = 0

    same = True

    def __post_init__(self) -> None:
        for argument, low, high in (("alpha", -1e6, 1e6), ("sigma", 1e-3, 31.0)):
            if getattr(self, argument) is None:
                raise self.make_refusal(argument, "a number, or two")
            both = to_number(getattr(self, argument))
            if both is not None:
                self.set_argument(argument, [both, both])
            self.check_numbers(argument, low, high, 2)
        self.check_look()
        if self.interpolation == "bicubic":
            raise self.make_refusal("interpolation", '"nearest" or "bilinear", as it works on tensors')

    def on_tensor(self) -> Op:
        return self
