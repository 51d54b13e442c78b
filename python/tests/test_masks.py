"""Masks that move as their pictures do, with the real agent, against torchvision's tv_tensors.Mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from feedwater import Loader, NotYetError, Views, testing
from feedwater.errors import DataError, Error, PlanError, SampleError, UnsupportedTransformError
from feedwater.transforms import CTAugment

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")

pytestmark = pytest.mark.usefixtures("real")

FILL: dict[Any, Any] = {tv_tensors.Mask: 255, "others": 7}
SIZE = v2.Resize((40, 56))
COLOURS = [v2.ColorJitter(0.4, 0.4, 0.2, 0.1), v2.RandomPhotometricDistort(), v2.GaussianBlur(3), v2.RandomInvert()]
GEOMETRY = {
    "resized crop": [v2.RandomResizedCrop(48, interpolation=3)],
    "resize": [v2.Resize((50, 33))],
    "resize, nearest-exact": [v2.Resize((50, 33), interpolation=v2.InterpolationMode.NEAREST_EXACT)],
    "random resize": [v2.RandomResize(30, 90), v2.RandomCrop(40, pad_if_needed=True, fill=dict(FILL))],
    "shortest size": [v2.RandomShortestSize([40, 60, 80], max_size=120), v2.CenterCrop(64)],
    "jitter": [v2.ScaleJitter((60, 60)), v2.RandomCrop(48, padding=3, pad_if_needed=True, fill=9)],
    "flips": [v2.RandomHorizontalFlip(), v2.RandomVerticalFlip(), SIZE],
    "zoom out": [v2.RandomZoomOut(fill=dict(FILL), p=1), SIZE],
    "pad by type": [v2.Pad(3, fill={tv_tensors.Image: 5, tv_tensors.Mask: 6, "others": 8}), SIZE],
    "pad": [v2.Pad((3, 4, 5, 6), fill=dict(FILL)), v2.Pad(5, padding_mode="reflect"), SIZE],
    "rotation": [SIZE, v2.RandomRotation(180, interpolation=2, fill=dict(FILL))],
    "affine": [SIZE, v2.RandomAffine(30, (0.1, 0.3), (0.5, 1.5), (-20, 20, -10, 30), interpolation=2, fill=dict(FILL))],
    "perspective": [SIZE, v2.RandomPerspective(0.6, p=1, fill=dict(FILL))],
    "containers": [
        SIZE,
        v2.RandomApply([v2.RandomRotation(30, fill=dict(FILL)), COLOURS[0]]),
        v2.RandomChoice([v2.RandomHorizontalFlip(1), v2.RandomAffine(40), COLOURS[1]]),
        v2.RandomOrder([v2.RandomVerticalFlip(), v2.RandomPerspective(p=0.7), v2.RandomSolarize(128)]),
    ],
    "colours": [*COLOURS, SIZE, v2.JPEG((50, 90)), v2.RandomGrayscale(), v2.RandomAdjustSharpness(2)],
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Pictures in one folder, their masks in another: with palettes of all depths, grey, interlaced or not."""
    images, masks = (tmp_path_factory.mktemp(name) for name in ("images", "masks"))
    for number in range(9):
        rng = np.random.default_rng(number)
        height, width = (int(side) for side in rng.integers(60, 160, 2))
        picture = PIL.Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)).resize((width, height), 3)
        picture.save(
            images / f"{number}.x.jpg" if number == 8 else images / f"{number}.{'jpg' if number % 2 else 'png'}"
        )
        most = (256, 2, 4, 16, 21)[number % 5]
        classes = np.kron(rng.integers(0, most, (height // 4 + 1, width // 4 + 1)), np.ones((4, 4)))
        mask = PIL.Image.fromarray(classes[:height, :width].astype(np.uint8), "L" if number == 7 else "P")
        if number != 7:
            mask.putpalette(rng.integers(0, 256, 3 * most, dtype=np.uint8).tobytes())
        name = "8.x.png" if number == 8 else f"{number}.png"
        mask.save(masks / name, **({"bits": {2: 1, 4: 2, 16: 4}[most]} if most in (2, 4, 16) and number != 7 else {}))
    return images, masks


BEHIND_TO_IMAGE = ("pad by type", "containers")


@pytest.mark.parametrize(("name", "place"), [(n, "pil") for n in GEOMETRY] + [(n, "tensor") for n in BEHIND_TO_IMAGE])
def test_masks_are_torchvisions(pair: tuple[Path, Path], name: str, place: str) -> None:
    steps = [v2.ToImage(), *GEOMETRY[name]] if place == "tensor" else GEOMETRY[name]
    assert testing.assert_parity(v2.Compose(steps), pair[0], masks=pair[1], samples=6, epochs=2) == 12


@pytest.mark.parametrize("fill", [1, 0.5, {tv_tensors.Image: 1, "others": 7}])
def test_what_becomes_a_colour_of_floats_is_not_put_around_masks(pair: tuple[Path, Path], fill: Any) -> None:
    """Behind ToDtype a picture's 255 is 1; a mask's 1 is 1."""
    steps = [SIZE, v2.ToImage(), v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)]
    if fill != 0.5:
        assert testing.assert_parity(v2.Compose([*steps, v2.Pad(3, fill=fill)]), pair[0], masks=pair[1], samples=3) == 9
        return
    with pytest.raises(UnsupportedTransformError, match="no 8-bit value becomes"):
        Loader(pair[0], v2.Compose([*steps, v2.Pad(3, fill=fill)]), masks=pair[1], batch_size=2)


def test_masks_cannot_hold_what_is_below_zero(pair: tuple[Path, Path]) -> None:
    """torchvision raises for it too."""
    steps = [SIZE, v2.ToImage(), v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)]
    steps += [v2.Normalize([0.5], [0.5])]
    inside = v2.RandomApply([v2.Pad(3, fill=-1.0)], p=1)
    assert "mask_fill" not in str(Loader(pair[0], v2.Compose([*steps, inside]), batch_size=2)._config.to_plan())
    with pytest.raises(UnsupportedTransformError, match=r"around masks as it is, .* say what they get"):
        Loader(pair[0], v2.Compose([*steps, inside]), masks=pair[1], batch_size=2)
    said = v2.Pad(3, fill={tv_tensors.Mask: 7, "others": -1.0})
    assert testing.assert_parity(v2.Compose([*steps, said]), pair[0], masks=pair[1], samples=3) == 9


def test_elastic_moves_masks_as_nearest_pictures(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    """Its noise cannot be handed to torchvision here: a picture that is its own mask, moved by nearest, stays so."""
    grey = tmp_path / "grey"
    grey.mkdir()
    for mask in pair[1].iterdir():
        PIL.Image.fromarray(np.array(PIL.Image.open(mask), np.uint8)).save(grey / mask.name)
    steps = [v2.CenterCrop((60, 64)), v2.ElasticTransform(interpolation=v2.InterpolationMode.NEAREST, fill=3)]
    with Loader(grey, v2.Compose(steps), batch_size=9, masks=grey) as loader:
        images, masks = next(iter(loader))
    assert torch.equal(images[:, 1], masks)


def test_batches(pair: tuple[Path, Path]) -> None:
    train = v2.Compose([v2.RandomResizedCrop(64), *COLOURS, v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    fields = {"image": "x", "mask": "y", "index": "i", "valid": "v"}
    with Loader(pair[0], train, batch_size=4, masks=pair[1], shuffle=True) as loader:
        for images, masks in loader:
            assert (images.dtype, tuple(images.shape[1:])) == (torch.float32, (3, 64, 64))
            assert (masks.dtype, tuple(masks.shape[1:])) == (torch.uint8, (64, 64))
            samples = loader.replay_batch(loader.last.position)
            for image, mask, sample in zip(images, masks, samples, strict=False):
                assert np.array_equal(mask, sample.mask)
                assert torch.equal(image, torch.from_numpy(sample.image).permute(2, 0, 1) * np.float32(1 / 255))
        assert "nearest" in loader.explain()
        assert loader.preview(samples=1, epochs=1).png
    with Loader(pair[0], v2.CenterCrop(32), batch_size=4, masks=pair[1], fields=fields, tail="valid") as loader:
        last = list(loader)[-1]
    assert last["v"].tolist() == [True, False, False, False]
    assert last["y"][0].any() and not last["y"][1:].any()


def test_nodes_and_resume(pair: tuple[Path, Path], nodes: Any) -> None:
    address = nodes.start(pair[0].parent, name="all")
    train = v2.Compose([v2.RandomResizedCrop(48), v2.RandomHorizontalFlip()])
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True}
    with Loader(pair[0], train, masks=pair[1], **options) as loader:
        expected = [(images.clone(), masks.clone()) for images, masks in loader]
    with Loader(f"all/{pair[0].name}", train, masks=f"all/{pair[1].name}", nodes=address, **options) as loader:
        first = next(iter(loader))
        state = loader.state_dict()
    with Loader(f"all/{pair[0].name}", train, masks=f"all/{pair[1].name}", nodes=address, **options) as loader:
        loader.load_state_dict(state)
        got = [first, *loader]
    with Loader(pair[0], train, masks=pair[1], nodes=address, **options) as loader:  # found by their fingerprints
        found = list(loader)
    for (images, masks), *others in zip(expected, got, found, strict=True):
        assert all(torch.equal(image, images) and torch.equal(mask, masks) for image, mask in others)


def test_class_folders_have_masks_too(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for name, source in (("images", pair[0]), ("masks", pair[1])):
        (tmp_path / name / "train").mkdir(parents=True)
        for file in source.iterdir():
            (tmp_path / name / "train" / file.name).symlink_to(file)
    with Loader(tmp_path / "images", v2.CenterCrop(32), batch_size=9, masks=tmp_path / "masks") as loader:
        tree = next(iter(loader))
    with Loader(pair[0], v2.CenterCrop(32), batch_size=9, masks=pair[1]) as loader:
        flat = next(iter(loader))
    assert all(torch.equal(a, b) for a, b in zip(tree, flat, strict=True))


def test_a_missing_mask_names_both_paths(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    masks = tmp_path / "some"
    masks.mkdir()
    for file in sorted(pair[1].iterdir())[1:]:
        (masks / file.name).symlink_to(file)
    with Loader(pair[0], v2.CenterCrop(32), batch_size=4, masks=masks) as loader, pytest.raises(DataError) as error:
        next(iter(loader))
    assert str(pair[0] / "0.png") in str(error.value)
    assert f"{masks}/0.png" in str(error.value)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        *(
            (PIL.Image.new(mode, (50, 60)), r"palette or 8-bit grey\. Save .*fromarray\(ids.astype\(numpy.uint8\)\)")
            for mode in ("RGB", "I;16", "LA")
        ),
        (PIL.Image.new("L", (60, 50)), r'60×50 pixels, its picture 50×60\. Pass on_error="skip"'),
    ],
)
def test_masks_that_are_none(tmp_path: Path, mask: Any, message: str) -> None:
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    PIL.Image.new("RGB", (50, 60)).save(tmp_path / "images" / "a.jpg")
    mask.save(tmp_path / "masks" / "a.png")
    loader = Loader(tmp_path / "images", v2.CenterCrop(32), batch_size=1, masks=tmp_path / "masks")
    with loader, pytest.raises(SampleError, match=message) as error:
        next(iter(loader))
    assert ("on_error" in str(error.value)) == (mask.size == (60, 50))


def test_masks_get_the_type_that_a_transform_gives_them(pair: tuple[Path, Path]) -> None:
    kinds: dict[Any, Any] = {tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}
    plain, typed = (
        Loader(pair[0], v2.Compose([SIZE, v2.ToImage(), *more]), masks=pair[1], batch_size=4)
        for more in ([], [v2.ToDtype(kinds, scale=True)])
    )
    for (_, mask), (image, wide) in zip(plain, typed, strict=True):
        assert (mask.dtype, wide.dtype, image.dtype) == (torch.uint8, torch.int64, torch.float32)
        assert torch.equal(mask.long(), wide) and wide.is_contiguous()


@pytest.mark.parametrize(
    ("transform", "error", "message"),
    [
        (v2.Resize(40), PlanError, r"differ in size, .* mean CenterCrop\(\(512, 512\)\), RandomR.*\) or Resize\(\(512"),
        (Views([SIZE]), NotYetError, "with Views"),
        (v2.Compose([SIZE, v2.Pad(1, fill={tv_tensors.Mask: -1})]), UnsupportedTransformError, "from 0 to 255"),
    ],
)
def test_what_cannot_be(pair: tuple[Path, Path], transform: Any, error: type[Error], message: str) -> None:
    with pytest.raises(error, match=message), Loader(pair[0], transform, batch_size=2, masks=pair[1]) as loader:
        next(iter(loader))


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (v2.RandAugment(), "RandAugment does not work on masks"),
        (v2.AutoAugment(), "AutoAugment does not work on masks"),
        (v2.TrivialAugmentWide(), "TrivialAugmentWide does not work on masks"),
        (v2.AugMix(), "AugMix does not work on masks"),
        (CTAugment(), "CTAugment does not work on masks"),
        (v2.TenCrop(20), "TenCrop does not work on masks"),
        (v2.RandomRotation(9, expand=True), "expand makes masks of another size"),
        (v2.RandomApply([v2.RandomRotation(9, expand=True)]), "expand makes masks of another size"),
        (v2.RandomCrop(20, padding=2, fill=(1, 2, 3)), "three numbers, and masks have one"),
        (v2.RandomAffine(20, fill=(1, 2, 3)), "three numbers, and masks have one"),
    ],
)
@pytest.mark.parametrize("behind", [False, True])
def test_what_masks_cannot_follow_is_refused_at_construction(
    pair: tuple[Path, Path], transform: Any, message: str, behind: bool
) -> None:
    steps = [SIZE, v2.ToImage(), transform] if behind and not isinstance(transform, CTAugment) else [SIZE, transform]
    with pytest.raises(UnsupportedTransformError, match=message):
        Loader(pair[0], v2.Compose(steps), batch_size=2, masks=pair[1])


def test_flat_folders_need_masks(pair: tuple[Path, Path]) -> None:
    with Loader(pair[0], SIZE, batch_size=2) as loader, pytest.raises(DataError, match="each class needs a folder"):
        next(iter(loader))
    with pytest.raises(ValueError, match=r"not their masks: leave it out, .* rotate the files once"):
        Loader(pair[0], SIZE, batch_size=2, masks=pair[1], apply_exif=True)
    with pytest.raises(ValueError, match="masks=folder"):
        Loader(pair[0], SIZE, batch_size=2, fields=("image", "mask"))
    with pytest.raises(TypeError, match="masks="):
        Loader(pair[0], SIZE, batch_size=2, masks=3)
    with pytest.raises(NotYetError, match="python= together with masks="):  # before anything about the folder
        Loader(pair[0], SIZE, batch_size=2, masks="/nowhere", python=lambda sample, rng: sample)


def test_a_local_folder_of_masks_of_pictures_elsewhere_is_told_how_to_be_named(pair: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match=r"masks=.* is a folder of this machine, and the pictures are named as nodes"):
        Loader("all/pictures", [], masks=pair[1], nodes="127.0.0.1:1", batch_size=4)
