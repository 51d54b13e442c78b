"""LitData: chunks of JPEG bytes, streamed by the workers of a StreamingDataLoader."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import litdata
import PIL.Image
import torch
from peer_dataloader import augment

from peer import BATCH, Base, files

TASK = augment(True)


def read(sample: tuple[int, str]) -> dict[str, Any]:
    """What a chunk holds of a file."""
    number, path = sample
    return {"jpeg": Path(path).read_bytes(), "id": number}


class Augmented(litdata.StreamingDataset):
    """Decodes by Pillow."""

    def __getitem__(self, index: Any) -> tuple[torch.Tensor, int]:
        sample = super().__getitem__(index)
        return TASK(PIL.Image.open(io.BytesIO(sample["jpeg"])).convert("RGB")), sample["id"]


class Peer(Base):
    """The state is the loader's."""

    packages = ("litdata", "torch", "torchvision", "pillow")

    def prepare(self) -> None:
        """Writes chunks."""
        samples = list(enumerate(map(str, files(self.settings.folder))))
        litdata.optimize(read, samples, self.settings.prepared, chunk_bytes="64MB", num_workers=1)

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Batches of a StreamingDataLoader."""
        torch.set_num_threads(1)
        settings = self.settings
        data = Augmented(settings.prepared, shuffle=True, drop_last=False)
        options: dict[str, Any] = {"num_workers": settings.workers, "prefetch_factor": 4, "persistent_workers": True}
        self._loader = litdata.StreamingDataLoader(data, batch_size=BATCH, **options)
        if settings.state is not None:
            self._loader.load_state_dict(settings.state)
        for _ in range(settings.epochs):
            yield from self._loader

    def state(self) -> Any:
        """The loader's."""
        return self._loader.state_dict()
