"""Data sets of the staged scripts: photographs, and samples that burn a known time."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import nn
from torch.utils.data import Dataset
from torchvision.transforms import v2

crop = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.PILToTensor()])


def photographs() -> list[str]:
    """Files of the folder FEEDWATER_PHOTOS; generated noise without it."""
    folder = os.environ.get("FEEDWATER_PHOTOS")
    if folder:
        return sorted(str(path) for path in Path(folder).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    made = Path(tempfile.gettempdir()) / "feedwater-doctor-bench"
    made.mkdir(exist_ok=True)
    files = [made / f"{i}.jpg" for i in range(20)]
    for i, file in enumerate(files):
        if not file.exists():
            torch.manual_seed(i)
            small = Image.fromarray(torch.randint(0, 255, (50, 40, 3), dtype=torch.uint8).numpy())
            small.resize((500, 375), Image.Resampling.BICUBIC).save(file, quality=92)
    return [str(file) for file in files]


def burn(milliseconds: float) -> None:
    """Computes that long, by the thread's own clock."""
    began = time.thread_time()
    while time.thread_time() - began < milliseconds / 1e3:
        pass


class Photos(Dataset):  # type: ignore[type-arg]
    """Random crops of photographs; before is called with each file."""

    def __init__(self, n: int, before: Callable[[str], None] | None = None, files: list[str] | None = None) -> None:
        self.n, self.before, self.files = n, before, files or photographs()

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        file = self.files[i % len(self.files)]
        if self.before:
            self.before(file)
        with Image.open(file) as image:
            return crop(image.convert("RGB")), i % 1000


class Burn(Dataset):  # type: ignore[type-arg]
    """Samples that cost so much CPU."""

    def __init__(self, n: int, milliseconds: float, shape: tuple[int, ...] = (3, 64, 64)) -> None:
        self.n, self.milliseconds, self.x = n, milliseconds, torch.zeros(shape, dtype=torch.uint8)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        burn(self.milliseconds)
        return self.x.clone(), i % 10


class Blur(Photos):
    """A convolution in the worker, with as many threads as torch likes."""

    kernel = 15

    def __getitem__(self, i: int) -> Any:
        x, y = super().__getitem__(i)
        k = self.kernel
        weights = torch.ones(3, 1, k, k) / k / k
        return nn.functional.conv2d(x.float()[None], weights, padding=k // 2, groups=3)[0].byte(), y


class SlowStart(Burn):
    """The first sample in each process opens an index, imports, warms a cache."""

    start_ms = 250.0

    def __getitem__(self, i: int) -> Any:
        if not hasattr(self, "opened"):
            burn(self.start_ms)
            self.opened = True
        return super().__getitem__(i)


class Bad(Photos):
    """Every fifth file is cut short; the data set swallows that and takes the next."""

    fixed = False

    def __getitem__(self, i: int) -> Any:
        while True:
            try:
                if i % 5 == 0 and not self.fixed:
                    data = Path(self.files[i % len(self.files)]).read_bytes()
                    Image.open(BytesIO(data[: len(data) // 2])).convert("RGB")
                return super().__getitem__(i)
            except OSError:
                i += 1


class Remote(Dataset):  # type: ignore[type-arg]
    """Photographs from a server at so many bytes a second."""

    def __init__(self, n: int, port: int) -> None:
        self.n, self.port, self.number = n, port, len(photographs())

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{i % self.number}") as answer:
            return crop(Image.open(BytesIO(answer.read())).convert("RGB")), 0


def serve(port: int, rate: float) -> None:
    """The server of Remote, until it is killed."""
    import http.server

    files = photographs()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            data = Path(files[int(self.path[1:])]).read_bytes()
            self.send_response(200)
            self.end_headers()
            for at in range(0, len(data), 8192):
                self.wfile.write(data[at : at + 8192])
                time.sleep(8192 / rate)

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), float(sys.argv[2]))
