"""The draws of nodes, repeated here: Philox4x32-10, many samples at once. The twin of draw.go of the package order."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["draw_below", "draw_block", "draw_unit", "key_of"]

Words = npt.NDArray[np.uint64]
MASK = np.uint64(0xFFFFFFFF)
ROUNDS = 10


def key_of(seed: int, path: str) -> tuple[int, int]:
    """The key of the op at a path, like "CTAugment/0"."""
    import hashlib

    digest = hashlib.sha256(b"feedwater draw 1\x00" + struct.pack("<Q", seed) + path.encode()).digest()
    first, second = struct.unpack_from("<II", digest)
    return first, second


def draw_block(key: tuple[int, int], number: int, epoch: int, indices: Any, repeats: Any) -> Words:
    """Four random words for each sample, [4, samples]."""
    shape = np.shape(indices)
    c = [np.full(shape, number, np.uint64), np.full(shape, epoch, np.uint64)]
    c += [np.asarray(indices, np.uint64) & MASK, np.asarray(repeats, np.uint64) & MASK]
    k0, k1 = key
    for _ in range(ROUNDS):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0),
            b & MASK,
            (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
            a & MASK,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c)


def draw_below(words: Words, count: int) -> npt.NDArray[np.int64]:
    """Whole numbers from 0, below count."""
    return np.asarray((words * np.uint64(count)) >> np.uint64(32), np.int64)


def draw_unit(words: Words) -> npt.NDArray[np.float64]:
    """Numbers from 0, below 1."""
    return np.asarray(words >> np.uint64(8), np.float64) * 2.0**-24
