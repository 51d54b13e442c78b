"""Masks that move as their pictures do, with the real agent, against torchvision's tv_tensors.Mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from feedwater import Loader, Masks, Views, testing
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


def test_a_local_folder_of_masks_of_pictures_elsewhere_is_told_how_to_be_named(pair: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match=r"masks=.* is a folder of this machine, and the pictures are named as nodes"):
        Loader("all/pictures", [], masks=pair[1], nodes="127.0.0.1:1", batch_size=4)


VIEWS = Views(
    [
        [v2.RandomResizedCrop(32), v2.RandomHorizontalFlip(), COLOURS[0]],
        [v2.RandomAffine(30, fill=dict(FILL)), v2.RandomCrop(24, pad_if_needed=True, fill=9)],
    ]
)


def test_masks_of_views_are_torchvisions(pair: tuple[Path, Path]) -> None:
    """Each moves as its view does."""
    assert testing.assert_parity(VIEWS, pair[0], masks=pair[1], samples=6, epochs=2) == 12
    with Loader(pair[0], VIEWS, batch_size=4, masks=pair[1], shuffle=True) as loader:
        for images, masks in loader:
            assert [tuple(mask.shape[1:]) for mask in masks] == [(32, 32), (24, 24)]
            samples = loader.replay_batch(loader.last.position)
            for view in range(2):
                for image, mask, sample in zip(images[view], masks[view], samples, strict=True):
                    assert np.array_equal(mask, sample.views[view].mask)
                    assert np.array_equal(image.permute(1, 2, 0), sample.views[view].image)
    fields = ("mask", "image", "valid")
    with Loader(pair[0], VIEWS, batch_size=4, masks=pair[1], fields=fields, tail="valid") as loader:
        masks, images, valid = list(loader)[-1]
    assert valid.tolist() == [True, False, False, False]
    assert all(one[0].any() and not one[1:].any() for one in [*masks, *images])


def test_masks_on_the_gpu_are_those_of_the_cpu(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one picture or of views, with the type of a transform, and with rows that hold no sample."""
    from fake_cuda import FakeCuda
    from torch.utils._pytree import tree_leaves, tree_map

    from feedwater._device import runtime

    gpu = FakeCuda()
    monkeypatch.setattr("feedwater._config.check_built", lambda *_: None)
    monkeypatch.setattr(runtime, "find_runtime", lambda *_: gpu)
    kinds: dict[Any, Any] = {tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}
    options: dict[str, Any] = {"batch_size": 4, "masks": pair[1], "shuffle": True, "tail": "valid"}
    options["fields"] = ("mask", "image", "valid")
    for transform in (VIEWS, v2.Compose([SIZE, v2.ToImage(), v2.ToDtype(kinds, scale=True)])):
        made = []
        for device in ("cuda", None):
            with Loader(pair[0], transform, device=device, **options) as loader:
                made.append([tree_map(torch.clone, tuple(batch)) for batch in loader])
        for ours, theirs in zip(*(tree_leaves(batches) for batches in made), strict=True):
            assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)
        assert len(made[0]) == 3
    assert gpu.copied and not gpu.pageable


def test_views_and_masks_go_through_a_batch_transform(pair: tuple[Path, Path]) -> None:
    """torchvision's flip moves both; a row that holds no sample stays zeros."""
    fields, crops = ("image", "mask", "valid"), Views([v2.CenterCrop(32), v2.CenterCrop(24)])
    options: dict[str, Any] = {"batch_size": 2, "masks": pair[1], "fields": fields, "tail": "valid"}
    with Loader(pair[0], crops, **options) as loader:
        plain = list(loader)
    with Loader(pair[0], crops, batch_transform=v2.RandomHorizontalFlip(1), **options) as loader:
        for before, after in zip(plain, loader, strict=True):
            assert all(torch.equal(a.flip(-1), b) for a, b in zip(before[0] + before[1], after[0] + after[1]))


