"""Compiling transforms with transforms inside."""

from __future__ import annotations

from typing import Any

import pytest

from feedwater import UnsupportedTransformError, transforms
from feedwater._plan.compiler import compile_transform

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
tv1 = pytest.importorskip("torchvision.transforms")
own = transforms

INVERT = {"op": "RandomInvert", "p": 0.5}
CROP = {"op": "CenterCrop", "size": [8, 8]}
PLANS: list[tuple[Any, dict[str, Any]]] = [
    (lambda m: m.RandomApply([m.RandomInvert()], 0.3), {"op": "RandomApply", "transforms": [INVERT], "p": 0.3}),
    (
        lambda m: m.RandomChoice([m.RandomInvert(), m.Compose([m.CenterCrop(8), m.RandomInvert()])]),
        {
            "op": "RandomChoice",
            "transforms": [INVERT, {"op": "Compose", "transforms": [CROP, INVERT]}],
            "p": [0.5, 0.5],
        },
    ),
    (
        lambda m: m.RandomChoice([m.CenterCrop(8), m.RandomInvert()], p=[1, 3]),
        {"op": "RandomChoice", "transforms": [CROP, INVERT], "p": [0.25, 0.75]},
    ),
    (
        lambda m: m.RandomOrder([m.CenterCrop(8), m.RandomApply([m.RandomInvert()])]),
        {"op": "RandomOrder", "transforms": [CROP, {"op": "RandomApply", "transforms": [INVERT], "p": 0.5}]},
    ),
]


@pytest.mark.parametrize(("build", "plan"), PLANS)
def test_torchvision_and_our_spelling_make_the_same_plan(build: Any, plan: dict[str, Any]) -> None:
    for module in (v2, own, tv1):
        (op,) = compile_transform(build(module)).ops
        assert op.plan() == plan


def test_weights_are_divided_as_torchvision_does_it() -> None:
    """Where the sum is not quite one, twice would be too often."""
    weights = [0.1, 0.2, 0.7]
    theirs, ours = (compile_transform(m.RandomChoice([m.CenterCrop(8)] * 3, p=weights)).ops for m in (v2, own))
    assert theirs[0].plan() == ours[0].plan()
    assert ours[0].plan()["p"] == v2.RandomChoice([v2.CenterCrop(8)] * 3, p=weights).p


def test_nothing_may_be_an_alternative() -> None:
    identity = {"op": "Identity"}
    for module in (v2, own):
        (op,) = compile_transform(module.RandomChoice([module.Identity(), module.CenterCrop(8)])).ops
        assert op.plan()["transforms"] == [identity, CROP]
        assert compile_transform([module.Identity(), module.CenterCrop(8)]).ops == (own.CenterCrop(8),)


def test_a_list_of_modules_may_stand_inside() -> None:
    (op,) = compile_transform(v2.RandomApply(torch.nn.ModuleList([v2.CenterCrop(8)]))).ops
    assert op.plan()["transforms"] == [CROP]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: own.RandomApply([]), "at least one transform"),
        (lambda: own.RandomApply(own.CenterCrop(8)), "needs a list of transforms"),
        (lambda: own.RandomApply([own.CenterCrop(8)], p=2), "RandomApply.p=2.: needs a number from 0 to 1"),
        (lambda: own.RandomChoice([own.CenterCrop(8)], p=[1, 2]), "a number for each"),
        (lambda: own.RandomChoice([own.CenterCrop(8)], p=[0]), "not all of them 0"),
        (lambda: own.RandomChoice([own.CenterCrop(8)], p=["x"]), "needs numbers"),
        (lambda: compile_transform(v2.RandomApply([v2.ToImage()])), "ToImage inside RandomApply"),
        (
            lambda: compile_transform(v2.RandomOrder([v2.RandomApply([v2.Lambda(id)])])),
            "Lambda: leave it out.*code of your own",
        ),
        (lambda: compile_transform(own.RandomApply([3])), "needs transform objects"),
        (
            lambda: compile_transform([tv1.ToTensor(), v2.RandomApply([v2.ColorJitter(1)])]),
            "ColorJitter after ToTensor",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Any, why: str) -> None:
    with pytest.raises(UnsupportedTransformError, match=why):
        make()
