"""Rotations and other warps."""

from __future__ import annotations

from typing import Any

from case import Case, Draws, Picture
from torchvision.transforms import v2

F = v2.functional
FUNCTIONS = {"RandomRotation": "rotate", "RandomAffine": "affine", "RandomPerspective": "perspective"}


def _case(kind: str, **arguments: Any) -> Case:
    """A case of an op whose function takes what is drawn."""
    spelled = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    op = getattr(v2, kind)(**arguments)
    fixed = {name: getattr(op, name) for name in ("expand", "center", "fill") if hasattr(op, name)}

    def expect(picture: Picture, draws: Draws) -> Any:
        drawn = {name: value for name, value in draws[0].items() if name not in ("op", "applied")}
        if not draws[0]["applied"]:
            return picture
        if kind == "RandomPerspective":
            drawn |= {"startpoints": None, "endpoints": None}
        return getattr(F, FUNCTIONS[kind])(picture, **drawn, **fixed, interpolation=op.interpolation)

    return Case(f"{kind}({spelled})", lambda: op, expect)


FILTERS = ("nearest", "bilinear", "bicubic")
ALL: dict[str, Any] = {"translate": (0.1, 0.3), "scale": (0.5, 1.6), "shear": (-20, 20, -10, 30)}

CASES = [
    *(_case("RandomRotation", degrees=180, interpolation=name) for name in FILTERS),
    _case("RandomRotation", degrees=15),
    _case("RandomRotation", degrees=(30, 30), fill=200),
    _case("RandomRotation", degrees=(-400, 1000), expand=True, fill=(10, 20.7, 255)),
    _case("RandomRotation", degrees=45, expand=True, interpolation="bilinear", fill=(255, 0, 127)),
    _case("RandomRotation", degrees=45, center=(0, 0), interpolation="bicubic", fill=None),
    _case("RandomRotation", degrees=45, center=(100.3, -20.8)),
    _case("RandomRotation", degrees=45, center=(100.3, 20.8), expand=True, interpolation="bilinear"),
    *(_case("RandomRotation", degrees=(angle, angle)) for angle in (0, 90, 180, -90)),
    *(_case("RandomRotation", degrees=(angle, angle), expand=True) for angle in (90, 180, 270)),
    _case("RandomRotation", degrees=(90, 90), center=(80, 60), interpolation="bilinear"),
    *(_case("RandomAffine", degrees=30, interpolation=name, **ALL) for name in FILTERS),
    _case("RandomAffine", degrees=0),
    _case("RandomAffine", degrees=0, translate=(1, 1)),
    _case("RandomAffine", degrees=0, translate=(0.1, 0.1), interpolation="bilinear", fill=99),
    _case("RandomAffine", degrees=0, scale=(0.5, 2)),
    _case("RandomAffine", degrees=0, scale=(2, 2), interpolation="bicubic"),
    _case("RandomAffine", degrees=0, scale=(0.001, 0.01), fill=7),
    _case("RandomAffine", degrees=30, scale=(0.001, 0.01), fill=7),
    _case("RandomAffine", degrees=0, shear=30),
    _case("RandomAffine", degrees=0, shear=(0, 0, -30, 30), fill=(1, 2, 3)),
    _case("RandomAffine", degrees=(-180, 180), center=(30, 40), fill=(255, 254.9, 0), **ALL),
    _case("RandomAffine", degrees=(90, 90), center=(30, 40)),
    _case("RandomPerspective"),
    *(_case("RandomPerspective", distortion_scale=0.8, p=1, interpolation=name, fill=(1, 90, 255)) for name in FILTERS),
    _case("RandomPerspective", distortion_scale=0.02, p=1, fill=None),
    _case("RandomPerspective", distortion_scale=1, p=1),
]
