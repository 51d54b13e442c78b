"""Libraries that a program changes under its data sets and transforms: heard as by a DataLoader, or refused by name."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import PIL.Image
import PIL.ImageFile
import PIL.ImageOps
import pytest
from conftest import make_photos

import feedwater
from feedwater import Loader
from feedwater.transforms import CenterCrop

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
datasets = pytest.importorskip("torchvision.datasets")
v1 = pytest.importorskip("torchvision.transforms")
v2 = pytest.importorskip("torchvision.transforms.v2")
from torch.utils.data import ConcatDataset, Subset  # noqa: E402
from torch.utils.data._utils import collate  # noqa: E402
from torchvision.datasets import folder as module  # noqa: E402


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 pictures of five classes."""
    return make_photos(tmp_path_factory.mktemp("root"), 20)


def black(path: str) -> PIL.Image.Image:
    """Another picture than the file's."""
    return PIL.Image.new("RGB", (300, 300))


def wrapped(function: Any) -> Any:
    """A wrapper that has the names of what it wraps."""
    return functools.wraps(function)(lambda *args, **kwargs: function(*args, **kwargs))


FUNCTIONS = collate.default_collate_fn_map
READERS: list[tuple[Any, str, Any, str]] = [
    (module, "pil_loader", black, r"folder\.pil_loader"),
    (module, "pil_loader", wrapped(module.pil_loader), r"folder\.pil_loader"),
    (module, "pil_loader", functools.partial(black), r"folder\.pil_loader"),
    (module, "pil_loader", mock.MagicMock(), r"folder\.pil_loader"),
    (module, "default_loader", black, r"folder\.default_loader"),
    (module, "open", open, r"folder\.open"),
    (module, "Image", mock.MagicMock(), r"folder\.Image"),
    (torchvision, "get_image_backend", lambda: "PIL", r"torchvision\.get_image_backend"),
    (torchvision, "_image_backend", "accimage", r"image backend, which is 'accimage'"),
    (datasets.ImageFolder, "__getitem__", lambda self, at: (black(""), 0), r"ImageFolder\.__getitem__"),
    (datasets.DatasetFolder, "__getitem__", wrapped(datasets.DatasetFolder.__getitem__), r"ImageFolder\.__getitem__"),
    (datasets.ImageFolder, "__getitems__", lambda self, at: [], r"ImageFolder\.__getitems__"),
    (torch.utils.data.Dataset, "__getitems__", lambda self, at: [], r"ImageFolder\.__getitems__"),
    (PIL.Image, "open", black, r"PIL\.Image\.open"),
    (PIL.Image.Image, "convert", wrapped(PIL.Image.Image.convert), r"PIL\.Image\.Image\.convert"),
    ("PIL.JpegImagePlugin.JpegImageFile", "_open", lambda self: None, r"JpegImagePlugin\.JpegImageFile\._open"),
    ("PIL.ImageFile.ImageFile", "load", wrapped(len), r"ImageFile\.ImageFile\.load"),
]


def owner_of(named: Any) -> Any:
    """The thing itself, or a class by its name, whose module may have to be imported."""
    if not isinstance(named, str):
        return named
    home, _, name = named.rpartition(".")
    return getattr(importlib.import_module(home), name)


@pytest.mark.parametrize(("owner", "name", "other", "said"), READERS)
def test_what_reads_an_image_folder_and_was_replaced_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, other: Any, said: str
) -> None:
    folder = datasets.ImageFolder(root)
    monkeypatch.setattr(owner_of(owner), name, other, raising=False)
    for source in (folder, Subset(folder, [0])):
        with pytest.raises(TypeError, match=f"{said}.* was replaced"):
            Loader(source, CenterCrop(8), batch_size=2)


SUBSETS: list[tuple[Any, str, Any, str]] = [
    (Subset, "__getitem__", lambda self, at: (black(""), 7), r"Subset\.__getitem__"),
    (Subset, "__getitems__", wrapped(Subset.__getitems__), r"Subset\.__getitems__"),
    (Subset, "__len__", lambda self: 1, r"Subset\.__len__"),
    (Subset, "__getitem__", mock.MagicMock(), r"Subset\.__getitem__"),
]


