"""torch.utils.data.DataLoader over torchvision's ImageFolder, with persistent workers that read ahead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image, read_file
from torchvision.transforms import v2

from peer import BATCH, MEAN, SIZE, STD, Base


class WithIndex(ImageFolder):
    """An ImageFolder whose labels are the samples' numbers."""

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return super().__getitem__(index)[0], index


def tensor(path: str) -> torch.Tensor:
    """A file, decoded by torchvision.io."""
    return decode_image(read_file(path), mode=ImageReadMode.RGB)


def augment(to_tensor: bool) -> Any:
    """The task; normalised at the end."""
    end = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    return v2.Compose(
        [v2.RandomResizedCrop(SIZE), v2.RandomHorizontalFlip(), *([v2.PILToTensor()] if to_tensor else []), *end]
    )


class Peer(Base):
    """The variants are PIL and io."""

    packages = ("torch", "torchvision", "pillow")

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Batches of a DataLoader."""
        torch.set_num_threads(1)
        settings = self.settings
        if settings.variant == "PIL":
            data = WithIndex(settings.folder, augment(True))
        else:
            data = WithIndex(settings.folder, augment(False), loader=tensor)
        options: dict[str, Any] = {"shuffle": True, "num_workers": settings.workers}
        options |= {"persistent_workers": True, "prefetch_factor": 4}
        loader = torch.utils.data.DataLoader(data, BATCH, **options)
        for _ in range(settings.epochs):
            yield from loader
