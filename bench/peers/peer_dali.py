"""DALI's pipeline on CPUs: no GPU is asked for."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, types

from peer import BATCH, MEAN, SIZE, STD, Base, files


@pipeline_def(enable_checkpointing=True)
def augment(names: list[str]) -> Any:
    """The task; labels are the samples' numbers."""
    encoded, number = fn.readers.file(
        files=names, labels=list(range(len(names))), shuffle_after_epoch=True, name="reader", prefetch_queue_depth=2
    )
    images = fn.decoders.image_random_crop(encoded, device="cpu", output_type=types.RGB)
    images = fn.resize(images, size=[SIZE, SIZE], interp_type=types.INTERP_LINEAR, antialias=True)
    images = fn.crop_mirror_normalize(
        images,
        mirror=fn.random.coin_flip(),
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[255 * value for value in MEAN],
        std=[255 * value for value in STD],
    )
    return images, number


class Peer(Base):
    """The first epoch is in the order of the files: a reader that shuffles after epochs has whole ones."""

    packages = ("nvidia-dali-cuda120",)

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Batches of the pipeline; with a state, the rest of the epoch."""
        settings = self.settings
        names = [str(path) for path in files(settings.folder)]
        state = base64.b64decode(settings.state["checkpoint"]) if settings.state else None
        self._pipeline = augment(
            names,
            batch_size=BATCH,
            num_threads=settings.workers,
            device_id=None,
            prefetch_queue_depth=2,
            seed=1,
            checkpoint=state,
        )
        self._pipeline.build()
        self._given = settings.state["given"] if settings.state else 0
        for _ in range(self._given, settings.epochs * settings.samples // BATCH):
            images, numbers = self._pipeline.run()
            self._given += 1
            yield images.as_array(), np.asarray(numbers.as_array()).ravel()

    def state(self) -> dict[str, Any]:
        """The pipeline's checkpoint, and how many batches it has given."""
        saved = self._pipeline.checkpoint()
        return {"checkpoint": base64.b64encode(saved).decode(), "given": self._given}
