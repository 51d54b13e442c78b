"""Masks of COCO's files: run lengths against pycocotools, bit for bit, and outlines by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pycocotools import mask

from feedwater._dataset.rle import make_mask


def draw(seed: int) -> np.ndarray[Any, Any]:
    """A mask of blots; of some seeds empty, full, or noise."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 300, 2)
    if seed % 10 < 3:
        return (rng.random(size) < (0, 1, 0.5)[seed % 10]).astype(np.uint8)
    made = np.zeros(size, np.uint8)
    for _ in range(seed % 7):
        (top, left), (height, width) = rng.integers(0, size), rng.integers(1, size + 1)
        made[top : top + height, left : left + width] ^= 1
    return made


@pytest.mark.parametrize("seed", range(60))
def test_run_lengths_are_what_pycocotools_has(seed: int) -> None:
    made = draw(seed)
    encoded = mask.encode(np.asfortranarray(made))
    text = {"size": [int(side) for side in encoded["size"]], "counts": encoded["counts"].decode()}
    flat = made.ravel(order="F")
    edges = [0, *(np.flatnonzero(np.diff(flat)) + 1).tolist(), flat.size]
    counts = ([0] if flat[0] else []) + np.diff(edges).tolist()
    plain = {"size": text["size"], "counts": counts}
    assert mask.frPyObjects(plain, *made.shape)["counts"] == encoded["counts"]
    for told in (text, plain):
        assert np.array_equal(make_mask(told, made.shape, "here"), made)


def test_outlines_are_filled_by_pycocotools() -> None:
    outlines = [[1.5, 1, 9, 1.25, 8.5, 9, 2, 7], [20, 20, 30, 20, 25, 28]]
    expected = mask.decode(mask.merge(mask.frPyObjects(outlines, 40, 50)))
    made = make_mask(outlines, (40, 50), "here")
    assert np.array_equal(made, expected) and made.sum() > 50
