"""Filters, size rules, crops, padding; and how tensors are resized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from case import Case, Draws, Picture
from torchvision import tv_tensors
from torchvision.transforms import v2

ALL = ("nearest", "nearest-exact", "bilinear", "bicubic", "lanczos", "box", "hamming")
OF_TENSORS = ALL[:5]
MODES = ("constant", "edge", "reflect", "symmetric")
Make = Callable[[], list[Any]]


def _tensor(picture: Picture) -> Any:
    return tv_tensors.Image(torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous())


def _replayed(make: Make, prepare: Callable[[Picture], Any]) -> Callable[[Picture, Draws], Any]:
    """The transforms' own methods, with the parameters that were drawn."""

    def expect(picture: Picture, draws: Draws) -> Any:
        image = prepare(picture)
        for transform, draw in zip(make(), draws, strict=True):
            parameters = {name: value for name, value in draw.items() if name not in ("op", "applied")}
            image = transform.transform(image, parameters) if draw["applied"] else image
        return image.permute(1, 2, 0).numpy() if isinstance(image, torch.Tensor) else image

    return expect


def _case(name: str, make: Make) -> Case:
    return Case(name, lambda: v2.Compose(make()), _replayed(make, lambda picture: picture))


def _on_tensor(name: str, make: Make) -> Case:
    return Case(f"ToImage(), {name}", lambda: v2.Compose([v2.ToImage(), *make()]), _replayed(make, _tensor), "tensor")


def _both(name: str, make: Make) -> list[Case]:
    return [_case(name, make), _on_tensor(name, make)]


def _make(kind: type[Any], *values: Any, **named: Any) -> tuple[str, Make]:
    text = [repr(value) for value in values] + [f"{name}={value!r}" for name, value in named.items()]
    return f"{kind.__name__}({', '.join(text)})", lambda: [kind(*values, **named)]


def _small(name: str, make: Make) -> tuple[str, Make]:
    """Behind a resize that keeps results small: replay has a limit."""
    return f"Resize(80), {name}", lambda: [v2.Resize(80), *make()]


def _erased() -> Callable[[Picture, Draws], Any]:
    def expect(picture: Picture, draws: Draws) -> Any:
        image = _tensor(picture)
        for draw in draws:
            if draw["applied"] and draw["v"] is not None:
                value = torch.tensor(draw["v"])[:, None, None]
                image = v2.functional.erase(image, draw["i"], draw["j"], draw["h"], draw["w"], value)
        return image.permute(1, 2, 0).numpy()

    return expect


def _erasing(*arguments: Any, **named: Any) -> Case:
    name, make = _make(v2.RandomErasing, *arguments, **named)
    return Case(f"ToImage(), {name}", lambda: v2.Compose([v2.ToImage(), *make()]), _erased(), "tensor")


CASES = [
    *(_case(*_make(v2.RandomResizedCrop, 224, interpolation=name)) for name in ALL if name != "bilinear"),
    *(_on_tensor(*_make(v2.RandomResizedCrop, 224, interpolation=name)) for name in OF_TENSORS),
    *(_on_tensor(*_make(v2.RandomResizedCrop, 224, interpolation=n, antialias=False)) for n in ("bilinear", "bicubic")),
    *(_case(*_make(v2.Resize, 256, interpolation=name)) for name in ALL if name != "bilinear"),
    *(_on_tensor(*_make(v2.Resize, 256, interpolation=name)) for name in OF_TENSORS),
    *(_on_tensor(*_make(v2.Resize, 200, interpolation=n, antialias=None)) for n in ("bilinear", "bicubic")),
    *(c for n in ("nearest", "bilinear", "lanczos") for c in _both(*_make(v2.Resize, (700, 640), interpolation=n))),
    *(c for n in ("nearest", "bilinear", "bicubic") for c in _both(*_make(v2.Resize, (31, 500), interpolation=n))),
    *(_case(*_make(v2.Resize, (500, 33), interpolation=name)) for name in ("box", "hamming")),
    *_both(*_make(v2.Resize, 256, max_size=300)),
    *_both(*_make(v2.Resize, None, max_size=180)),
    *_both(*_make(v2.Resize, [299])),
    *_both(*_make(v2.RandomCrop, 32)),
    *_both(*_make(v2.RandomCrop, 224, pad_if_needed=True)),
    *_both(*_make(v2.RandomCrop, (480, 520), padding=(20, 10), pad_if_needed=True, fill=(124, 116, 103))),
    *(c for n in MODES for c in _both(*_make(v2.RandomCrop, 100, padding=(4, 60, 0, 17), padding_mode=n))),
    *(c for n in MODES for c in _both(*_small(*_make(v2.Pad, 30, padding_mode=n)))),
    *(c for n in MODES for c in _both(*_small(*_make(v2.Pad, [0, 70, 13, 1], padding_mode=n)))),
    *_both(*_small(*_make(v2.Pad, (5, 9), fill=127.9))),
    *_both(*_small(*_make(v2.Pad, 16, fill=(255, 0, 1)))),
    *_both(*_small(*_make(v2.Pad, 0))),
    *_both(*_small(*_make(v2.RandomZoomOut))),
    *_both(*_small(*_make(v2.RandomZoomOut, fill=(124, 116, 103), side_range=(1.5, 2.0), p=1.0))),
    *_both(*_make(v2.RandomResize, 100, 400)),
    *_both(*_make(v2.RandomShortestSize, [96, 128, 333], max_size=400)),
    *_both(*_make(v2.RandomShortestSize, 224)),
    *_both(*_make(v2.ScaleJitter, (224, 224))),
    *_both(*_make(v2.ScaleJitter, (300, 200), scale_range=(0.5, 1.5), interpolation="bicubic")),
    _erasing(value=9),
    _erasing(1.0, (0.3, 1.0), (0.2, 5.0), (124, 116, 103)),
    _on_tensor(
        "RandomResizedCrop(224, antialias=True), RandomHorizontalFlip()",
        lambda: [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()],
    ),
    _on_tensor("Resize(256), CenterCrop(224)", lambda: [v2.Resize(256), v2.CenterCrop(224)]),
    *_both(
        "RandomVerticalFlip(), RandomShortestSize(200), RandomHorizontalFlip(), "
        "RandomCrop(224, pad_if_needed=True, fill=9)",
        lambda: [
            v2.RandomVerticalFlip(), v2.RandomShortestSize(200), v2.RandomHorizontalFlip(),
            v2.RandomCrop(224, pad_if_needed=True, fill=9),
        ],
    ),
    *_both(
        "Pad(9, fill=3), RandomVerticalFlip(), CenterCrop(700)",
        lambda: [v2.Pad(9, fill=3), v2.RandomVerticalFlip(), v2.CenterCrop(700)],
    ),
]  # fmt: skip
