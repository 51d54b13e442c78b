"""feedwater.testing: it finds equality, and a single value that is off by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from feedwater import Loader, testing
from feedwater.errors import SampleError, UnsupportedTransformError
from feedwater.transforms import CTAugment

torch = pytest.importorskip("torch")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")
v2 = pytest.importorskip("torchvision.transforms.v2")

import reference  # noqa: E402

pytestmark = pytest.mark.usefixtures("real")

TRAINING = v2.Compose(
    [
        v2.RandomResizedCrop(64, interpolation=3),
        v2.RandomHorizontalFlip(),
        v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
        v2.RandomChoice([v2.RandomRotation(20), v2.RandomSolarize(128, p=1.0), torch.nn.Identity()]),
        v2.RandomOrder([v2.RandomGrayscale(0.5), v2.RandomInvert()]),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5], [0.5]),
        v2.RandomErasing(),
    ]
)
ON_TENSORS = v2.Compose(
    [
        v2.ToImage(),
        v2.RandomResizedCrop(64),
        v2.RandomHorizontalFlip(),
        v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
        v2.RandomChoice([v2.RandomRotation(20), v2.RandomSolarize(128, p=1.0), torch.nn.Identity()]),
        v2.RandomGrayscale(0.2),
        v2.RandomApply([v2.GaussianBlur(7)]),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5], [0.5]),
    ]
)
CROPS = v2.Compose([v2.Resize((70, 80)), v2.TenCrop(64), v2.ToImage()])
POLICIES = v2.Compose([v2.Resize(64), v2.RandAugment(), v2.TrivialAugmentWide(), v2.AutoAugment()])
POLICIES_ON_TENSORS = v2.Compose([v2.Resize(64), v2.AugMix(), v2.ToImage(), v2.RandAugment()])


@pytest.mark.parametrize("transform", [TRAINING, ON_TENSORS, CROPS, POLICIES, POLICIES_ON_TENSORS])
@pytest.mark.usefixtures("reference_arithmetic")
def test_equal(photos: Path, transform: Any) -> None:
    assert testing.assert_parity(transform, photos, samples=7, epochs=3) == 21


FLIPS = v2.Compose([v2.RandomHorizontalFlip(1), v2.RandomVerticalFlip(1)])
NESTED = {
    "apply": v2.RandomApply([v2.Compose([v2.RandomRotation(30), v2.ColorJitter(0.5)])], p=1.0),
    "choice": v2.RandomChoice([FLIPS, v2.RandomInvert(1), torch.nn.Identity()]),
    "order": v2.RandomOrder([v2.Compose([FLIPS, v2.RandomRotation(9)]), torch.nn.Identity(), v2.RandomSolarize(99)]),
    "deeper": v2.RandomOrder([v2.Compose([v2.RandomApply([v2.Compose([FLIPS, v2.RandomInvert()])]), FLIPS]), FLIPS]),
}


@pytest.mark.parametrize("name", NESTED)
def test_compose_inside_of_what_draws_among_transforms(photos: Path, name: str) -> None:
    assert testing.assert_parity(v2.Compose([v2.Resize(64), NESTED[name]]), photos, samples=3, epochs=4) == 12


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """One value of each picture is another one."""
    replay = Loader.replay

    def spoil(loader: Any, index: int, epoch: int) -> Any:
        sample = replay(loader, index, epoch)
        sample.image[3, 4, 1] ^= 1
        return sample

    monkeypatch.setattr(Loader, "replay", spoil)


@pytest.mark.usefixtures("spoilt")
def test_one_value_off_by_one(photos: Path) -> None:
    with pytest.raises(AssertionError, match=r"in epoch 0: 1 of 12288 values differ, by up to 1\. Drawn: \["):
        testing.assert_parity(v2.RandomResizedCrop(64), photos, samples=3)
    assert testing.assert_parity(v2.RandomResizedCrop(64), photos, samples=3, epochs=1, tolerance=1) == 3


TURNED = v2.RandomApply([v2.Compose([v2.RandomInvert(), v2.RandomRotation(9, fill={tv_tensors.Mask: 9, "others": 0})])])


@pytest.mark.parametrize(
    ("fused", "steps", "hint"),
    [
        (False, [v2.ToImage(), TURNED], True),
        (False, [v2.ToImage(), v2.RandAugment()], True),
        (False, [v2.AugMix()], True),
        (False, [TURNED, v2.ToImage()], False),
        (True, [v2.ToImage(), TURNED], False),
    ],
)
@pytest.mark.usefixtures("spoilt", "reference_arithmetic")
def test_a_processor_whose_torch_warps_otherwise_is_named(
    photos: Path, monkeypatch: pytest.MonkeyPatch, fused: bool, steps: list[Any], hint: bool
) -> None:
    monkeypatch.setattr(testing, "_fuses_products", lambda: fused)
    with pytest.raises(AssertionError, match=r"1 of 12288 values differ, by up to 1\.") as error:
        testing.assert_parity(v2.Compose([v2.Resize((64, 64)), *steps]), photos, samples=1, epochs=1)
    assert ("tolerance=1 allows" in str(error.value)) == hint


def test_what_torch_does_with_sums_of_products_is_seen() -> None:
    assert testing._fuses_products() == reference.fused()
    with reference.arithmetic():
        assert testing._fuses_products()


PURE = v2.PILToTensor()
BY_TYPE: dict[str, list[Any]] = {
    "image": [PURE, v2.Pad(4, fill={tv_tensors.Image: 127, "others": 0})],
    "tensor": [PURE, v2.Pad(4, fill={torch.Tensor: 127, "others": 0})],
    "to_image": [v2.ToImage(), v2.Pad(4, fill={torch.Tensor: 127, "others": 0})],
    "pil": [v2.Pad(4, fill={PIL.Image.Image: 127, "others": 0}), PURE],
    "augmix": [v2.AugMix(fill={PIL.Image.Image: 255, "others": 0})],
}


@pytest.mark.parametrize("name", BY_TYPE)
@pytest.mark.usefixtures("reference_arithmetic")
def test_fills_go_by_the_type_that_pictures_have_there(photos: Path, name: str) -> None:
    assert testing.assert_parity(v2.Compose([v2.Resize((40, 50)), *BY_TYPE[name]]), photos, samples=4) == 12


def test_colours_of_floats_are_compared_as_what_becomes_them(photos: Path) -> None:
    floats = v2.ToDtype(torch.float32, scale=True)
    steps = [v2.Resize((40, 50)), v2.ToImage(), floats, v2.Pad(4, fill=1.0), v2.RandomZoomOut(fill=1.0, p=1)]
    assert testing.assert_parity(v2.Compose(steps), photos, samples=3) == 9


def test_presets_of_weights_are_compared(photos: Path) -> None:
    presets = pytest.importorskip("torchvision.transforms._presets")
    assert testing.assert_parity(presets.ImageClassification(crop_size=48, resize_size=60), photos, samples=3) == 9


def test_a_sample_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "class").mkdir()
    PIL.Image.new("RGB", (20, 20)).save(tmp_path / "class" / "small.png")
    with pytest.raises(AssertionError, match=r"class/small.png in epoch 0: .*RandomCrop") as told:
        testing.assert_parity(v2.RandomCrop(64), tmp_path)
    assert "on_error" not in str(told.value)
    with Loader(tmp_path, v2.RandomCrop(64), batch_size=1) as loader:
        error = loader.replay(0).error
        assert 'on_error="skip"' in str(error) and "replay" not in str(error)
        with pytest.raises(SampleError, match=r"loader\.replay\(0\) to look"):
            next(iter(loader))


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"samples": 0}, ValueError, "samples=0: needs to be 1 or more"),
        ({"epochs": -3}, ValueError, "epochs=-3: needs to be 1 or more"),
        ({"samples": 2.5}, TypeError, "samples=2.5: needs a whole number"),
        ({"tolerance": -1}, ValueError, "tolerance=-1: needs to be 0 to 255"),
        ({"folder": torch.utils.data.TensorDataset()}, TypeError, "folder=.*: pass the path of a folder"),
    ],
)
def test_nothing_is_compared_without_numbers_that_say_what(
    photos: Path, arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        testing.assert_parity(v2.CenterCrop(8), **{"folder": photos, **arguments})


def test_what_cannot_be_repeated(photos: Path) -> None:
    v1 = pytest.importorskip("torchvision.transforms")
    with pytest.raises(UnsupportedTransformError, match=r"pass torchvision\.transforms\.v2\.RandomRotation"):
        testing.assert_parity(v1.RandomRotation(10), photos, samples=3)
    with pytest.raises(UnsupportedTransformError, match=r"GaussianNoise cannot be repeated"):
        testing.assert_parity(v2.Compose([v2.Resize(64), v2.ToImage(), v2.GaussianNoise()]), photos, samples=3)
    with pytest.raises(UnsupportedTransformError, match=r"CTAugment cannot be compared"):
        testing.assert_parity([v2.Resize(64), CTAugment()], photos, samples=3)
    with pytest.raises(UnsupportedTransformError, match=r"ElasticTransform cannot be repeated"):
        testing.assert_parity(v2.Compose([v2.Resize(64), v2.ElasticTransform()]), photos, samples=3)
