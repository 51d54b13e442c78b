"""Masks of instances as COCO's files have them: run lengths, plain or as text, and outlines."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DataError

__all__ = ["make_mask"]

_FIRST, _LAST = 48, 48 + 63
"""Characters of a text of run lengths: 5 bits each, a sixth where the number goes on."""


def make_mask(segmentation: Any, size: tuple[int, int], where: str) -> np.ndarray[Any, Any]:
    """An annotation's mask as uint8 [height, width], 1 inside. Raises DataError, which begins with where."""
    if isinstance(segmentation, dict):
        return _decode(segmentation, size, where)
    if isinstance(segmentation, list) and segmentation:
        return _fill_outlines(segmentation, size, where)
    raise DataError(f"{where}: segmentation is {segmentation!r:.60}: needs run lengths or outlines")


def _decode(segmentation: dict[str, Any], size: tuple[int, int], where: str) -> np.ndarray[Any, Any]:
    told, counts = segmentation.get("size"), segmentation.get("counts")
    if not isinstance(told, list) or tuple(told) != size:
        raise DataError(f"{where}: segmentation has size {told!r:.40}, and the picture {list(size)}, height and width")
    if isinstance(counts, str):
        runs = _read_text(counts, where)
    elif isinstance(counts, list) and all(type(run) is int for run in counts):
        runs = counts
    else:
        raise DataError(f"{where}: counts are {counts!r:.40}: needs a list of whole numbers, or a text")
    height, width = size
    if any(run < 0 for run in runs) or sum(runs) != height * width:
        raise DataError(f"{where}: counts do not add up to {height}×{width} pixels, or some are below 0")
    values = np.arange(len(runs), dtype=np.int64).astype(np.uint8) & 1  # outside and inside by turns
    mask: np.ndarray[Any, Any] = np.repeat(values, runs).reshape(width, height).T  # columns come first
    return mask


def _read_text(text: str, where: str) -> list[int]:
    """Run lengths of a text; from the fourth on each is told as what it differs by from the one before the last."""
    runs: list[int] = []
    value = shift = 0
    for character in text:
        code = ord(character) - _FIRST
        if not 0 <= code <= _LAST - _FIRST or shift > 60:
            raise DataError(f"{where}: counts have {character!r} at a place where none of COCO's texts has it")
        value |= (code & 31) << shift
        shift += 5
        if code & 32:
            continue
        if code & 16:
            value -= 1 << shift
        runs.append(value + runs[-2] if len(runs) > 2 else value)
        value = shift = 0
    if shift:
        raise DataError(f"{where}: counts end amid a number")
    return runs


def _fill_outlines(outlines: Sequence[Any], size: tuple[int, int], where: str) -> np.ndarray[Any, Any]:
    """By pycocotools, whose pixels these masks are everywhere else too."""
    try:
        mask = importlib.import_module("pycocotools.mask")
    except ImportError:
        raise DataError(
            f"{where}: segmentation is an outline: pip install pycocotools, which fills outlines, or leave masks out "
            "of keys="
        ) from None
    try:
        filled = mask.decode(mask.merge(mask.frPyObjects(outlines, *size)))
    except (TypeError, ValueError, IndexError) as error:
        raise DataError(f"{where}: segmentation is no outline: {error}") from None
    return np.asarray(filled, np.uint8)
