"""The digest of what a training loop gets, as client.Digest of the Go package has it.

SHA-256 over index (u64), label (i64, both little-endian) and pixels (uint8, rows of RGB) of each sample in order. It
does not depend on where batches are cut, nor on the type and layout in which the loop gets the pixels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np


class Digest:
    """A running digest."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.batches = 0

    def add(self, batch: Any, loader: Any) -> None:
        """Appends the batch (image, label) that loader just returned; images [B, C, H, W], of any type, not scaled."""
        images, labels = batch
        self.batches += 1
        pixels = np.asarray(images)
        assert pixels.shape[1] == 3
        pixels = np.ascontiguousarray(pixels.transpose(0, 2, 3, 1).astype(np.uint8))
        heads = np.stack([np.asarray(loader.last.indices, "<i8"), np.asarray(labels, "<i8")], axis=1)
        assert len(heads) == len(pixels)
        for head, picture in zip(heads, pixels):
            self._hash.update(head.tobytes())
            self._hash.update(picture.data)

    def hex(self) -> str:
        """Of what was added so far."""
        return self._hash.hexdigest()


def digest(loader: Any, epochs: Iterable[int] | int = 1) -> str:
    """Of whole passes: so many as come, or those of certain epochs."""
    made = Digest()
    for epoch in range(epochs) if isinstance(epochs, int) else epochs:
        if not isinstance(epochs, int):
            loader.set_epoch(epoch)
        for batch in loader:
            made.add(batch, loader)
    return made.hex()
