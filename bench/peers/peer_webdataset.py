"""WebDataset: tar files of 256 samples, read by the workers of a WebLoader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import webdataset as wds
from peer_dataloader import augment

from peer import BATCH, Base, files

SHARD = 256


class Peer(Base):
    """Shards in an order that is drawn anew, and a buffer of a thousand samples, as its documentation has it."""

    packages = ("webdataset", "torch", "torchvision", "pillow")

    def prepare(self) -> None:
        """Writes tar files."""
        with wds.ShardWriter(f"{self.settings.prepared}/%04d.tar", maxcount=SHARD, verbose=0) as writer:
            for number, path in enumerate(files(self.settings.folder)):
                writer.write({"__key__": f"{number:06}", "jpg": path.read_bytes(), "cls": number})

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Batches of a WebLoader."""
        torch.set_num_threads(1)
        settings = self.settings
        shards = [str(path) for path in sorted(Path(settings.prepared).glob("*.tar"))]
        data = wds.WebDataset(shards, shardshuffle=len(shards), detshuffle=True, seed=0, empty_check=False)
        data = data.shuffle(1000).decode("pil").to_tuple("jpg", "cls").map_tuple(augment(True), int)
        data = data.batched(BATCH)  # in the workers: a shard is four batches, so that none is short
        options = {"num_workers": settings.workers, "persistent_workers": True, "prefetch_factor": 4}
        loader = wds.WebLoader(data, batch_size=None, **options)
        for _ in range(settings.epochs):
            yield from loader
