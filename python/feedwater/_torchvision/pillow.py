"""Pillow's switches for a whole process: what nodes do about them, which have no Pillow."""

from __future__ import annotations

import re
import sys

__all__ = ["most_pixels", "not_heard"]

MOST_PIXELS = 178_956_970
"""Twice Pillow's own MAX_IMAGE_PIXELS: from there on it refuses a picture, and so do nodes."""

_LIMIT = re.compile(r" pixels is over the limit of (\d+) pixels")


def most_pixels() -> int | None:
    """What PIL.Image.MAX_IMAGE_PIXELS allows, where a program has lowered it; None where it has not."""
    most = getattr(sys.modules.get("PIL.Image"), "MAX_IMAGE_PIXELS", None)
    if not isinstance(most, (int, float)) or not 2 * most < MOST_PIXELS:
        return None
    return max(1, int(2 * most))


def not_heard(op: str, cause: str) -> str:
    """What to say of a sample that a switch of Pillow's has refused, or would have had taken; empty: nothing."""
    if op != "decode":
        return ""
    image, file = sys.modules.get("PIL.Image"), sys.modules.get("PIL.ImageFile")
    limit = _LIMIT.search(cause)
    if limit is not None and int(limit[1]) < MOST_PIXELS:
        most = int(limit[1]) // 2
        return (
            f"The limit is twice PIL.Image.MAX_IMAGE_PIXELS, which was {most:,} when the Loader was made: Pillow "
            f"refuses such a picture too. Raise that before, up to {MOST_PIXELS // 2:,}"
        )
    if limit is not None and image is not None:
        most = getattr(image, "MAX_IMAGE_PIXELS", 0)
        if most is None or 2 * most > MOST_PIXELS:
            return (
                f"PIL.Image.MAX_IMAGE_PIXELS = {most} is not heard: nodes take up to {MOST_PIXELS:,} pixels, which is "
                "Pillow's own limit, and fewer where it is lowered. Save such pictures smaller once"
            )
    if "over the limit" not in cause and getattr(file, "LOAD_TRUNCATED_IMAGES", False):
        return (
            "PIL.ImageFile.LOAD_TRUNCATED_IMAGES = True is not heard: nodes take whole pictures alone. Where that is "
            "what is wrong with it, save what Pillow makes of it once, or go on without it"
        )
    return ""
