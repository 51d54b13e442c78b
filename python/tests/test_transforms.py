"""Compiling transforms: what is accepted, what it becomes, and how the rest is refused."""

from __future__ import annotations

import json
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

from feedwater import UnsupportedTransformError, transforms
from feedwater._plan.compiler import compile_transform
from feedwater._value_table import IDENTITY, Pixels, dtype_name

torch = pytest.importorskip("torch")
tv1 = pytest.importorskip("torchvision.transforms")
v2 = pytest.importorskip("torchvision.transforms.v2")
models = pytest.importorskip("torchvision.models")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
own = transforms


def both(build: Any) -> list[Any]:
    """The same transform by torchvision and by us."""
    return [build(v2), build(own)]


TAILS = {
    "ToImage": lambda m: [m.ToImage()],
    "PILToTensor": lambda m: [m.PILToTensor(), m.ToPureTensor()],
    "ToTensor": lambda m: [m.ToTensor()],
    "ToTensor, Normalize": lambda m: [m.ToTensor(), m.Normalize(MEAN, STD)],
    "unscaled": lambda m: [m.ToImage(), m.ToDtype(torch.float32)],
    "usual": lambda m: [m.ToImage(), m.ToDtype(torch.float32, scale=True), m.Normalize(MEAN, STD)],
    "one channel's numbers": lambda m: [m.ToImage(), m.ToDtype(torch.float32, scale=True), m.Normalize([0.5], [0.25])],
    "ConvertImageDtype": lambda m: [m.PILToTensor(), m.ConvertImageDtype(torch.float32), m.Normalize(MEAN, STD)],
    "half": lambda m: [m.ToImage(), m.ToDtype(torch.float16, scale=True), m.Normalize(MEAN, STD)],
    "bfloat16": lambda m: [m.ToImage(), m.ToDtype(torch.bfloat16, scale=True), m.Normalize(MEAN, STD)],
    "half, unscaled": lambda m: [m.ToImage(), m.ToDtype(torch.bfloat16), m.Normalize(MEAN, STD)],
    "float32, then half": lambda m: [m.ToImage(), m.ToDtype(torch.float32, scale=True), m.ToDtype(torch.float16)],
}


@pytest.mark.filterwarnings("ignore:The transform `ToTensor")
@pytest.mark.parametrize("name", TAILS)
def test_the_table_is_what_torchvision_makes_of_every_value(name: str) -> None:
    theirs, ours = both(TAILS[name])
    compiled = compile_transform(v2.Compose([v2.CenterCrop(8), *theirs]))
    assert compiled.to_tensor
    # torchvision itself, on a picture of every value in another arrangement than the table's probe
    import PIL.Image

    values = np.random.default_rng(1).permuted(np.tile(np.arange(256, dtype=np.uint8), 3)).reshape(16, 16, 3)
    result = v2.Compose(theirs)(PIL.Image.fromarray(values)).as_subclass(torch.Tensor)
    assert str(result.dtype) == f"torch.{compiled.table.dtype}"
    table = compiled.table.to_floats()
    expected = np.stack([table[c][values[:, :, c]] for c in range(3)])
    assert np.array_equal(result.to(torch.float32).numpy(), expected)
    # and our own spelling, in numpy, to the bit
    assert compile_transform(own.Compose(ours)).table == compiled.table
    # mixed
    assert compile_transform([*theirs[:1], *ours[1:]]).table == compiled.table


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_cast_table_is_torchs_cast(dtype: str) -> None:
    table = compile_transform(TAILS["usual"](v2)).table
    theirs = torch.from_numpy(table.to_floats().copy()).to(getattr(torch, dtype)).to(torch.float32).numpy()
    assert np.array_equal(table.cast_to(dtype).to_floats(), theirs)


def test_the_identity_needs_no_table() -> None:
    assert IDENTITY.encode_table() is None
    assert compile_transform(None).table is IDENTITY
    assert compile_transform([v2.ToImage()]).table.encode_table() is None
    assert compile_transform(TAILS["usual"](v2)).table.encode_table() is not None