@pytest.mark.parametrize(("owner", "name", "other", "said"), SUBSETS)
def test_what_reads_a_subset_and_was_replaced_is_named(
    real: str, root: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, other: Any, said: str
) -> None:
    folder = datasets.ImageFolder(root)
    table = feedwater.Table(folder.samples)
    loader = Loader(Subset(folder, [1, 2]), CenterCrop(8), batch_size=2)
    monkeypatch.setattr(owner, name, other)
    for source in (folder, table):
        for subset in (
            Subset(source, [1, 2]),
            Subset(Subset(source, [1, 2]), [0]),
            ConcatDataset([Subset(folder, [0])]),
        ):
            with pytest.raises(TypeError, match=f"{said} was replaced"):
                Loader(subset, CenterCrop(8), batch_size=2)
    with pytest.raises(TypeError, match=f"{said} was replaced"):
        next(iter(loader))


def test_what_one_subset_reads_by_is_named(real: str, root: Path) -> None:
    subset = Subset(datasets.ImageFolder(root), [1, 2])
    loader = Loader(subset, CenterCrop(8), batch_size=2)
    subset.__getitems__ = lambda places: [(black(""), 7) for _ in places]
    for attempt in (lambda: Loader(subset, CenterCrop(8), batch_size=2), lambda: next(iter(loader))):
        with pytest.raises(TypeError, match="__getitems__ of this Subset was replaced"):
            attempt()
    subset.__getitems__ = None  # a DataLoader asks for samples one by one then
    assert next(iter(loader))[1].tolist() == [0, 0]


def test_what_reads_data_sets_in_a_row_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = datasets.ImageFolder(root)
    row = ConcatDataset([Subset(folder, [0, 1]), Subset(folder, [2])])
    for name in ("__getitem__", "__len__"):
        with monkeypatch.context() as patch:
            patch.setattr(ConcatDataset, name, lambda *told: 1)
            with pytest.raises(TypeError, match=rf"ConcatDataset\.{name} was replaced"):
                Loader(row, CenterCrop(8), batch_size=2)
    row.__getitems__ = lambda places: [(black(""), 7) for _ in places]
    with pytest.raises(TypeError, match="__getitems__ of this ConcatDataset was replaced"):
        Loader(row, CenterCrop(8), batch_size=2)
    del row.__getitems__
    row.datasets.append(Subset(folder, [3]))
    with pytest.raises(feedwater.DataError, match=r"end at samples \[2, 3, 4\], and its cumulative_sizes are \[2, 3\]"):
        Loader(row, CenterCrop(8), batch_size=2)


COLLATE: list[tuple[str, Any, str]] = [
    ("default_collate", wrapped(collate.default_collate), r"collate\.default_collate"),
    ("collate", lambda *told, **options: None, r"collate\.collate"),
    ("default_collate_fn_map", {**FUNCTIONS, torch.Tensor: wrapped(len)}, r"default_collate_fn_map\[Tensor\]"),
    ("default_collate_fn_map", {**FUNCTIONS, int: functools.partial(print)}, r"default_collate_fn_map\[int\]"),
]


@pytest.mark.parametrize(("name", "other", "said"), COLLATE)
def test_what_makes_batches_and_was_replaced_is_named(
    real: str, root: Path, monkeypatch: pytest.MonkeyPatch, name: str, other: Any, said: str
) -> None:
    folder = datasets.ImageFolder(root)
    loader = Loader(folder, CenterCrop(8), batch_size=2)
    monkeypatch.setattr(collate, name, other)
    for attempt in (lambda: Loader(Subset(folder, [0]), CenterCrop(8), batch_size=2), lambda: next(iter(loader))):
        with pytest.raises(TypeError, match=f"{said} was replaced, which makes batches"):
            attempt()


def test_how_batches_are_made_of_a_programs_own_types_is_its_own_affair(root: Path) -> None:
    class Graph: ...

    folder = datasets.ImageFolder(root)
    with mock.patch.dict(collate.default_collate_fn_map, {Graph: lambda *told, **options: None}):
        Loader(folder, CenterCrop(8), batch_size=2)


def test_what_reads_by_registries_of_pillow_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PIL.Image.init()
    folder = datasets.ImageFolder(root)
    with monkeypatch.context() as patch:
        patch.setitem(PIL.Image.OPEN, "JPEG", (lambda file, name: black(""), None))
        with pytest.raises(TypeError, match=r"opener of JPEG in PIL\.Image\.OPEN was replaced"):
            Loader(folder, CenterCrop(8), batch_size=2)
    monkeypatch.setitem(PIL.Image.DECODERS, "jpeg", type("Mine", (), {}))
    with pytest.raises(TypeError, match=r"decoder 'jpeg' in PIL\.Image\.DECODERS was replaced"):
        Loader(folder, CenterCrop(8), batch_size=2)


