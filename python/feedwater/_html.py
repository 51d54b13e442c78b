"""What a notebook shows of a Loader: what it does, how large it is, where it stands, and pictures of its last batch."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .errors import Error

if TYPE_CHECKING:
    from ._agent.plan_info import PlanInfo
    from ._agent.replay import Last, Sample
    from ._config import Config

__all__ = ["encode_png", "make_page"]

MOST_PICTURES = 6
MOST_SIDE = 128
"""Pixels of a picture's longer side, about."""


def make_page(
    config: Config,
    opened: PlanInfo | None,
    place: tuple[int, int],
    last: Last | None,
    replay: Callable[[int], Sample],
) -> str:
    """HTML of a Loader. Starts nothing: opened and last are None before the first batch, and then there is less.

    place is epoch and position of the next batch.
    """
    rows = [("data", config.source.name), ("batches", f"{config.batch_size} samples of each rank")]
    if opened is not None:
        rows[0] = ("data", f"{config.source.name}: {opened.samples:,} samples, {len(opened.classes):,} classes")
    for number, picture in enumerate(config.pictures):
        steps = [step["op"] for step in picture.compiled.plan_ops()] + [
            step.split("(")[0] for step in picture.compiled.tail
        ]
        name = f"view {number}" if config.views else "transform"
        rows.append((name, f"{' → '.join(steps) or 'none'}: {picture.final.dtype}"))
    if config.python is not None:
        rows.append(("python", str(getattr(config.python, "__qualname__", type(config.python).__qualname__))))
    rows.append(("made on", ", ".join(config.nodes) if config.nodes else "this machine"))
    rows.append(("next batch", f"epoch {place[0]}, position {place[1]:,}"))
    table = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"<div><b>feedwater.Loader</b><table>{table}</table>{_show_pictures(last, replay)}</div>"


def _show_pictures(last: Last | None, replay: Callable[[int], Sample]) -> str:
    """Those of the first samples of the last batch, as nodes made them."""
    indices = [] if last is None else [int(index) for index in last.indices if index >= 0][:MOST_PICTURES]
    try:
        samples = [replay(index) for index in indices]
    except Error:  # nodes are gone, say: what a notebook shows is no place to fail
        return ""
    return "".join(_show_sample(sample) for sample in samples)


def _show_sample(sample: Sample) -> str:
    pictures: Iterable[Any] = [view.image for view in sample.views] or [sample.image]
    title = html.escape(f"{sample.key}, label {sample.label}", quote=True)
    return "".join(
        f'<img title="{title}" src="data:image/png;base64,{base64.b64encode(encode_png(picture)).decode()}">'
        for picture in pictures
        if picture is not None
    )


def encode_png(picture: npt.NDArray[np.uint8]) -> bytes:
    """A PNG of a picture [H, W, 3], every n-th pixel of a large one."""
    every = max(1, max(picture.shape[:2]) // MOST_SIDE)
    small = np.ascontiguousarray(picture[::every, ::every])
    height, width = small.shape[:2]
    lines = np.zeros((height, 1 + 3 * width), np.uint8)  # each begins with its filter, which is none
    lines[:, 1:] = small.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
