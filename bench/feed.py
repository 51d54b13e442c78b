"""The batches that a training process is fed with in these measurements: 256 uint8 images of 224×224."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BATCH, SIZE = 256, 224
BATCH_GB = BATCH * SIZE * SIZE * 3 / 1e9
PERIOD_S = 0.096
"""Between two batches of a paced loop: 0.4 GB/s."""
WARM = 40
"""Batches before each measurement: each slot was used, and its pages are there."""


@contextmanager
def loader(source: str, samples: int, nodes: str | None = None) -> Iterator[Iterator[Any]]:
    """Endless batches of that many samples."""
    import feedwater
    from feedwater import transforms

    augment = [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip()]
    options: dict[str, Any] = {"batch_size": samples, "shuffle": True, "steps_per_epoch": 1 << 20, "nodes": nodes}
    with feedwater.Loader(source, augment, **options) as batches:
        yield iter(batches)