def test_a_loader_of_the_folders_own_that_copies_names_is_told(root: Path) -> None:
    folder = datasets.ImageFolder(root, loader=wrapped(module.default_loader))
    with pytest.raises(TypeError, match="loader of its own"):
        Loader(folder, CenterCrop(8), batch_size=2)


def test_what_is_replaced_after_the_loader_was_made_is_told_by_the_next_pass(
    real: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Loader(datasets.ImageFolder(root), CenterCrop(8), batch_size=2) as loader:
        assert next(iter(loader)) is not None
        monkeypatch.setattr(module, "pil_loader", black)
        with pytest.raises(TypeError, match=r"pil_loader was replaced"):
            next(iter(loader))


def test_a_folder_by_path_is_read_as_it_is_whatever_was_replaced(
    real: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "pil_loader", black)
    with Loader(root, CenterCrop(8), batch_size=2) as loader:
        assert next(iter(loader)) is not None


TRANSFORMS: list[tuple[Any, str, Any, str]] = [
    (v2.RandomHorizontalFlip, "transform", lambda self, picture, params: picture, r"RandomHorizontalFlip\.transform"),
    (v2.RandomHorizontalFlip, "forward", lambda self, picture: picture, r"RandomHorizontalFlip\.forward"),
    (v2.Transform, "forward", wrapped(v2.Transform.forward), r"Transform\.forward"),
    (v1.RandomHorizontalFlip, "forward", lambda self, picture: picture, r"RandomHorizontalFlip\.forward"),
    (v1.functional, "hflip", lambda picture: picture, r"functional\.hflip"),
    (v2.functional, "horizontal_flip", mock.MagicMock(), r"functional\.horizontal_flip"),
    (PIL.Image.Image, "transpose", lambda self, how: self, r"PIL\.Image\.Image\.transpose"),
    (PIL.ImageOps, "mirror", lambda picture: picture, r"PIL\.ImageOps\.mirror"),
]


@pytest.mark.parametrize(("owner", "name", "other", "said"), TRANSFORMS)
def test_what_transforms_call_and_was_replaced_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, other: Any, said: str
) -> None:
    monkeypatch.setattr(owner, name, other, raising=False)
    flip = (v1 if owner in (v1.RandomHorizontalFlip, v1.functional) else v2).RandomHorizontalFlip()
    with pytest.raises(feedwater.UnsupportedTransformError, match=f"{said} was replaced"):
        Loader(root, v2.Compose([flip, v2.CenterCrop(8)]), batch_size=2)


def test_a_kernel_of_torchvisions_registry_that_was_replaced_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchvision.transforms.v2.functional import _utils

    kernels = _utils._KERNEL_REGISTRY[v2.functional.horizontal_flip]
    monkeypatch.setitem(kernels, PIL.Image.Image, lambda picture: picture)
    with pytest.raises(feedwater.UnsupportedTransformError, match="kernel of horizontal_flip for Image was replaced"):
        Loader(root, v2.Compose([v2.RandomHorizontalFlip(), v2.CenterCrop(8)]), batch_size=2)


def test_what_programs_add_to_libraries_is_no_matter(real: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def added(*args: Any) -> Any:
        raise AssertionError("called")

    class Mine(torchvision.tv_tensors.TVTensor):  # type: ignore[misc, name-defined]
        """A program's own type, with a kernel of its own."""

    v2.functional.register_kernel(v2.functional.resize, Mine)(added)
    old_name = types.ModuleType("torchvision.transforms.functional_tensor")  # as basicsr and its users do
    old_name.rgb_to_grayscale = lambda picture: picture  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, old_name.__name__, old_name)
    for owner in (v1.functional, v2.functional, v2, PIL.ImageFile, PIL.Image.Image, v2.Compose, v1.Compose):
        monkeypatch.setattr(owner, "salt_and_pepper", added, raising=False)
    for name in ("__len__", "__getitem__"):
        monkeypatch.setattr(v2.Compose, name, added, raising=False)
    with Loader(datasets.ImageFolder(root), v2.Compose([v2.Resize(9), v2.CenterCrop(8)]), batch_size=2) as loader:
        assert next(iter(loader)) is not None


def test_what_classes_would_inherit_and_was_added_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(v2.CenterCrop, "_call_impl", lambda self, picture: picture, raising=False)
    with pytest.raises(feedwater.UnsupportedTransformError, match=r"CenterCrop\._call_impl was replaced"):
        Loader(root, v2.CenterCrop(8), batch_size=2)


