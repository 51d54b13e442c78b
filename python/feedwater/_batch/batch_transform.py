"""The program's batch_transform, called with random numbers that belong to the batch."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.random_state import RandomState
from .._common.torch_modes import on_cpu
from .._plan.output import IMAGE, MASK
from .._torchvision.origin import is_torchvision, is_v2
from .kornia import apply_kornia, check_kornia, is_kornia

__all__ = ["apply_batch_transform", "check_batch_transform"]

MIXES = ("MixUp", "CutMix")
"""What torchvision has that mixes labels too."""
_Work = Callable[[dict[str, Any]], dict[str, Any]]
"""What makes other fields of a batch's, by our names."""


def check_batch_transform(transform: Any, names: Mapping[str, str], masks: bool) -> None:
    """Raises TypeError unless it can be called as apply does, ValueError where the fields are not what it needs."""
    if not callable(transform) or isinstance(transform, type):
        raise TypeError(f"batch_transform={transform!r}: must be a function (batch, rng) -> batch")
    if is_v2(transform):
        _check_fields(transform, names, masks)
        return
    if is_kornia(transform):
        check_kornia(transform, names, masks)
        return
    if is_torchvision(transform):
        name = getattr(transform, "__name__", type(transform).__name__)
        raise TypeError(
            f"batch_transform={name}: only transforms of torchvision.transforms.v2 know pictures from labels. Say what "
            "it works on: def fn(batch, rng): images, labels = batch; return …(images), labels"
        )
    try:
        signature = inspect.signature(transform)
    except ValueError:  # written in C
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise TypeError(f"batch_transform is called with (batch, rng), and this one cannot be: {error}") from None


def _check_fields(transform: Any, names: Mapping[str, str], masks: bool) -> None:
    kind = type(transform).__name__
    if IMAGE not in names:
        raise ValueError(f"batch_transform={kind} works on pictures: fields needs image")
    mixes = any(base.__name__ in MIXES for part in _walk_parts(transform) for base in type(part).__mro__)
    if mixes and masks:
        raise ValueError(
            f"batch_transform={kind} mixes pictures with their labels, and not masks, in torchvision neither: leave "
            "masks= or it out, or mix both in a function (batch, rng) -> batch"
        )
    if mixes and "label" not in names:
        raise ValueError(f'batch_transform={kind} mixes labels too: fields needs them, ("image", "label")')


def _walk_parts(transform: Any) -> Iterator[Any]:
    """It, and what is inside."""
    yield transform
    inside = getattr(transform, "transforms", ())
    for part in inside if isinstance(inside, Sequence) else ():
        yield from _walk_parts(part)


def apply_batch_transform(
    transform: Callable[..., Any],
    batch: Any,
    numbers: Sequence[int],
    names: Mapping[str, str],
    valid: npt.NDArray[np.bool_] | None,
    generators: Sequence[Any] = (),
) -> Any:
    """What transform makes of a batch; the same for the same numbers.

    It gets the batch and a numpy Generator. The global generators of random, numpy and torch's CPU, and the generators
    given, are seeded for the call too, and put back. torchvision's transforms draw from these. They get the pictures,
    masks and labels alone, of the rows that hold a sample, whatever else the batch has and in whichever order: names
    are our names of its fields to its own, valid says which rows hold a sample, None: all. They see which are pictures
    and which are masks.
    """
    seeds = np.random.SeedSequence(numbers)
    globals_ = RandomState(int(seeds.spawn(1)[0].generate_state(1, np.uint64)[0]), generators)
    if is_kornia(transform):
        wanted: tuple[str, ...] = (IMAGE, MASK)
        work: _Work = partial(_run_kornia, transform, globals_)
    elif is_v2(transform):
        wanted = (IMAGE, "label", MASK)
        work = partial(_run_torchvision, transform, globals_, names, isinstance(batch, dict))
    else:
        return globals_.run_seeded(partial(transform, batch, np.random.default_rng(seeds)), "batch_transform")
    # they draw numbers, which are to be the same wherever tensors are made by default
    return on_cpu(partial(_change_fields, work, wanted, batch, names, valid))


