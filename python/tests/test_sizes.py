"""Compiling filters, crops, padding and drawn sizes, in front of ToImage and behind it."""

from __future__ import annotations

from typing import Any

import pytest

from feedwater import UnsupportedTransformError
from feedwater import transforms as own
from feedwater._plan.compiler import compile_transform

torch = pytest.importorskip("torch")
tv1 = pytest.importorskip("torchvision.transforms")
Image = pytest.importorskip("PIL.Image")
v2 = pytest.importorskip("torchvision.transforms.v2")
models = pytest.importorskip("torchvision.models")

FILTERS = ("nearest", "nearest-exact", "bilinear", "bicubic", "lanczos", "box", "hamming")

OPS = {
    "Resize, long side": lambda m: m.Resize(None, max_size=8),
    "Pad": lambda m: m.Pad(4),
    "Pad two": lambda m: m.Pad((4, 5), fill=7),
    "Pad four": lambda m: m.Pad([1, 2, 3, 4], fill=(1, 2, 3), padding_mode="constant"),
    "Pad edge": lambda m: m.Pad(4, padding_mode="edge"),
    "RandomCrop": lambda m: m.RandomCrop(8),
    "RandomCrop of CIFAR": lambda m: m.RandomCrop(32, padding=4),
    "RandomCrop, all": lambda m: m.RandomCrop((3, 4), [1, 2, 3, 4], True, (1, 2, 3), "constant"),
    "RandomCrop two": lambda m: m.RandomCrop(8, (1, 2), padding_mode="reflect"),
    "RandomZoomOut": lambda m: m.RandomZoomOut(),
    "RandomZoomOut, all": lambda m: m.RandomZoomOut(9, (1.5, 2), 0.25),
    "RandomResize": lambda m: m.RandomResize(8, 9),
    "RandomShortestSize": lambda m: m.RandomShortestSize([8, 9], 20, interpolation="bicubic"),
    "ScaleJitter": lambda m: m.ScaleJitter((8, 9), (0.5, 1)),
}


def plans(transform: Any) -> list[dict[str, Any]]:
    return [op.plan() for op in compile_transform(transform).ops]


@pytest.mark.parametrize("name", OPS)
def test_torchvision_and_our_spelling_make_the_same_plan(name: str) -> None:
    theirs, ours = (plans(OPS[name](module)) for module in (v2, own))
    assert theirs == ours
    if name.startswith(("Pad", "RandomCrop")):
        assert plans(OPS[name](tv1)) == ours
    assert ours[0]["op"] == name.split()[0].rstrip(",")


def test_the_plan_of_some_written_out() -> None:
    look = {"fill": [0, 0, 0], "padding_mode": "constant"}
    assert plans([OPS["Pad"](own), OPS["RandomCrop, all"](own), OPS["RandomShortestSize"](own)]) == [
        {"op": "Pad", "padding": [4, 4, 4, 4], **look},
        {
            "op": "RandomCrop",
            "size": [3, 4],
            "padding": [1, 2, 3, 4],
            "pad_if_needed": True,
            "fill": [1, 2, 3],
            "padding_mode": "constant",
        },
        {"op": "RandomShortestSize", "min_size": [8, 9], "max_size": 20, "interpolation": "bicubic"},
    ]


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_may_be_spelled_in_any_way(name: str) -> None:
    spelled = [name, v2.InterpolationMode(name)]
    pillow = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
    spelled += [pillow[name]] if name in pillow else []
    for interpolation in spelled:
        assert plans(own.Resize(8, interpolation))[0]["interpolation"] == name
        assert plans(v2.Resize(8, interpolation))[0]["interpolation"] == name


def test_behind_to_image_tensors_are_resized() -> None:
    flip = v2.RandomHorizontalFlip()
    tail = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])]
    crop, moved = plans([v2.ToImage(), v2.RandomResizedCrop(8, antialias=True), flip, *tail])
    assert crop == {**plans(v2.RandomResizedCrop(8))[0], "dialect": "tensor"}
    assert [moved] == plans(flip)
    assert "dialect" not in plans([v2.RandomResizedCrop(8), v2.ToImage()])[0]
    for behind in (v2.PILToTensor(), own.ToImage()):
        assert plans([behind, v2.Resize(8)])[0]["dialect"] == "tensor"


@pytest.mark.parametrize("antialias", [False, None])
def test_antialias_is_said_where_it_counts(antialias: bool | None) -> None:
    (resize,) = plans([v2.ToImage(), v2.Resize(8, antialias=antialias)])
    assert resize["antialias"] is False
    (resize,) = plans([v2.ToImage(), v2.Resize(8, interpolation="nearest", antialias=antialias)])
    assert "antialias" not in resize


def test_types_and_colours_may_be_given_by_kind() -> None:
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    behind = own.Normalize([0.5], [0.5])
    for dtype in ({tv_tensors.Image: torch.float16, "others": None}, {"others": torch.float16}):
        mixed = [v2.RGB(), v2.ToImage(), v2.ToDtype(dtype, scale=True), behind]
        assert compile_transform(mixed).table.dtype == "float16"
    kept = [v2.ToImage(), v2.ToDtype({tv_tensors.Mask: torch.int64, "others": None}), own.ToPureTensor()]
    assert compile_transform(kept).table.dtype == "uint8"
    assert plans(v2.Pad(3, fill={"others": 9})) == plans(v2.Pad(3, fill=9))


def test_a_preset_with_another_filter() -> None:
    assert plans(models.EfficientNet_B0_Weights.DEFAULT.transforms())[0]["interpolation"] == "bicubic"


