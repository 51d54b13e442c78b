"""Compiling transforms of colour: what they become, and how the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest

from feedwater import UnsupportedTransformError, transforms
from feedwater._plan.compiler import compile_transform

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
tv1 = pytest.importorskip("torchvision.transforms")
own = transforms

PLANS: list[tuple[Any, dict[str, Any]]] = [
    (
        lambda m: m.ColorJitter(0.4, 1.5, (0.5, 2), 0.1),
        {"brightness": [0.6, 1.4], "contrast": [0.0, 2.5], "saturation": [0.5, 2.0], "hue": [-0.1, 0.1]},
    ),
    (lambda m: m.ColorJitter(0.0, hue=(0, 0)), {"brightness": None, "contrast": None, "saturation": None, "hue": None}),
    (lambda m: m.Grayscale(3), {"num_output_channels": 3}),
    (lambda m: m.RandomGrayscale(), {"p": 0.1}),
    (lambda m: m.RandomInvert(), {"p": 0.5}),
    (lambda m: m.GaussianBlur(23), {"kernel_size": [23, 23], "sigma": [0.1, 2.0]}),
    (lambda m: m.GaussianBlur((5, 9), 1.5), {"kernel_size": [5, 9], "sigma": [1.5, 1.5]}),
    (lambda m: m.RandomEqualize(1), {"p": 1.0}),
    (lambda m: m.RandomAutocontrast(0.25), {"p": 0.25}),
    (lambda m: m.RandomPosterize(2), {"bits": 2, "p": 0.5}),
    (lambda m: m.RandomSolarize(192, p=0.2), {"threshold": 192.0, "p": 0.2}),
    (lambda m: m.GaussianNoise(), {"mean": 0.0, "sigma": 0.1}),
    (lambda m: m.JPEG(50), {"quality": [50, 50]}),
    (lambda m: m.JPEG((5, 95)), {"quality": [5, 95]}),
    (lambda m: m.RandomChannelPermutation(), {}),
    (
        lambda m: m.RandomPhotometricDistort(hue=(-0.1, 0), p=0.2),
        {"brightness": [0.875, 1.125], "contrast": [0.5, 1.5], "saturation": [0.5, 1.5], "hue": [-0.1, 0.0], "p": 0.2},
    ),
    (lambda m: m.RandomAdjustSharpness(2), {"sharpness_factor": 2.0, "p": 0.5}),
]


@pytest.mark.parametrize(("build", "arguments"), PLANS)
def test_torchvision_and_our_spelling_make_the_same_plan(build: Any, arguments: dict[str, Any]) -> None:
    for module in (v2, own, tv1):
        if not hasattr(module, build.__code__.co_names[0]):
            continue
        made = build(module)
        (op,) = compile_transform(made).ops
        name = type(made).__name__
        assert op.plan() == {"op": name, **arguments}


def test_noise_goes_onto_tensors_of_bytes() -> None:
    """torchvision adds none to PIL images."""
    behind, before = (
        compile_transform(steps).ops for steps in ([v2.ToImage(), v2.GaussianNoise()], own.GaussianNoise())
    )
    assert behind == before


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: own.ColorJitter(-1), "ColorJitter.brightness=-1.: needs a number from 0"),
        (lambda: own.ColorJitter(hue=0.6), "hue=0.6.: needs a number from 0 to 0.5"),
        (lambda: own.ColorJitter(hue=(-0.6, 0)), "hue=.* -0.5 <= min <= max <= 0.5"),
        (lambda: own.ColorJitter(contrast=(2, 1)), "contrast=.*needs two numbers"),
        (lambda: own.ColorJitter(saturation="much"), "saturation='much'"),
        (lambda: own.Grayscale(), "pass num_output_channels=3"),
        (lambda: compile_transform(v2.Grayscale()), "pass num_output_channels=3"),
        (lambda: own.RandomGrayscale(2), "RandomGrayscale.p=2.: needs a number from 0 to 1"),
        (lambda: own.RandomPosterize(0), "bits=0.: needs a number from 1 to 8"),
        (lambda: own.RandomPosterize(2.5), "whole number"),
        (lambda: own.JPEG(0), "quality=0.: needs a whole number from 1 to 100"),
        (lambda: own.JPEG((50, 20)), "ascending"),
        (lambda: own.GaussianNoise(sigma=-1), "sigma=-1.: needs a number from 0"),
        (lambda: compile_transform(v2.GaussianNoise(clip=False)), "clip=False"),
        (
            lambda: compile_transform([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.GaussianNoise()]),
            "GaussianNoise after ToDtype works on floats",
        ),
        (lambda: own.GaussianBlur(4), "kernel_size=4.: needs an odd number"),
        (lambda: own.GaussianBlur((3, 5, 7)), "kernel_size"),
        (lambda: own.GaussianBlur(3, (2, 1)), "sigma=.*needs two numbers"),
        (lambda: own.GaussianBlur(3, 0), "sigma=0"),
        (lambda: own.RandomSolarize("x"), "threshold='x'"),
        (lambda: own.RandomAdjustSharpness(-0.1), "sharpness_factor=-0.1"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, why: str) -> None:
    with pytest.raises(UnsupportedTransformError, match=why):
        make()


BOTH = [
    v2.RandomInvert(),
    v2.RandomEqualize(),
    v2.RandomPosterize(3),
    v2.RandomChannelPermutation(),
    v2.JPEG(50),
    v2.GaussianBlur(3),
]
TWO = [
    v2.ColorJitter(0.4), v2.Grayscale(3), v2.RandomGrayscale(), v2.RandomSolarize(128), v2.RandomAutocontrast(),
    v2.RandomAdjustSharpness(2), v2.RandomPhotometricDistort(),
]  # fmt: skip


@pytest.mark.parametrize("op", [*BOTH, *TWO], ids=lambda op: type(op).__name__)
def test_colours_behind_to_image_are_those_of_tensors(op: Any) -> None:
    (before,), (behind,) = (compile_transform(steps).ops for steps in (op, [v2.ToImage(), op]))
    assert behind.plan() == before.plan() | ({"dialect": "tensor"} if op in TWO else {})


def test_containers_behind_to_image_hold_what_tensors_become() -> None:
    jitter = v2.RandomApply([v2.ColorJitter(0.4), v2.RandomHorizontalFlip()])
    (container,) = compile_transform([v2.ToImage(), jitter]).ops
    assert [op.get("dialect") for op in container.plan()["transforms"]] == ["tensor", None]
    with pytest.raises(UnsupportedTransformError, match="ColorJitter after ToDtype works on floats"):
        compile_transform([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), jitter])


def test_tensors_know_no_threshold_above_white() -> None:
    compile_transform(v2.RandomSolarize(300))
    with pytest.raises(UnsupportedTransformError, match="behind ToImage: needs 255 at most"):
        compile_transform([v2.ToImage(), v2.RandomSolarize(300)])
