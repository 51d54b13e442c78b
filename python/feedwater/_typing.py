"""Types for the type checker only."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np

from ._order.steps import Tail

__all__ = ["Options"]


class Options(TypedDict, total=False):
    """Loader's keyword arguments that do not change the type of a batch."""

    layout: str | None
    image: str | None
    label: str | None
    relabel: Mapping[Any, int] | None
    batch_size: int | None
    shuffle: bool | str
    sampler: Any
    batch_sampler: Any
    weights: Any
    tail: Tail
    drop_last: bool
    seed: int
    steps_per_epoch: int | None
    rank: int | None
    num_replicas: int | None
    mesh: Any
    python: Callable[[dict[str, Any], np.random.Generator], Mapping[str, Any]] | None
    python_workers: int | Literal["auto"]
    device: Any
    pin_memory: bool
    dtype: Any
    memory_format: Any
    memory: int | Literal["auto"]
    apply_exif: bool
    on_error: Literal["raise", "skip", "substitute"]
    max_errors: float
    timeout: float
    start_timeout: float
    fallback: Literal["local"] | None
    nodes: str | Sequence[str] | None
    local_workers: int | Literal["auto"]
    job: str | None
    tls: bool | str | os.PathLike[str] | Mapping[str, Any] | None
    token_file: str | os.PathLike[str] | None
    insecure: bool | None