def test_other_changes_of_libraries_are_no_matter(real: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PIL.Image.Image, "show", lambda self: None)  # as fastai and notebooks do
    monkeypatch.setattr(PIL.Image.Image, "shape", property(lambda self: self.size), raising=False)
    monkeypatch.setattr(torch.nn.Module, "__call__", wrapped(torch.nn.Module.__call__))  # as profilers do
    with Loader(datasets.ImageFolder(root), v2.CenterCrop(8), batch_size=2) as loader:
        assert next(iter(loader)) is not None


# -- classes derived from ImageFolder ----------------------------------------------------------------------------------


class Empty(datasets.ImageFolder):
    """Nothing is overridden."""

    __slots__ = ()


class Placed(datasets.ImageFolder):
    """Where it lies is said by its __init__, and something is added."""

    def __init__(self, above: Path, split: str) -> None:
        super().__init__(above / split)
        self.root, self.split = above, split

    def name(self, label: int) -> str:
        return str(self.classes[label])


@pytest.mark.parametrize("kind", ["empty", "placed"])
def test_derived_classes_that_override_nothing_work(real: str, tmp_path: Path, kind: str) -> None:
    (tmp_path / "train").mkdir()
    make_photos(tmp_path / "train", 20)
    folder = Empty(tmp_path / "train") if kind == "empty" else Placed(tmp_path, "train")
    with Loader(folder, CenterCrop(8), batch_size=20) as loader:
        (batch,) = loader
        assert batch[1].tolist() == folder.targets
        assert loader.dataset is folder


def overriding(**members: Any) -> Any:
    return type("Mine", (datasets.ImageFolder,), members)


@pytest.mark.parametrize(
    "name",
    ["__getitem__", "__getitems__", "__len__", "loader", "samples", "__getattribute__", "transform", "_repr_indent"],
)
def test_derived_classes_that_override_what_is_read_are_refused_by_name(root: Path, name: str) -> None:
    def other(self: Any, *args: Any) -> Any:
        return object.__getattribute__(self, *args)

    value = other if name.startswith("__") else property(lambda self: None, lambda self, value: None)
    with pytest.raises(TypeError, match=f"Mine overrides {name}, which cannot travel"):
        Loader(overriding(**{name: value})(root), CenterCrop(8), batch_size=2)


def test_a_derived_class_that_chooses_classes_is_compared_with_the_folder(real: str, root: Path) -> None:
    def find_classes(self: Any, directory: str) -> Any:
        return ["class0", "class1"], {"class0": 0, "class1": 1}

    loader = Loader(overriding(find_classes=find_classes)(root), CenterCrop(8), batch_size=2)
    with pytest.raises(feedwater.DataError, match="classes differ"):
        next(iter(loader))


def imagenet(tmp_path: Path) -> Any:
    """torchvision's ImageNet of two classes, without the archives."""
    words = {"n01440764": ("tench", "Tinca tinca"), "n01443537": ("goldfish",)}
    torch.save((words, []), tmp_path / "meta.bin")
    for at, name in enumerate(words):
        (tmp_path / "val" / name).mkdir(parents=True)
        for number in range(3):
            PIL.Image.new("RGB", (20, 20), (at * 9, number, 3)).save(tmp_path / "val" / name / f"{number}.png")
    with mock.patch("torchvision.datasets.imagenet.check_integrity", return_value=True):
        return datasets.ImageNet(tmp_path, "val")


def eurosat(tmp_path: Path) -> Any:
    """torchvision's EuroSAT of two classes."""
    for name in ("Forest", "River"):
        (tmp_path / "eurosat" / "2750" / name).mkdir(parents=True)
        for number in range(3):
            PIL.Image.new("RGB", (20, 20), (len(name), number, 3)).save(
                tmp_path / "eurosat" / "2750" / name / f"{number}.png"
            )
    return datasets.EuroSAT(tmp_path)


@pytest.mark.parametrize("make", [imagenet, eurosat])
def test_torchvisions_own_folders_work(real: str, tmp_path: Path, make: Any) -> None:
    folder = make(tmp_path)
    with Loader(folder, v2.PILToTensor(), batch_size=6) as loader:
        (batch,) = loader
    assert batch[1].tolist() == folder.targets
    for picture, (expected, _) in zip(batch[0], folder):
        assert np.array_equal(picture.permute(1, 2, 0).numpy(), np.asarray(expected))
