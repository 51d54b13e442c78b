"""torchvision in one process and one thread, on crops that are given: what bench/pixels/table.py compares with.

    python bench/pixels/peer.py FOLDER CROPS PICTURES KIND

The files are in memory. Each transform is torchvision's own, as a training script has it, and draws as ever; only the
crop and the flip are then those of the file of crops, so that all make the same pictures. It answers the orders of
bench/pixels/main.go.
"""

from __future__ import annotations

import io
import json
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import v2

SIZE, BATCH = 224, 128
EFFECTS: dict[str, Callable[[], list[Any]]] = {
    "pil": list,
    "tensor": list,
    "randaugment": lambda: [v2.RandAugment()],
    "colorjitter": lambda: [v2.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "simclr": lambda: [v2.ColorJitter(0.8, 0.8, 0.8, 0.2), v2.RandomGrayscale(0.2), v2.GaussianBlur(23, (0.1, 2.0))],
}


class ListedCrop(v2.RandomResizedCrop):
    """RandomResizedCrop whose draw is thrown away for one that is given."""

    given: dict[str, int]

    def make_params(self, flat_inputs: list[Any]) -> dict[str, int]:
        super().make_params(flat_inputs)
        return self.given


class Peer:
    """The files of a folder, and who makes pictures of them."""

    def __init__(self, folder: str, crops: str, pictures: int, kind: str) -> None:
        lines = [line.split(" ", 5) for line in Path(crops).read_text().splitlines()]
        self.files = [(Path(folder) / line[5]).read_bytes() for line in lines[:pictures]]
        self.crops = [[int(number) for number in line[:5]] for line in lines]
        self.crop, self.flip = ListedCrop(SIZE), v2.RandomHorizontalFlip()
        last = [] if kind == "tensor" else [v2.PILToTensor()]
        self.transform = v2.Compose([self.crop, self.flip, *EFFECTS[kind](), *last])
        self.decode = tensor if kind == "tensor" else pil
        self.batch: list[torch.Tensor | None] = [None] * BATCH

    def make(self, i: int, epoch: int) -> torch.Tensor:
        """Picture i of an epoch."""
        top, left, height, width, flip = self.crops[epoch * len(self.files) + i]
        self.crop.given = {"top": top, "left": left, "height": height, "width": width}
        self.flip.p = float(flip)
        made: torch.Tensor = self.transform(self.decode(self.files[i]))
        self.batch[i % BATCH] = made
        return made

    def check(self, epoch: int) -> dict[str, Any]:
        """Checksums of an epoch's pixels."""
        made = (self.make(i, epoch).permute(1, 2, 0).contiguous().numpy() for i in range(len(self.files)))
        return {"crcs": [zlib.crc32(pixels) for pixels in made]}

    def time(self, epoch: int) -> dict[str, Any]:
        """What an epoch takes."""
        wall, cpu = time.perf_counter(), time.process_time()
        for i in range(len(self.files)):
            self.make(i, epoch)
        return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "images": len(self.files)}


def pil(file: bytes) -> Image.Image:
    """As ImageFolder's loader does."""
    return Image.open(io.BytesIO(file)).convert("RGB")


def tensor(file: bytes) -> torch.Tensor:
    """torchvision's own decoder."""
    return decode_jpeg(torch.frombuffer(bytearray(file), dtype=torch.uint8), mode=ImageReadMode.RGB)


def main() -> None:
    """Answers orders until there are no more."""
    torch.set_num_threads(1)
    folder, crops, pictures, kind = sys.argv[1:]
    peer = Peer(folder, crops, int(pictures), kind)
    for order in sys.stdin:
        word, epoch = order.split()[:2]
        answer = peer.check(int(epoch)) if word == "check" else peer.time(int(epoch))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
