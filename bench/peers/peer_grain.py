"""Grain: a MapDataset of Pillow's pictures, in worker processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grain.python as grain
import numpy as np
import PIL.Image
from crops import crop_box

from peer import BATCH, MEAN, SIZE, STD, Base, files

OFFSET, SCALE = (np.array(value, np.float32) * 255 for value in (MEAN, STD))


def augment(sample: tuple[int, str], rng: np.random.Generator) -> tuple[Any, int]:
    """The task on a file, and its number."""
    number, path = sample
    with PIL.Image.open(path) as image:
        box = crop_box(*image.size, rng)
        image = image.convert("RGB").resize((SIZE, SIZE), PIL.Image.Resampling.BILINEAR, box)
    pixels = np.asarray(image)
    if rng.random() < 0.5:
        pixels = pixels[:, ::-1]
    return ((pixels - OFFSET) / SCALE).transpose(2, 0, 1), number


class Peer(Base):
    """The state is the iterator's."""

    packages = ("grain", "pillow")

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Batches of the data set's iterator."""
        settings = self.settings
        data = grain.MapDataset.source(list(enumerate(map(str, files(settings.folder))))).seed(1).shuffle()
        data = data.repeat(settings.epochs, reseed_each_epoch=True).random_map(augment)
        reading = grain.ReadOptions(num_threads=1, prefetch_buffer_size=4 * BATCH)
        data = data.to_iter_dataset(reading).batch(BATCH, drop_remainder=True)
        multiprocessing = grain.MultiprocessingOptions(num_workers=settings.workers, per_worker_buffer_size=4)
        self._iterator = iter(data.mp_prefetch(multiprocessing))
        if settings.state is not None:
            self._iterator.set_state(settings.state)
        yield from self._iterator

    def state(self) -> Any:
        """The iterator's."""
        state = self._iterator.get_state()
        return json.loads(state) if isinstance(state, bytes) else state
