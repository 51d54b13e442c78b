"""Checks on your own pictures: that a transform gives torchvision's values."""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ._agent.replay import Sample
from ._arguments import checks
from ._dataset import sources
from ._dataset.mask_files import Masks
from ._loader import Loader
from ._plan.compiler import CONVERSIONS, compile_transform, recognise_leaf, walk_leaves
from ._plan.drawn import parameters_of, walk_drawn
from .errors import Error, SampleError, UnsupportedTransformError
from .transforms._containers import Container
from .transforms._learnt import CTAugment
from .transforms._op import BehindToImage, FillsMasks, Op
from .transforms._policies import AugMix
from .transforms._several import Views
from .transforms._views import CenterCrop, Resize
from .transforms._warp import Warp

__all__ = ["assert_parity"]


def assert_parity(
    transform: Any,
    folder: str | os.PathLike[str],
    *,
    masks: str | os.PathLike[str] | Masks | None = None,
    samples: int = 100,
    epochs: int = 3,
    tolerance: int = 0,
) -> int:
    """Compares what nodes make of pictures with what torchvision makes of them and of the parameters drawn here.

    transform is made of torchvision.transforms.v2 objects, or a preset that comes with weights. Of the pictures in
    folder, an image folder, some come from all over, each in that many epochs. 8-bit values are compared, before
    ToDtype and what follows, so RandomErasing is not; with masks, as a Loader takes them, a tv_tensors.Mask too.
    Returns how many pictures were equal, within tolerance levels. Raises AssertionError that names the first picture,
    the difference and what was drawn, or why it could not be made, and UnsupportedTransformError for what cannot be
    run, or not be repeated from what was drawn: objects of torchvision.transforms (v1), noise, CTAugment; TypeError and
    ValueError for the other arguments.
    """
    from PIL import Image

    sources.resolve_folder("folder", folder, ())
    samples, epochs = checks.count_of("samples", samples), checks.count_of("epochs", epochs)
    tolerance = checks.check_within("tolerance", tolerance, 0, 255)
    equal = 0
    parts = transform.transforms if isinstance(transform, Views) else [transform]
    views, hint = [_list_steps(view) for view in parts], _arithmetic_hint(parts)
    with Loader(folder, transform, batch_size=1, masks=masks) as loader:
        total = len(loader)
        for number in range(min(samples, total)):
            index = number * total // min(samples, total)
            for epoch in range(epochs):
                sample = loader.replay(index, epoch)
                if sample.error is not None:
                    raise AssertionError(f"{sample.key} in epoch {epoch}: {_explain_error(sample.error)}")
                with Image.open(os.path.join(folder, sample.key)) as file:
                    picture = file.convert("RGB")
                for steps, seen in zip(views, sample.views or (sample,), strict=True):
                    _compare_sample(seen, _expect_pixels(steps, picture, seen.draws), epoch, tolerance, hint)
                if masks is not None:
                    mask = _read_mask(masks if isinstance(masks, Masks) else Masks(masks), sample.key)
                    for steps, seen in zip(views, sample.views or (sample,), strict=True):
                        expected = _expect_pixels(steps, mask, seen.draws)
                        _compare_sample(replace(seen, image=seen.mask), expected, epoch, 0, hint)
                equal += 1
    return equal


def _explain_error(error: Error) -> str:
    """Without the advice that is for a Loader."""
    return f"{error.op}: {error.cause}" if isinstance(error, SampleError) else str(error)


def _list_steps(transform: Any) -> list[Any]:
    """What is done to pictures of 8 bits, as torchvision's objects."""
    ops, steps = iter(compile_transform(transform).ops), []
    for leaf in walk_leaves(transform):
        if type(leaf).__name__ in CONVERSIONS:
            steps.append(leaf)
        elif type(leaf).__name__ != "ToDtype" and isinstance(recognise_leaf(leaf), Op):
            steps.append(_paint_leaf(_make_theirs(leaf), next(ops)))
    return steps