OPS = {
    "RandomResizedCrop": lambda m: m.RandomResizedCrop(224),
    "RandomResizedCrop, all": lambda m: m.RandomResizedCrop((160, 200), (0.5, 1.0), (0.9, 1.1), antialias=True),
    "Resize short": lambda m: m.Resize(256),
    "Resize list": lambda m: m.Resize([256]),
    "Resize max_size": lambda m: m.Resize(256, max_size=300),
    "Resize both": lambda m: m.Resize((224, 192)),
    "CenterCrop": lambda m: m.CenterCrop(224),
    "CenterCrop both": lambda m: m.CenterCrop((224, 192)),
    "RandomHorizontalFlip": lambda m: m.RandomHorizontalFlip(),
    "RandomVerticalFlip": lambda m: m.RandomVerticalFlip(0.25),
}


@pytest.mark.parametrize("name", OPS)
def test_torchvision_and_our_spelling_make_the_same_plan(name: str) -> None:
    plans = [[op.plan() for op in compile_transform(OPS[name](module)).ops] for module in (v2, own, tv1)]
    assert plans[0] == plans[1] == plans[2]
    assert plans[0][0]["op"] == name.split()[0].rstrip(",")


def test_the_plan_of_each_op_written_out() -> None:
    plans = [op.plan() for op in compile_transform([build(own) for build in OPS.values()]).ops]
    ratio = [3 / 4, 4 / 3]
    bilinear = {"interpolation": "bilinear"}
    assert plans == [
        {"op": "RandomResizedCrop", "size": [224, 224], "scale": [0.08, 1.0], "ratio": ratio, **bilinear},
        {"op": "RandomResizedCrop", "size": [160, 200], "scale": [0.5, 1.0], "ratio": [0.9, 1.1], **bilinear},
        {"op": "Resize", "size": [256], "max_size": None, **bilinear},
        {"op": "Resize", "size": [256], "max_size": None, **bilinear},
        {"op": "Resize", "size": [256], "max_size": 300, **bilinear},
        {"op": "Resize", "size": [224, 192], "max_size": None, **bilinear},
        {"op": "CenterCrop", "size": [224, 224]},
        {"op": "CenterCrop", "size": [224, 192]},
        {"op": "RandomHorizontalFlip", "p": 0.5},
        {"op": "RandomVerticalFlip", "p": 0.25},
    ]


def test_nesting_is_flattened() -> None:
    nested = v2.Compose([v2.Compose([v2.Resize(9), v2.Compose([v2.CenterCrop(8)])]), v2.Identity(), v2.ToImage()])
    flat = compile_transform([own.Resize(9), own.CenterCrop(8), own.ToImage()])
    assert compile_transform(nested).ops == flat.ops
    assert compile_transform(torch.nn.Sequential(v2.Resize(9), v2.CenterCrop(8))).ops == flat.ops


USUAL = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
FLIPS = [v2.RandomHorizontalFlip(), v2.RandomVerticalFlip(0.25)]


@pytest.mark.parametrize(
    "mixed",
    [
        [v2.CenterCrop(8), v2.ToImage(), *FLIPS, *USUAL],
        [v2.ToImage(), v2.CenterCrop(8), *FLIPS, *USUAL],
        [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.CenterCrop(8), v2.Normalize(MEAN, STD), *FLIPS],
    ],
)
def test_what_only_moves_values_may_stand_behind_to_image(mixed: list[Any]) -> None:
    compiled, usual = (compile_transform(steps) for steps in (mixed, [v2.CenterCrop(8), *FLIPS, v2.ToImage(), *USUAL]))
    assert (compiled.ops, compiled.table) == (usual.ops, usual.table)


@pytest.mark.parametrize("size", [4, 5, 8, (3, 20), (21, 6), 40])
@pytest.mark.parametrize("step", ["CenterCrop", "RandomHorizontalFlip", "RandomVerticalFlip"])
def test_torchvision_moves_values_of_tensors_as_those_of_pictures(step: str, size: Any) -> None:
    import PIL.Image

    moved = v2.CenterCrop(size) if step == "CenterCrop" else getattr(v2, step)(1.0)
    for height, width in ((9, 14), (10, 13)):
        values = np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)
        picture = PIL.Image.fromarray(values)
        before, behind = (v2.Compose(steps)(picture) for steps in ([v2.ToImage(), moved], [moved, v2.ToImage()]))
        assert torch.equal(before, behind)


