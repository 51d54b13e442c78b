"""torchvision's warps and policies as ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .. import transforms
from ..errors import UnsupportedTransformError
from ..transforms._op import Op
from .fill import of_pictures
from .origin import is_first

__all__ = ["BUILDERS"]


def _of_generation(*names: str) -> Callable[[Any], Op]:
    """The same for a policy, whose thresholds go by where it is from."""
    build = _convert_same(*names)

    def of_generation(leaf: Any) -> Op:
        return replace(build(leaf), generation=1) if is_first(leaf) else build(leaf)  # type: ignore[type-var]

    return of_generation


def _convert_mixing(leaf: Any) -> Op:
    if is_first(leaf):
        raise UnsupportedTransformError(
            "torchvision.transforms.AugMix works by arithmetic of its own: write torchvision.transforms.v2.AugMix"
        )
    return _convert_same("severity", "mixture_width", "chain_depth", "alpha", "all_ops")(leaf)


def _convert_same(*names: str) -> Callable[[Any], Op]:
    """Makes our class of the same name, with those arguments, interpolation and fill."""

    def build(leaf: Any) -> Op:
        arguments = {name: getattr(leaf, name) for name in names}
        kind: Callable[..., Op] = getattr(transforms, type(leaf).__name__)
        return kind(**arguments, interpolation=leaf.interpolation, fill=of_pictures(leaf.fill))

    return build


BUILDERS: dict[str, Callable[[Any], Op]] = {
    "AugMix": _convert_mixing,
    "AutoAugment": _of_generation("policy"),
    "ElasticTransform": _convert_same("alpha", "sigma"),
    "RandAugment": _of_generation("num_ops", "magnitude", "num_magnitude_bins"),
    "RandomAffine": _convert_same("degrees", "translate", "scale", "shear", "center"),
    "RandomPerspective": _convert_same("distortion_scale", "p"),
    "RandomRotation": _convert_same("degrees", "expand", "center"),
    "TrivialAugmentWide": _of_generation("num_magnitude_bins"),
}
