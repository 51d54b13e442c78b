"""Ray Data: files as rows, the task in its actors' and tasks' processes, batches in the driver."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}

import numpy as np
import PIL.Image
import ray
from crops import crop_box

from peer import BATCH, MEAN, SIZE, STD, Base, files

OFFSET, SCALE = (np.array(value, np.float32) * 255 for value in (MEAN, STD))


def augment(batch: dict[str, Any]) -> dict[str, Any]:
    """The task on the files of a batch."""
    rng = np.random.default_rng()
    images = np.empty((len(batch["path"]), 3, SIZE, SIZE), np.float32)
    for row, path in enumerate(batch["path"]):
        with PIL.Image.open(str(path)) as image:
            box = crop_box(*image.size, rng)
            image = image.convert("RGB").resize((SIZE, SIZE), PIL.Image.Resampling.BILINEAR, box)
        pixels = np.asarray(image)[:, :: rng.choice((1, -1))]
        images[row] = ((pixels - OFFSET) / SCALE).transpose(2, 0, 1)
    return {"image": images, "id": batch["id"]}


class Peer(Base):
    """The rows are shuffled by the driver before each epoch, which is cheaper than random_shuffle."""

    packages = ("ray", "pillow")

    def start(self) -> None:
        """Starts Ray on this machine."""
        logging.getLogger("ray").setLevel(logging.ERROR)
        ray.init(num_cpus=self.settings.workers, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Batches of a data set for each epoch."""
        settings, rng = self.settings, np.random.default_rng()
        rows = [{"path": str(path), "id": number} for number, path in enumerate(files(settings.folder))]
        for _ in range(settings.epochs):
            order = [rows[place] for place in rng.permutation(len(rows))]
            data = ray.data.from_items(order, override_num_blocks=settings.samples // BATCH)
            data = data.map_batches(augment, batch_size=BATCH)
            for batch in data.iter_batches(batch_size=BATCH, prefetch_batches=4, drop_last=True):
                yield batch["image"], batch["id"]

    def stop(self) -> None:
        """Ends Ray."""
        ray.shutdown()