TYPES = {torch.Tensor: torch.float16, tv_tensors.Image: torch.float32, "others": None}


@pytest.mark.parametrize(
    ("conversion", "dtype"), [(v2.PILToTensor(), "float16"), (v2.ToImage(), "float32"), (tv1.PILToTensor(), "float16")]
)
def test_types_go_by_what_pictures_are_there(conversion: Any, dtype: str) -> None:
    compiled = compile_transform([conversion, v2.RandomErasing(1.0), v2.ToDtype(TYPES, scale=True)])
    assert compiled.table.dtype == dtype
    assert len(compiled.tail) == 2


def test_what_torchvision_passes_on_is_nothing() -> None:
    assert compile_transform([v2.ToPureTensor(), v2.CenterCrop(8)]) == compile_transform(v2.CenterCrop(8))
    assert own.RandomResizedCrop(8, scale=(0, 1.5)).scale == (0.0, 1.5)
    first = compile_transform([tv1.ToTensor(), tv1.Normalize(0.5, 0.25)])
    assert first.table.to_floats()[0][255] == 2


@pytest.mark.parametrize("weights", [models.ResNet50_Weights.IMAGENET1K_V1, models.ResNet50_Weights.IMAGENET1K_V2])
def test_the_preset_of_weights(weights: Any) -> None:
    import PIL.Image

    preset = weights.transforms()
    compiled = compile_transform(preset)
    (short,), (side,) = preset.resize_size, preset.crop_size
    assert compiled.ops == (own.Resize(short), own.CenterCrop(side))
    preset.resize_size = preset.crop_size = [16]  # the picture's own: what is left is arithmetic on values
    values = np.arange(16 * 16, dtype=np.uint8).reshape(16, 16, 1).repeat(3, 2)
    expected = preset(PIL.Image.fromarray(values)).reshape(3, 256)
    assert np.array_equal(compiled.table.to_floats(), expected.numpy())


class Doctored(v2.Resize):
    """A subclass may do anything."""


def mine(picture: Any) -> Any:
    return picture


def patched(transform: Any, name: str) -> Any:
    """The same object with a method of its own."""
    setattr(transform, name, mine)
    return transform


def hooked(transform: Any, before: bool) -> Any:
    """The same object with a hook of torch."""
    (transform.register_forward_pre_hook if before else transform.register_forward_hook)(lambda *_: None)
    return transform


