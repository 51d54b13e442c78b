"""What the fake agent's batches must hold, from its formula."""

from __future__ import annotations

from typing import Any

import fake_agent
import numpy as np

SIZE = 8
CROP = [{"op": "CenterCrop", "size": [SIZE, SIZE]}]


def picture(index: int, epoch: int = 0, repeat: int = 0, size: tuple[int, int] = (SIZE, SIZE)) -> Any:
    """uint8 [h, w, 3]."""
    data = fake_agent.pixel_bytes(index, epoch, repeat, *size)
    return np.frombuffer(data, np.uint8).reshape(*size, 3)


def order(epoch: int = 0, seed: int = 0, samples: int = 100) -> list[int]:
    """The shuffled order of an epoch."""
    return fake_agent.order(seed, epoch, samples, True)


def check(image: Any, indices: Any, epoch: int = 0, repeats: Any = None) -> None:
    """image [B, h, w, 3] or [B, 3, h, w] holds those samples."""
    array = np.asarray(image)
    if array.shape[1] == 3:
        array = array.transpose(0, 2, 3, 1)
    repeats = [0] * len(indices) if repeats is None else repeats
    assert len(array) == len(indices)
    for row, index, repeat in zip(array, indices, repeats):
        assert np.array_equal(row, picture(int(index), epoch, repeat)), f"sample {index}"


def whole_epoch(loader: Any, epoch: int, *, shuffle: bool = True) -> None:
    """One pass of loader, which must be that epoch, complete and right."""
    seen: list[int] = []
    for image, label in loader:
        last = loader.last
        assert last.epoch == epoch
        indices = last.indices.tolist()
        assert np.asarray(label).tolist() == [index % 10 for index in indices]
        check(image, indices, epoch)
        seen += indices
    assert seen == (order(epoch) if shuffle else list(range(100)))