def cityscapes(folder: Path) -> tuple[Path, Path]:
    """Folders that are called, and look, as those of Cityscapes."""
    rng = np.random.default_rng(3)
    for number in range(6):
        city = f"city{number % 2}"
        name = f"{city}_{number:06}_000019"
        for kind in ("leftImg8bit", "gtFine"):
            (folder / kind / "train" / city).mkdir(parents=True, exist_ok=True)
        picture, truth = folder / "leftImg8bit/train" / city, folder / "gtFine/train" / city
        PIL.Image.fromarray(rng.integers(0, 256, (50, 70, 3), dtype=np.uint8)).save(picture / f"{name}_leftImg8bit.png")
        ids = np.kron(rng.integers(0, 34, (10, 14)), np.ones((5, 5))).astype(np.uint8)
        PIL.Image.fromarray(ids).save(truth / f"{name}_gtFine_labelIds.png")
        colours = np.stack([ids * 7, ids, 255 - ids], -1)
        PIL.Image.fromarray(np.concatenate([colours, np.full_like(ids, 255)[..., None]], -1)).save(
            truth / f"{name}_gtFine_color.png"
        )
        PIL.Image.fromarray(ids.astype(np.uint16) * 1000).save(truth / f"{name}_gtFine_instanceIds.png")
        (truth / f"{name}_gtFine_polygons.json").write_text("{}")
    return folder / "leftImg8bit" / "train", folder / "gtFine" / "train"


PALETTE = {(number * 7 % 256, number, 255 - number): number % 19 for number in range(30)}


@pytest.mark.parametrize(
    ("suffix", "told"),
    [
        ("_gtFine_labelIds", {}),
        ("_gtFine_labelIds", {"palette": {7: 0, 8: 1, 11: 2}, "others": 255}),
        ("_gtFine_color", {"palette": PALETTE, "others": 255}),
        ("_gtFine_color", {"palette": [(number * 7 % 256, number, 255 - number) for number in range(34)]}),
    ],
)
def test_masks_of_cityscapes(tmp_path: Path, suffix: str, told: dict[str, Any]) -> None:
    pictures, truth = cityscapes(tmp_path)
    masks = Masks(truth, suffix=suffix, picture_suffix="_leftImg8bit", **told)
    steps = v2.Compose([v2.RandomRotation(30, fill=dict(FILL)), v2.RandomCrop(32), v2.RandomHorizontalFlip()])
    assert testing.assert_parity(steps, pictures, masks=masks, samples=6) == 18


def test_colours_that_no_palette_names(tmp_path: Path) -> None:
    pictures, truth = cityscapes(tmp_path)
    masks = Masks(truth, suffix="_gtFine_color", picture_suffix="_leftImg8bit", palette=[(1, 2, 3)])
    said = r"has the colour \(\d+, \d+, \d+\), which is not in the palette"
    loader = Loader(pictures, v2.CenterCrop(32), masks=masks, batch_size=2)
    with loader, pytest.raises(SampleError, match=said):
        next(iter(loader))
    plain = Loader(pictures, v2.CenterCrop(32), masks=truth, batch_size=2)
    with plain, pytest.raises(DataError, match=r"_leftImg8bit.png has no mask.*feedwater.Masks\(folder, suffix=…"):
        next(iter(plain))


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"suffix": "_a/b"}, "suffix="),
        ({"suffix": 3}, "suffix=3"),
        ({"others": 255}, "there is none"),
        ({"palette": {}}, "names nothing"),
        ({"palette": [3]}, "is no colour"),
        ({"palette": {(1, 2): 3}}, "is no colour"),
        ({"palette": {(1, 2, 300): 3}}, "from 0 to 255"),
        ({"palette": {(1, 2, 3): 256}}, "from 0 to 255"),
        ({"palette": {(1, 2, 3): 4, 5: 6}}, "has one of them"),
        ({"palette": {1: 2}, "others": -1}, "from 0 to 255"),
    ],
)
def test_what_masks_cannot_be(told: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Masks("folder", **told)
