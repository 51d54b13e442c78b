"""The program's batch_transform, called with random numbers that belong to the batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ._origin import is_torchvision
from ._random import RandomState

__all__ = ["apply", "check"]


def check(transform: Any) -> None:
    """Raises TypeError unless it can be called as apply does."""
    if not callable(transform) or isinstance(transform, type):
        raise TypeError(f"batch_transform={transform!r}: must be a function (batch, rng) -> batch")
    if is_torchvision(transform):
        return
    try:
        signature = inspect.signature(transform)
    except ValueError:  # written in C
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise TypeError(f"batch_transform is called with (batch, rng), and this one cannot be: {error}") from None


def apply(transform: Callable[..., Any], batch: Any, names: Sequence[int]) -> Any:
    """What transform makes of a batch; the same for the same names.

    It gets the batch and a numpy Generator. The global generators of random, numpy and torch's CPU are seeded for the
    call too, and put back. torchvision's transforms draw from these, and get the batch as torchvision has it: MixUp and
    CutMix take (images, labels).
    """
    seeds = np.random.SeedSequence(names)
    globals_ = RandomState(int(seeds.spawn(1)[0].generate_state(1, np.uint64)[0]))
    if not is_torchvision(transform):
        return globals_.run(partial(transform, batch, np.random.default_rng(seeds)), "batch_transform")
    fields = batch if isinstance(batch, tuple) else (batch,)
    try:
        return globals_.run(partial(transform, *fields), "batch_transform")
    except RuntimeError as error:
        images = next(iter(fields[0].values())) if isinstance(fields[0], dict) else fields[0]
        dtype = getattr(images, "dtype", None)
        if dtype is None or dtype.is_floating_point:
            raise
        raise TypeError(
            f"batch_transform={type(transform).__name__} cannot work on images of {dtype} ({error}): put "
            "ToDtype(torch.float32, scale=True) into the transform"
        ) from error