def _change_fields(
    work: _Work,
    wanted: Sequence[str],
    batch: Any,
    names: Mapping[str, str],
    valid: npt.NDArray[np.bool_] | None,
) -> Any:
    """The batch with what work makes of its wanted fields, of the rows that hold a sample; the others as they are."""
    fields = dict(batch) if isinstance(batch, dict) else dict(zip(names.values(), batch, strict=True))
    rows = None if valid is None or valid.all() else np.flatnonzero(valid)
    held = {name: fields[names[name]] for name in wanted if name in names}
    given = held if rows is None else {name: _rows_of(name, value, rows) for name, value in held.items()}
    for name, value in work(given).items():
        fields[names[name]] = value if rows is None else _put_back(name, value, held[name], rows)
    return fields if isinstance(batch, dict) else tuple(fields.values())


def _run_torchvision(
    transform: Callable[..., Any], globals_: RandomState, names: Mapping[str, str], as_dict: bool, held: dict[str, Any]
) -> dict[str, Any]:
    """What one of torchvision's makes of pictures, masks and labels, given to it as the loop gets them."""
    given = {names[name]: _wrap_value(name, value) for name, value in held.items()}
    arguments = (given,) if as_dict else tuple(given.values())
    try:
        made = globals_.run_seeded(partial(transform, *arguments), "batch_transform")
    except RuntimeError as error:
        _explain_float_error(error, transform, given[names[IMAGE]])
        raise
    values = made.values() if isinstance(made, dict) else made if len(arguments) > 1 else (made,)
    return dict(zip(held, map(_unwrap_value, values), strict=True))


def _run_kornia(transform: Any, globals_: RandomState, held: dict[str, Any]) -> dict[str, Any]:
    """What a module of kornia makes of pictures and masks."""
    return globals_.run_seeded(partial(apply_kornia, transform, held), "batch_transform")


def _wrap_value(name: str, value: Any) -> Any:
    """Pictures and masks as torchvision's types, by which transforms know them; views are lists of pictures."""
    from torch import Tensor

    if isinstance(value, list):
        return [_wrap_value(name, one) for one in value]
    if name not in (IMAGE, MASK) or not isinstance(value, Tensor) or value.ndim < 3:  # python= may give anything
        return value
    types = importlib.import_module("torchvision.tv_tensors")
    return types.Image(value) if name == IMAGE else types.Mask(value)


def _one_each(name: str, value: Any) -> bool:
    """Whether it is a list of one thing for each sample, not a tensor, nor a list of views or of their masks."""
    sides = 2 if name == MASK else 3
    return isinstance(value, list) and not all(getattr(one, "ndim", 0) > sides for one in value)


def _rows_of(name: str, value: Any, rows: npt.NDArray[np.intp]) -> Any:
    if _one_each(name, value):
        return [value[row] for row in rows]
    if isinstance(value, list):
        return [_rows_of(name, one, rows) for one in value]
    return value[rows]


def _unwrap_value(value: Any) -> Any:
    """A result as an ordinary tensor."""
    import torch

    if isinstance(value, list):
        return [_unwrap_value(one) for one in value]
    return value.as_subclass(torch.Tensor) if isinstance(value, torch.Tensor) else value


def _put_back(name: str, value: Any, before: Any, rows: npt.NDArray[np.intp]) -> Any:
    """A result between the rows that hold no sample, which are zeros."""
    if _one_each(name, before):
        whole = list(before)
        for row, one in zip(rows, value, strict=True):
            whole[row] = one
        return whole
    if isinstance(before, list):
        return [_put_back(name, one, was, rows) for one, was in zip(value, before, strict=True)]
    tensor = value.new_zeros((len(before), *value.shape[1:]))
    tensor[rows] = value
    return tensor


def _explain_float_error(error: RuntimeError, transform: Any, images: Any) -> None:
    """Raises what to do where it works on floats, and got integers."""
    image = images[0] if isinstance(images, list) else images
    dtype = getattr(image, "dtype", None)
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(
            f"batch_transform={type(transform).__name__} cannot work on images of {dtype} ({error}): put "
            "ToDtype(torch.float32, scale=True) into the transform"
        ) from error