@pytest.mark.parametrize("register", ["register_module_forward_pre_hook", "register_module_forward_hook"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_hook_on_all_modules_is_named(register: str, wrapped: bool) -> None:
    """It changes what torchvision makes: torch calls it for each transform that is a module."""

    def halved(module: Any, args: Any, made: Any = None) -> Any:
        seen.append(module)

    seen: list[Any] = []
    handle = getattr(torch.nn.modules.module, register)(partial(halved) if wrapped else halved)
    try:
        v2.Resize(8)(torch.zeros(3, 9, 9, dtype=torch.uint8))
        assert len(seen) == 1
        for transform in (v2.Resize(8), tv1.Resize(8), v2.Compose([v2.ToImage(), v2.Resize(8)])):
            with pytest.raises(UnsupportedTransformError, match=r"halved of .*test_transforms is a hook on .*all mod"):
                compile_transform(transform)
        assert len(seen) == 1
        compile_transform([own.Resize(8), own.ToImage()])
    finally:
        handle.remove()
    compile_transform(v2.Resize(8))


def test_observers_of_all_modules_are_let_be() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    import feedwater

    with FlopCounterMode(display=False), feedwater.stages():
        module = torch.nn.modules.module
        assert module._global_forward_hooks and module._global_forward_pre_hooks
        compile_transform(v2.Resize(8))


REPLACED = "Resize: write Resize, if it does no more than that. As it is: its {} was replaced, and code does not travel"
REFUSED = [
    *((patched(v2.Resize(8), name), REPLACED.format(name)) for name in ("forward", "transform", "make_params")),
    (patched(tv1.Resize(8), "forward"), REPLACED.format("forward")),
    (patched(v2.Compose([v2.Resize(8)]), "forward"), "Compose: its forward was replaced"),
    (v2.RandomApply([patched(v2.Resize(8), "_call_kernel")]), REPLACED.format("_call_kernel")),
    (patched(tv1.Compose([tv1.Resize(8)]), "__call__"), "Compose: its __call__ was replaced"),
    (patched(torch.nn.Sequential(v2.Resize(8)), "forward"), "Sequential: its forward was replaced"),
    ([v2.ToImage(), patched(v2.ToDtype({tv_tensors.Image: torch.float32}), "forward")], "ToDtype: .* its forward was"),
    (hooked(v2.Resize(8), True), "Resize: write Resize, if it does no more.* it has hooks, and code does not travel"),
    (hooked(v2.Compose([v2.Resize(8)]), False), "Compose: it has hooks"),
    (hooked(torch.nn.Identity(), False), "Identity: .* it has hooks"),
    ([v2.FiveCrop(8), v2.Lambda(mine)], r"Lambda after FiveCrop: crops come stacked, .B, 5, 3, h, w.: leave out"),
    ([v2.TenCrop(8), v2.RandomHorizontalFlip()], "RandomHorizontalFlip after TenCrop, which is done last"),
    ([v2.FiveCrop(8), v2.ToImage(), v2.RandomErasing()], "RandomErasing after FiveCrop"),
    (v2.RandomApply([v2.FiveCrop(20)]), "FiveCrop inside RandomApply, which is done last"),
    (tv1.AugMix(), r"write torchvision\.transforms\.v2\.AugMix"),
    (tv1.RandomCrop(8, 4, pad_if_needed=True, padding_mode="reflect"), r"v2\.RandomCrop, which pads once"),
    (v2.RandomIoUCrop(), "RandomIoUCrop: write RandomResizedCrop or RandomCrop: .* not there yet"),
    (v2.RandomApply([v2.Resize(8, antialias=False)]), "Resize.antialias=False. is not there"),
    (v2.MixUp(num_classes=2), "MixUp: pass batch_transform=MixUp"),
    (tv1.Lambda(mine), "Lambda: leave it out, if it makes pictures RGB, which they are. As it is: code of your own "),
    (v2.functional.horizontal_flip, "horizontal_flip: not there yet"),
    (models.detection.FasterRCNN_ResNet50_FPN_Weights.DEFAULT.transforms(), "ObjectDetection: not there yet"),
    (v2.RandomResizedCrop, "RandomResizedCrop is the class of a transform: write RandomResizedCrop.…."),
    ([own.CenterCrop, own.ToImage()], "CenterCrop is the class"),
    ("RandomResizedCrop(224)", "needs transform objects, got a str"),
    ({"size": 3}, "needs transform objects, got a dict"),
    (v2.Resize(8, interpolation=17), "interpolation=17.: needs nearest or"),
    (v2.RandomResizedCrop(8, antialias=False), "antialias=True"),
    (Doctored(8), "Doctored: write Resize, if it does no more than that. .*a subclass of Resize may do anything"),
    (mine, "transform mine: code of your own does not travel.*batch_transform"),
    (v2.Lambda(mine), "Lambda: leave it out, if it makes pictures RGB, which they are. As it is: code of your own "),
    (models.ResNet50_Weights.DEFAULT.transforms, r"partial: write weights\.transforms\(\), with the parentheses"),
    ([tv1.ToTensor(), v2.Resize(8)], "Resize after ToTensor works on floats, .* put it before"),
    ([v2.ToImage(), v2.Resize(8, interpolation="box")], "Put ToImage behind Resize"),
    ([v2.ToImage(), v2.Resize(8, interpolation="lanczos", antialias=False)], "needs True with lanczos"),
    (
        [tv1.ToTensor(), v2.Pad(3, fill=9)],
        "Pad after ToTensor puts fill=.9, 9, 9. around, which no 8-bit value becomes",
    ),
    ([tv1.ToTensor(), tv1.Normalize(MEAN, STD), tv1.CenterCrop(8)], "CenterCrop after Normalize puts zeros"),
    ([tv1.PILToTensor(), tv1.ColorJitter(0.4)], "write torchvision.transforms.v2.ColorJitter, or put it before"),
    ([tv1.PILToTensor(), tv1.RandomApply([tv1.Resize(8)])], "write torchvision.transforms.v2.Resize"),
    ([v2.ToDtype(torch.float32, scale=True), v2.ToImage()], "ToDtype needs a tensor: put ToImage"),
    ([v2.Normalize(MEAN, STD)], "Normalize needs a tensor"),
    ([v2.ToImage(), v2.Normalize(MEAN, STD)], "float"),
    ([own.ToImage(), own.Normalize(MEAN, STD)], "Normalize works on floats"),
    ([v2.ToImage(), v2.ToDtype(torch.int32)], "int32"),
    ([own.ToImage(), own.ToTensor()], "ToTensor after ToImage does nothing"),
    (3, "transform=3: needs transform objects. Is batch_size=3 meant"),
]


@pytest.mark.parametrize(("transform", "why"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_cannot_run_on_nodes_is_refused_by_name(transform: Any, why: str) -> None:
    with pytest.raises(UnsupportedTransformError, match=why) as caught:
        compile_transform(transform)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: own.CenterCrop(0), "CenterCrop.size=0"),
        (lambda: own.CenterCrop((1, 2, 3)), "positive whole number"),
        (lambda: own.CenterCrop(2.5), "positive whole number"),
        (lambda: own.RandomHorizontalFlip(1.5), "from 0 to 1"),
        (lambda: own.RandomResizedCrop(8, scale=(0.5, 0.1)), "scale"),
        (lambda: own.RandomResizedCrop(8, scale=(0.5, 1001)), "from 0 to 1000"),
        (lambda: own.RandomResizedCrop(8, ratio=(0, 1)), "ratio"),
        (lambda: own.RandomResizedCrop(8, ratio=1.0), "two numbers"),
        (lambda: own.Resize((8, 8), max_size=9), "one number"),
        (lambda: own.Resize(8, max_size=8), "above size"),
        (lambda: own.Normalize((1, 2), (1, 2, 3)), "one number or three"),
        (lambda: own.Normalize((0.5,), (0.5, 0.5)), "one number or three"),
        (lambda: own.RandAugment(generation=3), "generation"),
        (lambda: own.Views([own.CenterCrop(8)] * 17), "at most 16"),
        (lambda: own.Normalize((0, 0, 0), (1, 0, 1)), "divide by zero"),
        (lambda: own.Normalize([float("nan")] * 3, [1] * 3), r"Normalize.mean=.nan, nan, nan..: needs finite numbers"),
        (lambda: own.Normalize(0, float("inf")), r"Normalize.std=.inf,..: needs finite numbers"),
        (lambda: own.ToDtype("float64"), "float64"),
    ],
)
def test_arguments_of_our_own_are_checked(make: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        make()


i, f = np.int64, np.float32
SCALARS: list[tuple[Any, Any]] = [
    (own.Resize(i(5), max_size=i(9), interpolation=i(3)), own.Resize(5, max_size=9, interpolation=3)),
    (own.Resize((np.uint8(5), i(6))), own.Resize((5, 6))),
    (own.RandomResizedCrop(i(5), (f(0.25), 1), (f(0.5), i(1))), own.RandomResizedCrop(5, (0.25, 1), (0.5, 1))),
    (own.RandomHorizontalFlip(f(0.3)), own.RandomHorizontalFlip(float(f(0.3)))),
    (own.Pad(i(3), f(9)), own.Pad(3, 9)),
    (own.Pad([i(3), i(4)], [i(9), 1, f(2)]), own.Pad([3, 4], [9, 1, 2])),
    (own.RandomCrop(i(3), i(2), fill=i(1)), own.RandomCrop(3, 2, fill=1)),
    (own.RandomZoomOut(i(3), (f(1.5), i(2)), f(0.5)), own.RandomZoomOut(3, (1.5, 2), 0.5)),
    (own.RandomResize(i(3), i(5)), own.RandomResize(3, 5)),
    (own.RandomShortestSize(i(3), i(5)), own.RandomShortestSize(3, 5)),
    (own.RandomShortestSize([i(3), 4]), own.RandomShortestSize([3, 4])),
    (own.ScaleJitter([i(3), 4], [f(0.5), 1]), own.ScaleJitter([3, 4], [0.5, 1])),
    (own.RandomRotation(f(10), fill=f(3)), own.RandomRotation(10, fill=3)),
    (own.RandomRotation((i(-3), f(10)), center=(i(1), f(2))), own.RandomRotation((-3, 10), center=(1, 2))),
    (own.RandomAffine(i(9), shear=f(8), scale=(f(0.5), i(1))), own.RandomAffine(9, shear=8, scale=(0.5, 1))),
    (own.RandomPerspective(f(0.5), f(0.25)), own.RandomPerspective(0.5, 0.25)),
    (own.ElasticTransform(f(40), (i(3), f(4.5))), own.ElasticTransform(40, (3, 4.5))),
    (own.ColorJitter(f(0.4), (f(0.5), i(1))), own.ColorJitter(float(f(0.4)), (0.5, 1))),
    (own.RandomPosterize(i(3), f(0.5)), own.RandomPosterize(3, 0.5)),
    (own.RandomSolarize(i(3)), own.RandomSolarize(3)),
    (own.RandomErasing(f(0.5), (f(0.25), 1), value=f(3)), own.RandomErasing(0.5, (0.25, 1), value=3)),
    (own.GaussianBlur((i(3), i(5)), f(0.5)), own.GaussianBlur((3, 5), 0.5)),
    (own.GaussianNoise(f(0.5), i(1)), own.GaussianNoise(0.5, 1)),
    (own.JPEG((i(3), i(5))), own.JPEG((3, 5))),
    (own.JPEG(i(3)), own.JPEG(3)),
    (own.RandAugment(i(2), i(3), i(9)), own.RandAugment(2, 3, 9)),
    (own.AugMix(i(2), chain_depth=i(0), alpha=f(0.5)), own.AugMix(2, chain_depth=-1, alpha=0.5)),
    (own.CTAugment(i(1), f(0.5)), own.CTAugment(1, 0.5)),
    (own.RandomChoice([own.RandomInvert()], [f(2)]), own.RandomChoice([own.RandomInvert()])),
    (v2.Resize([i(5), i(6)]), own.Resize((5, 6))),
    (v2.RandomHorizontalFlip(f(0.3)), own.RandomHorizontalFlip(float(f(0.3)))),
    (v2.RandomRotation(f(10)), own.RandomRotation(10)),
    (v2.RandomResize(i(3), i(5)), own.RandomResize(3, 5)),
    (v2.RandAugment(2, i(3), i(9)), own.RandAugment(2, 3, 9)),
    (v2.RandomChoice([v2.RandomInvert()] * 2, [f(2), f(2)]), own.RandomChoice([own.RandomInvert()] * 2)),
    (v2.RandomApply([v2.RandomInvert()], f(0.3)), own.RandomApply([own.RandomInvert()], float(f(0.3)))),
]


@pytest.mark.parametrize(("numpys", "plain"), SCALARS)
def test_numpys_numbers_are_taken_as_pythons(numpys: Any, plain: Any) -> None:
    tensor = [own.ToImage()] if isinstance(plain, own.RandomErasing) else []
    plan = compile_transform([*tensor, numpys]).plan_ops()
    assert json.loads(json.dumps(plan)) == json.loads(json.dumps(compile_transform([*tensor, plain]).plan_ops()))


@pytest.mark.parametrize("make", [own.Resize, own.Pad, own.RandomHorizontalFlip, own.RandomRotation, own.JPEG])
def test_true_is_no_number(make: Any) -> None:
    with pytest.raises(UnsupportedTransformError, match=r"=True.: needs "):
        make(True)


@pytest.mark.parametrize("dtype", ["float32", "torch.float32", np.float32, torch.float32, np.dtype("float32")])
def test_a_type_may_be_spelled_in_any_way(dtype: Any) -> None:
    assert dtype_name(dtype) == "float32"


def test_compiling_draws_no_random_numbers_and_warns_of_nothing() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_transform(v2.Compose([v2.RandomResizedCrop(8), v2.RandomHorizontalFlip(), *TAILS["usual"](v2)]))
    assert torch.equal(before, torch.get_rng_state())


def test_the_probe_holds_every_value() -> None:
    assert np.array_equal(Pixels.all_values().values, np.tile(np.arange(256), (3, 1)))
