"""Warps and policies: what is accepted, what plan it becomes, and how the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest

from feedwater import UnsupportedTransformError, transforms
from feedwater._plan.compiler import compile_transform

tv1 = pytest.importorskip("torchvision.transforms")
v2 = pytest.importorskip("torchvision.transforms.v2")
PIL = pytest.importorskip("PIL.Image")

BLACK = [0.0, 0.0, 0.0]
OPS = {
    "RandomRotation": (
        lambda m: m.RandomRotation(30),
        {"degrees": [-30, 30], "interpolation": "nearest", "expand": False, "center": None, "fill": BLACK},
    ),
    "RandomRotation, all": (
        lambda m: m.RandomRotation((0, 90), tv1.InterpolationMode.BICUBIC, True, (1, 2), (3, 4, 5)),
        {"degrees": [0, 90], "interpolation": "bicubic", "expand": True, "center": [1, 2], "fill": [3, 4, 5]},
    ),
    "RandomAffine": (
        lambda m: m.RandomAffine(10, (0.1, 0), (0.5, 2), 20, tv1.InterpolationMode.BILINEAR, 7, [8, 9]),
        {
            "degrees": [-10, 10], "translate": [0.1, 0], "scale": [0.5, 2], "shear": [-20, 20],
            "interpolation": "bilinear", "fill": [7, 7, 7], "center": [8, 9],
        },
    ),
    "RandomPerspective": (
        lambda m: m.RandomPerspective(0.3, 0.8, fill=9),
        {"distortion_scale": 0.3, "p": 0.8, "interpolation": "bilinear", "fill": [9] * 3},
    ),
    "RandAugment": (
        lambda m: m.RandAugment(),
        {"num_ops": 2, "magnitude": 9, "num_magnitude_bins": 31, "interpolation": "nearest", "fill": None},
    ),
    "RandAugment, all": (
        lambda m: m.RandAugment(3, 4, 10, tv1.InterpolationMode.BILINEAR, [128]),
        {"num_ops": 3, "magnitude": 4, "num_magnitude_bins": 10, "interpolation": "bilinear", "fill": [128] * 3},
    ),
    "TrivialAugmentWide": (
        lambda m: m.TrivialAugmentWide(),
        {"num_magnitude_bins": 31, "interpolation": "nearest", "fill": None},
    ),
    "AutoAugment": (
        lambda m: m.AutoAugment(tv1.AutoAugmentPolicy.SVHN),
        {"policy": "svhn", "interpolation": "nearest", "fill": None},
    ),
    "AugMix": (
        lambda m: m.AugMix(5, chain_depth=0, fill=9),
        {
            "severity": 5, "mixture_width": 3, "chain_depth": -1, "alpha": 1.0, "all_ops": True,
            "interpolation": "bilinear", "fill": [9] * 3,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPS)
def test_torchvision_and_our_spelling_make_the_same_plan(name: str) -> None:
    (build, expected), op = OPS[name], name.split(",")[0]
    for module in (v2, tv1, transforms):
        if module is tv1 and op == "AugMix":
            continue  # refused: tests/test_transforms.py
        first = {"generation": 1} if module is tv1 and "Augment" in op else {}
        plans = [op.plan() for op in compile_transform(build(module)).ops]
        assert plans == [{"op": op, **expected, **first}]


@pytest.mark.parametrize(("fill", "expected"), [({PIL.Image: 9}, [9] * 3), ({"others": 8}, [8] * 3), ({}, None)])
def test_a_fill_for_each_type_is_that_of_pictures(fill: Any, expected: Any) -> None:
    (op,) = compile_transform(v2.RandomRotation(30, fill=fill)).ops
    assert op.plan()["fill"] == expected


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: transforms.RandomRotation(-1), "degrees=-1.*needs 2 numbers"),
        (lambda: transforms.RandomRotation("30"), "degrees"),
        (lambda: transforms.RandomRotation(None), "degrees"),  # type: ignore[arg-type]
        (lambda: transforms.RandomRotation(30, "lanczos"), 'interpolation=.*"bicubic"'),
        (lambda: compile_transform(transforms.RandomRotation(30, fill=256)), "fill=256.*from 0 to 255"),
        (lambda: transforms.RandomRotation(30, fill=(1, 2)), "fill"),
        (lambda: transforms.RandomRotation(30, center=(1, 2, 3)), "center"),
        (lambda: transforms.RandomAffine(30, translate=(0, 1.5)), "translate.*from 0 to 1"),
        (lambda: transforms.RandomAffine(30, scale=(0, 1)), "scale"),
        (lambda: transforms.RandomAffine(30, shear=(0, 1, 2)), "shear.*2 or 4 numbers"),
        (lambda: transforms.RandomPerspective(1.5), "distortion_scale=1.5"),
        (lambda: transforms.RandAugment(2.5), "num_ops=2.5"),  # type: ignore[arg-type]
        (lambda: transforms.RandAugment(magnitude=31), "magnitude=31.*from 0 to 30"),
        (lambda: transforms.AutoAugment("cifar100"), 'policy="?.*cifar10'),
        (lambda: transforms.AugMix(0), "severity=0"),
        (lambda: transforms.AugMix(alpha=0), "alpha=0"),
        (lambda: transforms.AugMix(interpolation="bicubic"), "works on tensors"),
        (lambda: transforms.TrivialAugmentWide(1), "num_magnitude_bins=1"),
    ],
)
def test_arguments_are_checked(make: Any, why: str) -> None:
    with pytest.raises(UnsupportedTransformError, match=why):
        make()


def test_policies_behind_to_image_are_tensors() -> None:
    policies = [v2.RandAugment(), v2.TrivialAugmentWide(), v2.AutoAugment()]
    for op in compile_transform([v2.ToImage(), *policies]).ops:
        assert op.plan()["dialect"] == "tensor"
    (mixed,) = compile_transform([v2.ToImage(), v2.AugMix()]).ops
    assert mixed.plan() == compile_transform(v2.AugMix()).ops[0].plan()  # it is one always
    with pytest.raises(UnsupportedTransformError, match='"nearest" or "bilinear" behind ToImage'):
        compile_transform([v2.ToImage(), v2.RandAugment(interpolation=v2.InterpolationMode.BICUBIC)])
    with pytest.raises(UnsupportedTransformError, match="RandAugment after ToTensor works on floats"):
        compile_transform([tv1.ToTensor(), v2.RandAugment()])


def test_warps_behind_to_image_are_tensors() -> None:
    for op in (v2.RandomRotation(9), v2.RandomAffine(9), v2.RandomPerspective()):
        (before,), (behind,) = (compile_transform(steps).ops for steps in (op, [v2.ToImage(), op]))
        assert behind.plan() == {**before.plan(), "dialect": "tensor"}
    bicubic = v2.RandomAffine(9, interpolation=v2.InterpolationMode.BICUBIC)
    compile_transform(bicubic)
    with pytest.raises(UnsupportedTransformError, match=r'RandomAffine.*"nearest" or "bilinear" behind ToImage'):
        compile_transform([v2.ToImage(), bicubic])