@pytest.mark.parametrize(
    "step", [v2.Pad(3), v2.RandomCrop(8, 2), v2.Pad(3, fill=9, padding_mode="edge"), v2.RandomCrop(8)]
)
def test_what_only_moves_values_may_stand_behind_floats(step: Any) -> None:
    assert plans([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), step]) == plans(step)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: own.Pad(-1), "padding=-1.: needs a whole number from 0"),
        (lambda: own.Pad((1, 2, 3)), "padding="),
        (lambda: plans(own.Pad(1, fill=256)), "fill=256.: needs a number from 0 to 255"),
        (lambda: plans([own.ToImage(), own.Pad(1, fill=(0, -1, 0))]), "fill=.0, -1, 0..: needs a number from 0 to 255"),
        (lambda: plans(own.Pad(1, fill=-1, padding_mode="edge")), "fill=-1.: needs a number from 0 to 255"),
        (lambda: plans(own.RandomApply([own.RandomCrop(8, 1, fill=-1)])), "fill=-1.: needs a number from 0 to 255"),
        (lambda: own.Pad(1, fill=(1, 2)), "fill="),
        (lambda: own.Pad(1, fill=float("nan")), "fill=nan.: needs a number, or three"),
        (lambda: own.Pad(1, padding_mode="mirror"), "padding_mode='mirror'.: needs constant or edge"),
        (lambda: own.RandomCrop(8, pad_if_needed=1), "pad_if_needed=1"),  # type: ignore[arg-type]
        (lambda: own.RandomZoomOut(side_range=(0.5, 2)), "side_range=.*from 1"),
        (lambda: own.RandomZoomOut(side_range=(3, 2)), "two ascending numbers"),
        (lambda: own.RandomZoomOut(p=2), "from 0 to 1"),
        (lambda: own.RandomResize(8, 8), "max_size=8.: needs more than min_size, 8"),
        (lambda: own.RandomResize(0, 8), "min_size=0"),
        (lambda: own.RandomShortestSize([]), "min_size="),
        (lambda: own.RandomShortestSize(8, 0), "max_size=0"),
        (lambda: own.ScaleJitter(8), "target_size=8"),  # type: ignore[arg-type]
        (lambda: own.ScaleJitter((8, 8), (2, 1)), "scale_range"),
        (lambda: own.Resize(None), "needs max_size"),
        (lambda: own.Resize(8, "cubic"), "interpolation='cubic'.: needs nearest or"),
        (lambda: own.Resize(8, antialias="yes"), "antialias='yes'.: needs True or False"),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_our_own_are_checked(make: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        make()


PADS = [
    (v2.Pad(3, fill=1.0), [v2.ToDtype(torch.float32, scale=True)]),
    (v2.Pad((1, 2), fill=(0.0, 1.0, 0.0)), [v2.ToDtype(torch.float32, scale=True)]),
    (v2.Pad(3, fill=77), [v2.ToDtype(torch.float32)]),
    (v2.Pad(2, fill=1.0), [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])]),
    (v2.Pad(3, fill=1.0), [v2.ToDtype(torch.bfloat16, scale=True)]),
    *(
        (pad, [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])])
        for pad in (v2.Pad(3, fill=-1.0), v2.Pad(3, fill=[-1.0, 1.0, -1.0]), v2.RandomCrop(40, 30, fill=-1.0))
    ),
    (v2.RandomZoomOut(-2.0, (9, 9), p=1), [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.25])]),
]


@pytest.mark.parametrize(("pad", "tail"), PADS, ids=str)
def test_padding_behind_floats_paints_what_becomes_its_colour(pad: Any, tail: list[Any]) -> None:
    """The border of a grey picture, padded and then converted as the table says, is torchvision's."""
    compiled = compile_transform([v2.ToImage(), *tail, pad])
    painted = compiled.plan_ops()[0]["fill"]
    torch.manual_seed(1)  # RandomZoomOut's corner is outside
    theirs = v2.Compose([v2.ToImage(), *tail, pad])(Image.new("RGB", (4, 4), (9, 9, 9)))[:, 0, 0]
    assert [compiled.table.to_floats()[c, painted[c]] for c in range(3)] == theirs.float().tolist()


def test_padding_behind_floats_needs_a_value_that_becomes_its_colour() -> None:
    for fill in (0.5, (0, 0.1234, 0)):
        with pytest.raises(UnsupportedTransformError, match=r"puts fill=.* which no 8-bit value becomes"):
            compile_transform([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Pad(3, fill=fill)])
    normal = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])]
    why = r"pass the nearest that one becomes, fill=\(-1, -1, 1\), of those from -1 to 1"
    with pytest.raises(UnsupportedTransformError, match=why):
        compile_transform([*normal, v2.Pad(3, fill=(-9, -1.001, 255))])
    with pytest.raises(UnsupportedTransformError, match="put it before, then it pads black, not the mean"):
        compile_transform([*normal, v2.CenterCrop(9)])
    with pytest.raises(UnsupportedTransformError, match=r"RandomRotation after Normalize works on floats, .*before"):
        compile_transform([*normal, v2.RandomRotation(9, fill=-1.0)])


@pytest.mark.parametrize("step", [v2.Pad(3, fill=-1, padding_mode="reflect"), v2.RandomCrop(8, fill=-1.0)])
def test_a_colour_that_is_painted_nowhere_may_be_any(step: Any) -> None:
    tail = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    assert compile_transform([*tail, step]).plan_ops()[0]["fill"] == [0, 0, 0]
