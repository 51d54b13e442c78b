"""timm's classes that resize, crop and pad: which op of ours each means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import transforms
from ..errors import UnsupportedTransformError
from ..transforms._op import Op
from ..transforms._sizes import check_filter, check_look, plan_look

__all__ = ["SIZES", "TimmSize"]


class TimmSize(Op):
    """One of these classes. It works on pictures, as timm puts it before what makes tensors."""

    def plan(self) -> dict[str, Any]:
        return {"op": type(self).__name__, **vars(self)}

    def on_tensor(self) -> Op:
        raise UnsupportedTransformError(f"timm's {self.name} works on PIL images: put it before ToImage and ToTensor")

    @property
    def name(self) -> str:
        """The class of timm."""
        raise NotImplementedError


@dataclass(frozen=True)
class TimmResize(TimmSize):
    """ResizeKeepRatio: the picture covers `size` or fits in it, with a random scale and aspect beside that."""

    size: tuple[int, int]
    longest: float
    interpolation: Any
    random_scale_prob: float
    random_scale_range: tuple[float, float]
    random_scale_area: bool
    random_aspect_prob: float
    random_aspect_range: tuple[float, float]

    name = "ResizeKeepRatio"

    def __post_init__(self) -> None:
        check_filter(self)


@dataclass(frozen=True)
class TimmCrop(TimmSize):
    """CenterCropOrPad, or RandomCropOrPad."""

    size: tuple[int, int]
    random: bool
    fill: Any
    padding_mode: str

    def __post_init__(self) -> None:
        check_look(self)

    @property
    def name(self) -> str:
        return "RandomCropOrPad" if self.random else "CenterCropOrPad"

    @property
    def paints(self) -> tuple[float, ...]:  # type: ignore[override]
        return self.fill if self.padding_mode == "constant" else ()

    def plan(self) -> dict[str, Any]:
        return {**super().plan(), **plan_look(self)}


@dataclass(frozen=True)
class TimmTrim(TimmSize):
    """TrimBorder."""

    border_size: int

    name = "TrimBorder"


def _resize(leaf: Any) -> Op:
    """With several filters timm draws one of them for each picture."""
    modes = leaf.interpolation
    resizes = [
        TimmResize(
            _two(leaf.size),
            float(leaf.longest),
            mode,
            float(leaf.random_scale_prob),
            _ends(leaf.random_scale_range),
            bool(leaf.random_scale_area),
            float(leaf.random_aspect_prob),
            _ends(leaf.random_aspect_range),
        )
        for mode in (modes if isinstance(modes, (tuple, list)) else (modes,))
    ]
    return resizes[0] if len(resizes) == 1 else transforms.RandomChoice(resizes)


def _crop(leaf: Any) -> Op:
    random = type(leaf).__name__ == "RandomCropOrPad"
    return TimmCrop(_two(leaf.size), random, leaf.fill, leaf.padding_mode)


def _two(size: Any) -> tuple[int, int]:
    return int(size[0]), int(size[1])


def _ends(values: Any) -> tuple[float, float]:
    return float(values[0]), float(values[1])


SIZES: dict[str, Callable[[Any], Op]] = {
    "CenterCropOrPad": _crop,
    "RandomCropOrPad": _crop,
    "ResizeKeepRatio": _resize,
    "TrimBorder": lambda leaf: TimmTrim(int(leaf.border_size)),
}
"""What makes an op of ours of each class."""