def _make_theirs(leaf: Any) -> Any:
    """torchvision's object for a step of a preset."""
    if not isinstance(leaf, (Resize, CenterCrop)):
        return leaf
    v2 = importlib.import_module("torchvision.transforms.v2")
    if isinstance(leaf, CenterCrop):
        return v2.CenterCrop(leaf.size)
    how = v2.InterpolationMode(leaf.interpolation)
    size = list(leaf.size) if isinstance(leaf.size, Sequence) else leaf.size
    return v2.Resize(size, interpolation=how, max_size=leaf.max_size, antialias=True)


def _paint_leaf(leaf: Any, op: Op) -> Any:
    """The leaf with the fill that becomes its own behind ToDtype and Normalize, where nodes put that."""
    op = op.op if isinstance(op, FillsMasks) else op
    ours = recognise_leaf(leaf)
    if isinstance(leaf, Op) or not hasattr(op, "fill") or getattr(ours, "fill", op.fill) == op.fill:
        return leaf
    other = copy.copy(leaf)
    utils = importlib.import_module("torchvision.transforms.v2._utils")
    kinds = importlib.import_module("torchvision.tv_tensors")
    fill = {kinds.Mask: leaf._fill.get(kinds.Mask, leaf._fill.get("others")), "others": list(op.fill)}
    other.fill, other._fill = fill, utils._setup_fill_arg(fill)
    return other


def _compare_sample(sample: Sample, expected: Any, epoch: int, tolerance: int, hint: str) -> None:
    where, drawn = f"{sample.key} in epoch {epoch}", f"Drawn: {sample.draws}"
    assert sample.image is not None, f"{where} has no picture. {drawn}"
    shape = sample.image.shape
    assert shape == expected.shape, f"{where}: {shape}, torchvision's is {expected.shape}.{hint} {drawn}"
    distance = np.abs(sample.image.astype(np.int16) - expected)
    differing = int(np.count_nonzero(distance > tolerance))
    assert not differing, (
        f"{where}: {differing} of {distance.size} values differ, by up to {distance.max()}.{hint} {drawn}"
    )


def _arithmetic_hint(parts: Sequence[Any]) -> str:
    """What is to be known of a difference where torch's own arithmetic is not the one that nodes repeat."""
    if not any(_warps_tensors(op) for part in parts for op in compile_transform(part).ops) or _fuses_products():
        return ""
    return (
        " On this processor torch's own warps of tensors are others in a few values: by 1 with bilinear, which "
        "tolerance=1 allows, by a pixel beside it with nearest. See docs/parity.md."
    )


def _warps_tensors(op: Op) -> bool:
    """Whether a compiled op moves pixels in the arithmetic that torch has for tensors."""
    if isinstance(op, Container):
        return any(map(_warps_tensors, op.transforms))
    op = op.op if isinstance(op, FillsMasks) else op
    return isinstance(op, AugMix) or (isinstance(op, BehindToImage) and isinstance(op.op, Warp))


def _fuses_products() -> bool:
    """Whether torch rounds each sum of products once here, as nodes do, on Intel's processors with AVX-512."""
    torch, a = importlib.import_module("torch"), 1 + 2.0**-12
    rounded = float(torch.tensor(a) * torch.tensor(a))
    grid = torch.tensor([-rounded, a, 0.0]).expand(1, 400, 3)  # so many that the library multiplies
    return bool(grid.bmm(torch.tensor([1.0, a, 0.0]).reshape(1, 3, 1).expand(1, 3, 2)).any())


def _expect_pixels(steps: Sequence[Any], picture: Any, draws: list[dict[str, Any]]) -> Any:
    left = iter(draws)
    for step in steps:
        name = type(step).__name__
        picture = _convert_pixels(name, picture) if name in CONVERSIONS else _apply_step(step, picture, next(left))
    crops = picture if isinstance(picture, tuple) else (picture,)
    return np.concatenate([_to_array(crop) for crop in crops])


