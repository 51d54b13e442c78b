"""SPDL: a pipeline of threads, each of which decodes, crops and resizes a file by FFmpeg's filters.

It needs FFmpeg's libraries from the system (Debian: libavdevice59), which no wheel brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import spdl.io
import torch
from crops import crop_box
from spdl.pipeline import PipelineBuilder

from peer import BATCH, MEAN, SIZE, STD, Base, files


def decode(sample: tuple[int, str]) -> tuple[int, Any]:
    """A file's frames, cropped, resized and flipped, and its number."""
    number, path = sample
    packets = spdl.io.demux_image(path)
    rng = np.random.default_rng()
    left, top, right, bottom = crop_box(packets.width, packets.height, rng)
    flip = "hflip," if rng.random() < 0.5 else ""
    crop = f"crop={right - left}:{bottom - top}:{left}:{top}:exact=1"
    chain = f"{crop},scale={SIZE}:{SIZE}:flags=bilinear,{flip}format=pix_fmts=rgb24"
    return number, spdl.io.decode_packets(packets, filter_desc=chain)


def collate(samples: list[tuple[int, Any]]) -> tuple[torch.Tensor, list[int]]:
    """A batch of frames as normalised floats."""
    pixels = spdl.io.to_torch(spdl.io.convert_frames([frames for _, frames in samples]))
    mean, std = (torch.from_numpy(np.array(value, np.float32) * 255) for value in (MEAN, STD))
    return pixels.to(torch.float32).sub_(mean).div_(std), [number for number, _ in samples]


class Peer(Base):
    """A pipeline for each epoch, as its examples have it."""

    packages = ("spdl", "torch")

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Batches of the pipelines."""
        torch.set_num_threads(1)
        settings = self.settings
        samples, rng = list(enumerate(map(str, files(settings.folder)))), np.random.default_rng()
        for _ in range(settings.epochs):
            order = [samples[place] for place in rng.permutation(len(samples))]
            builder = PipelineBuilder().add_source(order)
            builder = builder.pipe(decode, concurrency=settings.workers).aggregate(BATCH, drop_last=True)
            pipeline = builder.pipe(collate).add_sink(2).build(num_threads=settings.workers + 1)
            with pipeline.auto_stop():
                yield from pipeline.get_iterator()
