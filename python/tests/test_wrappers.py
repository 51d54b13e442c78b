"""Objects that hand their input on to a transform: what is inside counts, unless they do more."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision.transforms import v2  # noqa: E402

from feedwater import Loader, UnsupportedTransformError, Views  # noqa: E402
from feedwater._plan.compiler import compile_transform  # noqa: E402


def steps() -> Any:
    return v2.Compose([v2.CenterCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Preset:
    """As torchvision's references have it."""

    def __init__(self, inside: Any = None) -> None:
        self.transforms = steps() if inside is None else inside

    def __call__(self, img: Any) -> Any:
        return self.transforms(img)


class Joint(Preset):
    """As those for segmentation have it."""

    def __call__(self, img: Any, target: Any) -> Any:
        return self.transforms(img, target)


class Starred(Preset):
    def __call__(self, *sample: Any) -> Any:
        """With a docstring."""
        return self.transforms(*sample)


class Module(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = torch.nn.Sequential(v2.CenterCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True))

    def forward(self, x: Any) -> Any:
        return self.steps(x)


@pytest.mark.parametrize("make", [Preset, Joint, Starred, Module, lambda: Preset(Preset()), lambda: [Preset()]])
def test_what_is_inside_is_compiled(make: Any) -> None:
    assert compile_transform(make()) == compile_transform(steps())


class Brighter(Preset):
    def __call__(self, img: Any) -> Any:
        return self.transforms(img) + 1


class Twice(Preset):
    def __call__(self, img: Any) -> Any:
        return self.transforms(self.transforms(img))


class Default(Preset):
    def __call__(self, img: Any = None) -> Any:
        return self.transforms(img)


class Hidden(Preset):
    @property
    def inside(self) -> Any:
        return self.transforms

    def __call__(self, img: Any) -> Any:
        return self.inside(img)


class Pair(Preset):
    """Two pictures of one."""

    def __call__(self, img: Any) -> Any:
        return [self.transforms(img), self.transforms(img)]


class Looked(Preset):
    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


def replaced() -> Any:
    preset = Preset()
    preset.__call__ = lambda img: img  # type: ignore[method-assign]
    return preset


@pytest.mark.parametrize("make", [Brighter, Twice, Default, Hidden, Pair, Looked, replaced])
def test_what_does_more_is_refused(make: Any) -> None:
    with pytest.raises(UnsupportedTransformError, match=r"code of your own|was replaced"):
        compile_transform(make())


def test_what_cannot_be_run_inside_is_named(tmp_path: Any) -> None:
    with pytest.raises(UnsupportedTransformError, match="transform Brighter: cut the transform in two"):
        compile_transform(Preset(v2.Compose([v2.CenterCrop(8), Brighter()])))
    views = Loader(tmp_path, Preset(Views([v2.CenterCrop(8), Preset()])), batch_size=2)
    assert len(views._config.pictures) == 2


def test_a_forgotten_resize_is_told(fake: Any, caplog: Any) -> None:
    """Where the first batch is asked for, before a program fails on a list that it took for a tensor."""
    fake.set(samples=20, ragged=True)
    images, _ = next(iter(fake.loader(transform=v2.Resize(8))))
    assert isinstance(images, list)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1 and "the images of a batch are a list" in told[0] and "Resize((h, w))" in told[0]
    caplog.clear()
    list(fake.loader(transform=v2.Resize(8), batch_transform=lambda batch, rng: batch))
    assert not caplog.records, "something may make one size of them"
