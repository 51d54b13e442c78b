"""torchvision's own objects: transforms and image folders, recognised by their exact class.

Nothing here imports torch or torchvision: who passes such an object has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .. import transforms
from .._common.torch_modes import current_mode, on_cpu
from .._value_table import CHANNELS, DTYPES, VALUES, Table
from ..errors import UnsupportedTransformError
from ..transforms._op import Op, Pointwise
from ..transforms._sizes import PADDING
from . import colour, containers, warp
from . import fill as _tv_fill
from .origin import FIRST, find_patch, is_first, is_torchvision
from .timm_classes import convert_timm, is_timm
from .wrapper import transform_inside

__all__ = ["TARGET_ONLY", "convert_leaf", "list_inside", "mask_dtype_of", "settle_dtype", "tabulate_tail", "with_fill"]

_HOMES = ("torchvision.transforms.v2.", *FIRST)
"""Where the transforms are that names below mean."""
_PRESETS = "torchvision.transforms._presets"
TARGET_ONLY = (
    "ClampBoundingBoxes",
    "ClampKeyPoints",
    "ConvertBoundingBoxFormat",
    "SanitizeBoundingBoxes",
    "SanitizeKeyPoints",
    "SetClampingMode",
)
"""Those of v2 that change boxes and keypoints, and do nothing to pictures."""
_Step = Op | Pointwise


def list_inside(transform: Any) -> Sequence[Any] | None:
    """The transforms in a Compose, torch's Sequential or a preset that comes with weights; None for anything else."""
    kind = type(transform)
    if find_patch(transform):
        return None
    if kind.__name__ == "Compose" and _at_home(kind):
        return list(transform.transforms)
    if kind.__name__ == "ImageClassification" and kind.__module__ == _PRESETS:
        return _convert_preset(transform)
    if kind.__name__ == "Sequential" and kind.__module__.startswith("torch.nn"):
        return list(transform)
    inside = transform_inside(transform)
    return None if inside is None else [inside]


def convert_leaf(leaf: Any) -> _Step | None:
    """The same transform of ours; None if it does nothing. Raises LookupError with the reason if there is none."""
    name, change = type(leaf).__name__, find_patch(leaf)
    if change is not None:
        raise LookupError(f"{change}, and code does not travel")
    if _is_identity(type(leaf)):
        return None
    if is_timm(type(leaf)):
        return convert_timm(leaf)
    if not _at_home(type(leaf)):
        if is_torchvision(leaf):
            raise LookupError("not there yet")
        above = next((base for base in type(leaf).__mro__ if base.__name__ in _BUILDERS and _at_home(base)), None)
        if above is not None:
            raise LookupError(f"a subclass of {above.__name__} may do anything, and code does not travel")
        raise LookupError("code of your own does not travel to nodes")
    if name == "Lambda":
        raise LookupError("code of your own does not travel to nodes")
    if name == "RGB" or name in TARGET_ONLY:  # pictures are RGB always
        return None
    if name not in _BUILDERS:
        raise LookupError("not there yet")
    return _BUILDERS[name](leaf)


def _is_identity(kind: type) -> bool:
    """torch's own, or the one in torchvision."""
    return kind.__name__ == "Identity" and (_at_home(kind) or kind.__module__ == "torch.nn.modules.linear")


def _convert_preset(preset: Any) -> list[_Step]:
    """What it does to pictures, which are always antialiased. It divides by 255, as ToTensor does."""
    try:
        return [
            transforms.Resize(tuple(preset.resize_size), preset.interpolation),
            transforms.CenterCrop(tuple(preset.crop_size)),
            transforms.ToTensor(),
            transforms.Normalize(preset.mean, preset.std),
        ]
    except UnsupportedTransformError as error:
        raise UnsupportedTransformError(f"in the preset ImageClassification: {error}") from None


def _at_home(kind: type) -> bool:
    return any(kind.__module__.startswith(prefix) for prefix in _HOMES)


def _read_sides(leaf: Any) -> Any:
    return leaf.size if leaf.size is None or isinstance(leaf.size, int) else tuple(leaf.size)


def _resized_crop(leaf: Any) -> _Step:
    return transforms.RandomResizedCrop(
        _read_sides(leaf), tuple(leaf.scale), tuple(leaf.ratio), leaf.interpolation, leaf.antialias
    )


def _convert_resize(leaf: Any) -> _Step:
    return transforms.Resize(_read_sides(leaf), leaf.interpolation, leaf.max_size, leaf.antialias)


def _read_fill(leaf: Any) -> Any:
    """Of a step that pads, for which nothing is 0."""
    fill = _tv_fill.of_pictures(leaf.fill)
    return 0 if fill is None and isinstance(leaf.fill, dict) else fill


def with_fill(step: Op, leaf: Any, tail: Sequence[Any]) -> tuple[Op, int | None]:
    """The step with the fill that leaf has for pictures behind tail, and what it puts around masks if that differs."""
    fill = getattr(leaf, "fill", None)
    if not isinstance(fill, dict) or not _at_home(type(leaf)):
        return step, None
    kind = _tv_fill.kind_behind(tail)
    if kind == _tv_fill.PIL_IMAGE and isinstance(step, transforms.AugMix):
        kind = _tv_fill.TENSOR  # which it makes of them itself
    colour = _tv_fill.of_pictures(fill, kind)
    pads = isinstance(step, PADDING)
    return replace(step, fill=0 if pads and colour is None else colour), _tv_fill.of_masks(fill, colour)  # type: ignore[type-var]