def _read_mask(masks: Masks, key: str) -> Any:
    """A mask as torchvision has it."""
    from PIL import Image

    stem = os.path.join(masks.folder, os.path.splitext(key)[0].removesuffix(masks.picture_suffix))
    torch, kinds = sys.modules["torch"], importlib.import_module("torchvision.tv_tensors")
    with Image.open(f"{stem}{masks.suffix}.png") as file:
        pixels = np.array(file.convert("RGB") if masks.colours else file, np.uint8)
    return kinds.Mask(torch.from_numpy(_number_pixels(masks, pixels)))


def _number_pixels(masks: Masks, pixels: Any) -> Any:
    """The numbers that stand for a mask's pixels."""
    if not masks.colours and not masks.numbers:
        return pixels
    made = np.full(pixels.shape[:2], 0 if masks.others is None else masks.others, np.uint8)
    for key, number in [*masks.colours.items(), *masks.numbers.items()]:
        made[(pixels == key).all(-1) if masks.colours else pixels == key] = number
    return made


def _to_array(picture: Any) -> Any:
    if not hasattr(picture, "permute"):
        return np.asarray(picture)
    return picture.permute(1, 2, 0).numpy() if picture.ndim == 3 else picture.numpy()


def _convert_pixels(name: str, picture: Any) -> Any:
    """What a conversion makes of a picture, without ToTensor's division."""
    if isinstance(picture, tuple):
        return tuple(_convert_pixels(name, crop) for crop in picture)
    if type(picture).__name__ == "Mask":
        return picture
    functional = importlib.import_module("torchvision.transforms.v2.functional")
    return functional.to_image(picture) if name == "ToImage" else functional.pil_to_tensor(picture)


def _apply_step(step: Any, picture: Any, draw: dict[str, Any]) -> Any:
    """What torchvision's own object, or those inside it, do with what was drawn."""
    for leaf, drawn in walk_drawn(step, draw):
        picture = _apply_leaf(leaf, picture, drawn)
    return picture


def _apply_leaf(step: Any, picture: Any, draw: dict[str, Any]) -> Any:
    """The same of one that was applied and has no others inside."""
    name, parameters = type(step).__name__, parameters_of(draw)
    if hasattr(step, "_apply_image_or_video_transform"):
        return _apply_augmix(step, picture, draw) if "chains" in draw else _apply_ops(step, picture, draw["ops"])
    if "counter" in parameters or name == "GaussianNoise":
        raise UnsupportedTransformError(
            f"{name} cannot be repeated from what was drawn, its noise: leave it out of the comparison"
        )
    if isinstance(step, CTAugment):
        raise UnsupportedTransformError("CTAugment cannot be compared: torchvision has no such transform")
    if not hasattr(step, "transform"):
        instead = "leave it out of the comparison"
        if type(step).__module__.startswith("torchvision."):
            instead = f"pass torchvision.transforms.v2.{name}, which has the same pixels"
        raise UnsupportedTransformError(
            f"{type(step).__module__}.{name} cannot be repeated from what was drawn: {instead}"
        )
    return step.transform(picture, parameters)


def _apply_ops(policy: Any, picture: Any, ops: list[dict[str, Any]]) -> Any:
    """What a policy's own method makes of a picture by the ops that were drawn, one after the other."""
    how = {"interpolation": policy.interpolation, "fill": policy._fill}
    for op in ops:
        picture = policy._apply_image_or_video_transform(picture, op["name"], op["magnitude"], **how)
    return picture


def _apply_augmix(policy: Any, picture: Any, draw: dict[str, Any]) -> Any:
    """The same of AugMix, which works on tensors and adds its chains up in float32."""
    torch, functional = sys.modules["torch"], importlib.import_module("torchvision.transforms.v2.functional")
    drawn_on = hasattr(picture, "permute")
    image = picture if drawn_on else functional.pil_to_tensor(picture)
    total = torch.tensor([draw["weight"]]) * image
    for chain in draw["chains"]:
        total.add_(torch.tensor([chain["weight"]]) * _apply_ops(policy, image, chain["ops"]))
    mixed = total.to(torch.uint8)
    return mixed if drawn_on else functional.to_pil_image(mixed)
