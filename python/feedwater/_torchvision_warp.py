"""torchvision's warps and policies as ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import transforms
from ._torchvision_fill import of_pictures
from .transforms._op import Op

__all__ = ["BUILDERS"]


def _same(*names: str) -> Callable[[Any], Op]:
    """Makes our class of the same name, with those arguments, interpolation and fill."""

    def build(leaf: Any) -> Op:
        arguments = {name: getattr(leaf, name) for name in names}
        kind: Callable[..., Op] = getattr(transforms, type(leaf).__name__)
        return kind(**arguments, interpolation=leaf.interpolation, fill=of_pictures(leaf.fill))

    return build


BUILDERS: dict[str, Callable[[Any], Op]] = {
    "AugMix": _same("severity", "mixture_width", "chain_depth", "alpha", "all_ops"),
    "AutoAugment": _same("policy"),
    "ElasticTransform": _same("alpha", "sigma"),
    "RandAugment": _same("num_ops", "magnitude", "num_magnitude_bins"),
    "RandomAffine": _same("degrees", "translate", "scale", "shear", "center"),
    "RandomPerspective": _same("distortion_scale", "p"),
    "RandomRotation": _same("degrees", "expand", "center"),
    "TrivialAugmentWide": _same("num_magnitude_bins"),
}