def _drawn_size(leaf: Any, *names: str) -> _Step:
    kind: type[Op] = getattr(transforms, type(leaf).__name__)
    return kind(**{name: getattr(leaf, name) for name in (*names, "interpolation", "antialias")})


def _random_crop(leaf: Any) -> _Step:
    padding, first = leaf.padding, is_first(leaf)
    if first and padding and leaf.pad_if_needed and leaf.padding_mode in ("reflect", "symmetric"):
        raise UnsupportedTransformError(
            f"torchvision.transforms.RandomCrop(padding={padding!r}, pad_if_needed=True, "
            f"padding_mode={leaf.padding_mode!r}) mirrors what is mirrored already: write "
            "torchvision.transforms.v2.RandomCrop, which pads once"
        )
    if padding is not None and not first:
        padding = [padding[side] for side in (0, 2, 1, 3)]  # v2 keeps left, right, top, bottom
    return transforms.RandomCrop(_read_sides(leaf), padding, leaf.pad_if_needed, _read_fill(leaf), leaf.padding_mode)


def settle_dtype(leaf: Any, tail: Sequence[Any]) -> Any:
    """The leaf, or of a ToDtype with types by input the one that pictures behind tail get; None if they get none."""
    if type(leaf).__name__ != "ToDtype" or not _at_home(type(leaf)) or not isinstance(leaf.dtype, dict):
        return leaf
    if find_patch(leaf):
        return leaf  # to be refused
    dtype = _tv_fill.by_kind(leaf.dtype, _tv_fill.kind_behind(tail))
    return None if dtype is None else type(leaf)(dtype, scale=leaf.scale)


def mask_dtype_of(leaf: Any) -> str | None:
    """The type that a transform gives masks, by torch's name; None: the one that they have."""
    if type(leaf).__name__ != "ToDtype" or not _at_home(type(leaf)) or not isinstance(leaf.dtype, dict):
        return None
    named = {getattr(kind, "__name__", kind): wanted for kind, wanted in leaf.dtype.items()}
    wanted = named.get("Mask", named.get("others"))
    return None if wanted is None else str(wanted).removeprefix("torch.")


_BUILDERS: dict[str, Callable[[Any], _Step]] = {
    "RandomResizedCrop": _resized_crop,
    "Resize": _convert_resize,
    "CenterCrop": lambda leaf: transforms.CenterCrop(_read_sides(leaf)),
    "FiveCrop": lambda leaf: transforms.FiveCrop(_read_sides(leaf)),
    "TenCrop": lambda leaf: transforms.TenCrop(_read_sides(leaf), leaf.vertical_flip),
    "Pad": lambda leaf: transforms.Pad(leaf.padding, _read_fill(leaf), leaf.padding_mode),
    "RandomCrop": _random_crop,
    "RandomErasing": lambda leaf: transforms.RandomErasing(leaf.p, leaf.scale, leaf.ratio, leaf.value),
    "RandomResize": lambda leaf: _drawn_size(leaf, "min_size", "max_size"),
    "RandomShortestSize": lambda leaf: _drawn_size(leaf, "min_size", "max_size"),
    "RandomZoomOut": lambda leaf: transforms.RandomZoomOut(_read_fill(leaf), leaf.side_range, leaf.p),
    "ScaleJitter": lambda leaf: _drawn_size(leaf, "target_size", "scale_range"),
    "RandomHorizontalFlip": lambda leaf: transforms.RandomHorizontalFlip(leaf.p),
    "RandomVerticalFlip": lambda leaf: transforms.RandomVerticalFlip(leaf.p),
    "ToImage": lambda leaf: transforms.ToImage(),
    "PILToTensor": lambda leaf: transforms.PILToTensor(),
    "ToPureTensor": lambda leaf: transforms.ToPureTensor(),
    "ToTensor": lambda leaf: transforms.ToTensor(),
    "ToDtype": lambda leaf: transforms.ToDtype(leaf.dtype, leaf.scale),
    "ConvertImageDtype": lambda leaf: transforms.ConvertImageDtype(leaf.dtype),
    "Normalize": lambda leaf: transforms.Normalize(leaf.mean, leaf.std),
    **warp.BUILDERS,
    **colour.BUILDERS,
    **containers.BUILDERS,
}


def tabulate_tail(tail: Sequence[Any]) -> Table:
    """What torchvision's own objects make of every value: they are applied to a picture that holds them all."""
    import numpy as np
    import PIL.Image

    torch = sys.modules["torch"]
    probe = np.repeat(np.arange(VALUES, dtype=np.uint8)[None, :, None], CHANNELS, axis=2)
    values = on_cpu(partial(_apply_steps, tail, PIL.Image.fromarray(probe)))
    if isinstance(values, np.ndarray):  # timm's ToNumpy makes one
        values = torch.from_numpy(values)
    dtype = str(values.dtype).removeprefix("torch.")
    if dtype not in DTYPES or tuple(values.shape) != (CHANNELS, 1, VALUES):
        raise UnsupportedTransformError(
            f"the transforms make {dtype} of shape {tuple(values.shape)}: supported are {', '.join(DTYPES)}, 3 channels"
        )
    plain = values.as_subclass(torch.Tensor).contiguous()
    if dtype == "bfloat16":
        plain = plain.view(torch.int16)
    return Table(dtype, plain.numpy().tobytes())


def _apply_steps(tail: Sequence[Any], values: Any) -> Any:
    for leaf in tail:
        try:
            values = leaf(values)
        except (TypeError, ValueError, RuntimeError) as error:
            mode = current_mode()
            said = f". {mode} is on, under which no tensor has values: ask for batches outside of it" if mode else ""
            raise UnsupportedTransformError(f"{leaf}: {error}{said}") from error
    return values
