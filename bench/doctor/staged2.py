"""The same twenty problems once more, in other people's scripts: other models, batches, steps, loaders and causes.

    python bench/doctor/staged2.py NAME        FIX=1: with the problem mended; STAGED_DEBUG=1: what the run measured

What no machine of ours has, a GPU, is simgpu's; networks on it are Net. The others train on the CPU, really.
"""

from __future__ import annotations

import base64
import io
import json
import multiprocessing as mp
import os
import resource
import socket
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import data
import numpy as np
import simgpu
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

FIX = os.environ.get("FIX") == "1"
DEBUG = os.environ.get("STAGED_DEBUG") == "1"

waits: list[float] = []
periods: list[float] = []
gpu_ms = 0.0


def batches(loader: Any) -> Any:
    """The loader itself, with what the simulated GPU must know of it; in debug mode a stopwatch around it."""
    simgpu.stream.pinned = loader.pin_memory
    return stopwatch(loader) if DEBUG else loader


def stopwatch(loader: Any) -> Iterator[Any]:
    """Writes down how long each batch was waited for, and how long each step took with that."""
    began = time.perf_counter()
    for batch in loader:
        waits.append(time.perf_counter() - began)
        yield batch
        now = time.perf_counter()
        periods.append(now - began)
        began = now


def cpu_ms(who: int) -> float:
    """What this process has taken, or its children that ended."""
    used = resource.getrusage(who)
    return (used.ru_utime + used.ru_stime) * 1e3


def report(name: str, elapsed: float, imports_ms: float) -> None:
    """What the stopwatch saw."""
    own, others = cpu_ms(resource.RUSAGE_SELF) - imports_ms, cpu_ms(resource.RUSAGE_CHILDREN)
    n, total = max(1, len(periods)), sum(periods) or 1.0
    print(
        f"{name + (' FIX' if FIX else ''):30}{len(periods):5} steps {elapsed:5.1f} s"
        f"  period {statistics.median(periods or [0]) * 1e3:6.1f} median {total / n * 1e3:6.1f} mean ms"
        f"  wait {sum(waits) / n * 1e3:6.1f} ms {sum(waits) / total:4.0%}  GPU {gpu_ms / 1e3 / elapsed:4.0%}"
        f"  CPU per step: self {own / n:5.1f} workers {others / n:5.1f} ms"
        f"  peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB",
        file=sys.stderr,
    )


def submit(milliseconds: float, kernels: int, host_us: float) -> None:
    """So many equal kernels on the simulated GPU."""
    global gpu_ms
    gpu_ms += milliseconds
    for _ in range(kernels):
        simgpu.launch(milliseconds / kernels, host_us)


class Kernels(torch.autograd.Function):
    """GPU work of a layer: so long forward, twice that backward."""

    @staticmethod
    def forward(ctx: Any, x: Any, milliseconds: float, kernels: int, host_us: float) -> Any:
        ctx.work = milliseconds, kernels, host_us
        submit(milliseconds, kernels, host_us)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        milliseconds, kernels, host_us = ctx.work
        submit(2 * milliseconds, 2 * kernels, host_us)
        return grads[0], None, None, None


class Net(nn.Module):
    """A network that takes the simulated GPU so many ms per step, a third of it forward."""

    def __init__(self, classes: int, step_ms: float, kernels: int = 100, host_us: float = 5) -> None:
        super().__init__()
        self.work = step_ms / 3, kernels, host_us
        self.backbone = nn.Linear(32, 32)
        self.head = nn.Linear(32, classes)

    def forward(self, x: Any) -> Any:
        x = self.backbone(x.flatten(1)[:, :32].float())
        return self.head(Kernels.apply(x, *self.work))  # type: ignore[no-untyped-call]


def cuda() -> torch.device:
    """The simulated GPU; torch itself must not look for a real one when it pins."""
    simgpu.install()
    torch.accelerator.is_available = lambda: False
    warnings.filterwarnings("ignore", message=".*pin_memory.*")
    return torch.device("cuda")


# ------------------------------------------------------------------------------------------------------- the loader


class Speech(Dataset):  # type: ignore[type-arg]
    """Log-mel spectrograms of waveforms, made as they are asked for."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.rng = np.random.default_rng(0)
        self.waves = self.rng.standard_normal((32, 56000)).astype(np.float32)
        self.mel = np.abs(self.rng.standard_normal((257, 40))).astype(np.float32)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        wave = self.waves[i % len(self.waves)]
        speed = self.rng.uniform(0.9, 1.1)
        wave = np.interp(np.arange(0, len(wave) - 1, speed), np.arange(len(wave)), wave)
        wave = np.append(wave[0], wave[1:] - 0.97 * wave[:-1])
        frames = np.lib.stride_tricks.sliding_window_view(wave, 512)[::160][:300] * np.hamming(512)
        power = np.abs(np.fft.rfft(frames)) ** 2
        logmel = np.log(np.einsum("tf,fm->tm", power, self.mel) + 1e-6)
        return {"x": torch.from_numpy(logmel.astype(np.float32)), "word": i % 35}


def few_workers() -> None:
    """Keyword spotting; nobody ever gave num_workers."""
    device = cuda()
    torch.set_num_threads(1)
    loader = DataLoader(Speech(250 * 8), batch_size=8, shuffle=True, num_workers=2 if FIX else 0)
    model = Net(35, step_ms=22).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for batch in batches(loader):
        logits = model(batch["x"].to(device))
        loss = nn.functional.cross_entropy(logits, batch["word"].to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class JsonLines(IterableDataset):  # type: ignore[type-arg]
    """Photographs in lines of JSON: each worker parses every line and keeps its share."""

    def __init__(self, file: Path, n: int) -> None:
        self.file, self.n = file, n
        self.augment = v2.Compose([v2.RandomResizedCrop(192), v2.RandomHorizontalFlip(), v2.PILToTensor()])

    def lines(self) -> Iterator[str]:
        left = self.n
        while left:
            with self.file.open() as stream:
                for line in stream:
                    yield line
                    left -= 1
                    if not left:
                        return

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        rank, size = (worker.id, worker.num_workers) if worker else (0, 1)
        for i, line in enumerate(self.lines()):
            record = json.loads(line)
            jpeg = base64.b64decode(record["image"])
            if i % size == rank:
                yield self.augment(Image.open(io.BytesIO(jpeg)).convert("RGB")), record["label"]


def too_many() -> None:
    """Sixteen workers, as on the big machine, each of which parses the whole file."""
    device = cuda()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.jsonl"
        with file.open("w") as out:
            for label, photo in enumerate(data.photographs()[:96]):
                image = base64.b64encode(Path(photo).read_bytes()).decode()
                out.write(json.dumps({"label": label, "image": image}) + "\n")
        workers = 2 if FIX else 16
        loader = DataLoader(JsonLines(file, 250 * 12), batch_size=12, num_workers=workers, pin_memory=True)
        model = Net(96, step_ms=24).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for images, labels in batches(loader):
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


class Volumes(Dataset):  # type: ignore[type-arg]
    """Scans of 40 slices: rotated, smoothed, scaled, with torch."""

    def __init__(self, n: int) -> None:
        self.n, self.scan = n, torch.randn(1, 1, 40, 80, 80)
        self.kernel = torch.ones(1, 1, 3, 3, 3) / 27

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        theta = torch.eye(3, 4)[None] + 0.05 * torch.randn(1, 3, 4)
        grid = nn.functional.affine_grid(theta, [1, 1, 40, 80, 80], align_corners=False)
        scan = nn.functional.grid_sample(self.scan, grid, align_corners=False)
        for _ in range(6):
            scan = scan * 1.1 + 0.05 * torch.randn(()) - scan.mean()
            scan = torch.clamp(torch.exp(-scan.abs()), 0.01, 1)
        scan = nn.functional.avg_pool3d(scan, 3, 1, 1)
        return (scan - scan.mean()) / scan.std(), i % 2


def use_threads(_worker: int) -> None:
    """What the cluster's wiki says."""
    torch.set_num_threads(1 if FIX else 16)


def thread_oversubscription() -> None:
    """Two workers with sixteen threads each."""
    device = cuda()
    loader = DataLoader(
        Volumes(250 * 2),
        batch_size=2,
        num_workers=2,
        worker_init_fn=use_threads,
        prefetch_factor=3,
        pin_memory=True,
        drop_last=True,
    )
    model = Net(2, step_ms=14).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for scan, finding in batches(loader):
        optimizer.zero_grad()
        criterion(model(scan.to(device, non_blocking=True)), finding.to(device, non_blocking=True)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


class Throttle:
    """So many bytes a second for all processes together."""

    def __init__(self, rate: float) -> None:
        self.rate, self.free_at = rate, mp.Value("d", 0.0)

    def take(self, nbytes: int) -> None:
        with self.free_at.get_lock():
            now = time.monotonic()
            until = max(now, self.free_at.value) + nbytes / self.rate
            self.free_at.value = until
        time.sleep(until - now)


class SlowFile(io.FileIO):
    """A file on a disk that many share."""

    def __init__(self, file: Path, disk: Throttle) -> None:
        super().__init__(file)
        self.disk = disk

    def read(self, size: int | None = -1, /) -> bytes:
        os.posix_fadvise(self.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        found = super().read(-1 if size is None else size) or b""
        self.disk.take(len(found))
        return found


class Shards(Dataset):  # type: ignore[type-arg]
    """Records of equal size in large files, in any order."""

    shape = (3, 96, 96)
    size = 3 * 96 * 96
    each = 256

    def __init__(self, folder: Path, n: int, rate: float) -> None:
        self.n, self.disk = n, Throttle(rate)
        self.files = [folder / f"shard-{i:03}.bin" for i in range(4)]
        for file in self.files:
            file.write_bytes(os.urandom(self.size * self.each))
        os.sync()

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        shard, at = divmod(i % (self.each * len(self.files)), self.each)
        with SlowFile(self.files[shard], self.disk) as file:
            file.seek(at * self.size)
            record = np.frombuffer(file.read(self.size), np.uint8).reshape(self.shape)
        return torch.from_numpy(record.copy()).float().div_(255), at % 10


def slow_disk() -> None:
    """Random records of shards on a volume of 13 MB/s."""
    device = cuda()
    with tempfile.TemporaryDirectory() as folder:
        dataset = Shards(Path(folder), 260 * 32, 1e9 if FIX else 13e6)
        loader = DataLoader(dataset, 32, shuffle=True, num_workers=3, pin_memory=True, persistent_workers=True)
        model = Net(10, step_ms=24).to(device)
        optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
        for step, (x, y) in enumerate(batches(loader)):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.3f}")


def scans(folder: Path) -> None:
    """Photographs as the scanner left them: six megapixels; mended: as the network wants them."""
    for i, photo in enumerate(data.photographs()[:8]):
        kind = folder / ("cat" if i % 2 else "dog")
        kind.mkdir(exist_ok=True)
        with Image.open(photo) as image:
            size = (330, 220) if FIX else (3000, 2000)
            image.convert("RGB").resize(size, Image.Resampling.BILINEAR).save(kind / f"{i}.jpg", quality=90)


class Repeated(Dataset):  # type: ignore[type-arg]
    """A data set many times over."""

    def __init__(self, dataset: Any, n: int) -> None:
        self.dataset, self.n = dataset, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return self.dataset[i % len(self.dataset)]


def giant_images() -> None:
    """Fine-tuning at 128 pixels on originals of 3000 × 2000, batches of two, gradients over four of them."""
    device = cuda()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scans(folder)
        transform = v2.Compose([v2.Resize(146), v2.CenterCrop(128), v2.PILToTensor(), v2.ToDtype(torch.float32, True)])
        dataset = Repeated(ImageFolder(str(folder), transform), 250 * 2)
        loader = DataLoader(dataset, batch_size=2, shuffle=True, num_workers=2, pin_memory=True)
        model = Net(2, step_ms=16).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for i, (images, labels) in enumerate(batches(loader)):
            images, labels = images.to(device), labels.to(device)
            (nn.functional.cross_entropy(model(images), labels) / 4).backward()
            if i % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()


class Tokens(Dataset):  # type: ignore[type-arg]
    """Sentences of token numbers."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(1)
        self.n = n
        self.sentences = [rng.integers(5, 30000, rng.integers(200, 384)).tolist() for _ in range(256)]

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> list[int]:
        return self.sentences[i % len(self.sentences)]


def mask_tokens(sentences: list[list[int]]) -> dict[str, Any]:
    """Masked language modelling, token by token."""
    longest = max(len(sentence) for sentence in sentences)
    rng = np.random.default_rng()
    inputs, labels, mask = [], [], []
    for sentence in sentences:
        row, label, attend = [], [], []
        for token in sentence:
            if rng.random() < 0.15:
                label.append(token)
                dice = rng.random()
                if dice < 0.8:
                    row.append(4)
                elif dice < 0.9:
                    row.append(int(rng.integers(5, 30000)))
                else:
                    row.append(token)
            else:
                label.append(-100)
                row.append(token)
            attend.append(1)
        while len(row) < longest:
            row.append(0)
            label.append(-100)
            attend.append(0)
        inputs.append(row)
        labels.append(label)
        mask.append(attend)
    return {"input": torch.tensor(inputs), "labels": torch.tensor(labels), "mask": torch.tensor(mask)}


def mask_tensors(sentences: list[list[int]]) -> dict[str, Any]:
    """The same at once."""
    inputs = nn.utils.rnn.pad_sequence([torch.tensor(sentence) for sentence in sentences], batch_first=True)
    mask = (inputs > 0).long()
    chosen = (torch.rand(inputs.shape) < 0.15) & (inputs > 0)
    labels = torch.where(chosen, inputs, -100)
    return {"input": torch.where(chosen, 4, inputs), "labels": labels, "mask": mask}


def slow_collate() -> None:
    """Masks for a language model, made in a loop over every token of the batch."""
    device = cuda()
    collate = mask_tensors if FIX else mask_tokens
    loader = DataLoader(
        Tokens(256 * 320), batch_size=320, shuffle=True, collate_fn=collate, num_workers=2, pin_memory=True
    )
    model = Net(2, step_ms=20).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=100)
    for batch in batches(loader):
        batch = {key: value.to(device, non_blocking=True) for key, value in batch.items()}
        loss = nn.functional.cross_entropy(model(batch["input"] / 30000), batch["mask"][:, -1])
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


class Tiles(Dataset):  # type: ignore[type-arg]
    """Aerial tiles and their masks, in memory."""

    def __init__(self, n: int) -> None:
        self.n, self.tiles = n, torch.rand(16, 4, 128, 128)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        tile = self.tiles[i % 16]
        return {"image": tile, "mask": tile[0] > 0.5}


def pin_memory_off() -> None:
    """Segmentation: 8 MB a batch from pageable memory; non_blocking=True does nothing for that."""
    device = cuda()
    loader = DataLoader(Tiles(250 * 32), batch_size=32, num_workers=2, prefetch_factor=4, pin_memory=FIX)
    model = Net(2, step_ms=30).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for batch in batches(loader):
        image = batch["image"].to(device, non_blocking=True)
        mask = batch["mask"].to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(image), mask[:, 0, 0].long())
        loss.backward()
        optimizer.step()


class Tagger(nn.Module):
    """A recurrent tagger."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.embed = nn.Embedding(5000, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.tag = nn.Linear(width, 20)

    def forward(self, x: Any) -> Any:
        return self.tag(self.rnn(self.embed(x))[0])


class Sentences(Dataset):  # type: ignore[type-arg]
    """Sentences from the shortest to the longest."""

    def __init__(self, n: int) -> None:
        self.lengths = torch.linspace(16, 160, n).long()

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> Any:
        x = torch.randint(0, 5000, (int(self.lengths[i]),))
        return x, x % 20


def pad(samples: list[Any]) -> Any:
    """Pads a batch."""
    xs, ys = zip(*samples)
    pads = nn.utils.rnn.pad_sequence
    return pads(list(xs), batch_first=True), pads(list(ys), batch_first=True, padding_value=-1)


def straggler() -> None:
    """Two ranks cut a list sorted by length in half: one has all long sentences, and the other waits for it."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, n, size = torch.distributed.get_rank(), 4160, 8
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0)) if FIX else torch.arange(n)
    own = order.chunk(2)[rank]
    own = own[torch.randperm(len(own), generator=torch.Generator().manual_seed(1))]
    loader = DataLoader(
        torch.utils.data.Subset(Sentences(n), own.tolist()), batch_size=size, collate_fn=pad, num_workers=1
    )
    model = nn.parallel.DistributedDataParallel(Tagger())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches(loader):
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.distributed.destroy_process_group()


class Ratings(Dataset):  # type: ignore[type-arg]
    """Users and items by name: each worker reads the names first."""

    names: dict[str, int]

    def __init__(self, index: Path, n: int) -> None:
        self.index, self.n = index, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return torch.tensor([self.names[f"item-{i * 7919 % 200000}"], i]).float().repeat(16), i % 5


def read_names(_worker: int) -> None:
    """What every new worker does first."""
    info = get_worker_info()
    assert info is not None
    dataset: Any = info.dataset
    dataset.names = json.loads(dataset.index.read_text())


def epoch_boundary() -> None:
    """Fourteen short epochs: at the start of each, new workers read a large index."""
    device = cuda()
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "names.json"
        index.write_text(json.dumps({f"item-{i}": i for i in range(500000)}))
        loader = DataLoader(
            Ratings(index, 20 * 64),
            batch_size=64,
            shuffle=True,
            num_workers=2,
            worker_init_fn=read_names,
            pin_memory=True,
            persistent_workers=FIX,
        )
        model = Net(5, step_ms=30).to(device)
        optimizer = torch.optim.Adagrad(model.parameters())
        for _ in range(14):
            for x, y in batches(loader):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
                optimizer.step()


# --------------------------------------------------------------------------------------------------------- the step


def gpu_bound() -> None:
    """A large network on small crops of photographs: the GPU is never idle."""
    device = cuda()
    loader = DataLoader(data.Photos(260 * 4), batch_size=4, shuffle=True, num_workers=2, pin_memory=True)
    model = Net(1000, step_ms=62, kernels=250, host_us=8).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    for images, labels in batches(loader):
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        loss = nn.functional.cross_entropy(model(images / 255), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


class Unrolled(nn.Module):
    """A recurrent cell, time step by time step; mended: the cell's loop as one kernel."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.write, self.keep, self.out = nn.Linear(8, width), nn.Linear(width, width), nn.Linear(width, 4)

    def forward(self, x: Any) -> Any:
        h = x.new_zeros(len(x), 32)
        steps = x.shape[1]
        if FIX:
            h = torch.tanh(self.write(x.mean(1)) + self.keep(h))
            return self.out(Kernels.apply(h, steps * 3 * 0.004, 1, 5))  # type: ignore[no-untyped-call]
        for t in range(steps):
            h = torch.tanh(self.write(x[:, t]) + self.keep(h))
            h = Kernels.apply(h, 3 * 0.004, 3, 6)  # type: ignore[no-untyped-call]
        return self.out(h)


def launch_bound() -> None:
    """A Python loop over 160 time steps of sensor data: thousands of kernels of 4 µs."""
    device = cuda()
    torch.set_num_threads(1)
    dataset = TensorDataset(torch.randn(300 * 16, 160, 8), torch.randint(0, 4, (300 * 16,)))
    loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=1, pin_memory=True)
    model = Unrolled().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in batches(loader):
        loss = nn.functional.cross_entropy(model(x.to(device, non_blocking=True)), y.to(device, non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def match_anchors(boxes: Any) -> Any:
    """Targets of a detector, on the host, in Python."""
    data.burn(16)
    return boxes.sum(1).long() % 8


def sync_in_loop() -> None:
    """A detector whose log wants three numbers of every step, so that the host never works ahead of the GPU."""
    device = cuda()
    dataset = TensorDataset(torch.rand(280 * 8, 3, 48, 48), torch.randint(0, 40, (280 * 8, 4)))
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=1, pin_memory=True)
    model = Net(8, step_ms=28).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history = []
    right: Any = 0
    for step, (images, boxes) in enumerate(batches(loader)):
        targets = match_anchors(boxes).to(device, non_blocking=True)
        output = model(images.to(device, non_blocking=True))
        loss = nn.functional.cross_entropy(output, targets)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        hits = (output.argmax(1) == targets).sum()
        if FIX:
            right += hits
            if step % 70 == 69:
                history.append((loss.item(), norm.item(), right.item()))
        else:
            right += hits.item()
            history.append((loss.item(), norm.item(), right))
    print(f"{len(history)} lines of log, last {history[-1]}")


def gpu_shared() -> None:
    """Somebody else's notebook has the same GPU: for most of the time a kernel takes more than twice as long."""
    device = cuda()
    if not FIX and "STAGED_PID" in os.environ:
        Path(os.environ["STAGED_PID"]).write_text(str(os.getpid()))
    alone = simgpu.launch

    def shared(milliseconds: float, host_us: float = 5) -> None:
        alone(milliseconds * (1.0 if FIX or time.monotonic() % 2 < 0.5 else 2.4), host_us)

    simgpu.launch = shared
    dataset = TensorDataset(torch.rand(260 * 24, 3, 32, 32), torch.randint(0, 10, (260 * 24,)))
    loader = DataLoader(dataset, batch_size=24, shuffle=True, num_workers=1, pin_memory=True, drop_last=True)
    model = Net(10, step_ms=26).to(device)
    optimizer = torch.optim.NAdam(model.parameters())
    for x, y in batches(loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


class AverageMeter:
    """As in a thousand scripts."""

    def __init__(self) -> None:
        self.sum: Any = 0.0
        self.count = 0

    def update(self, value: Any, n: int) -> None:
        self.sum += value * n
        self.count += n

    @property
    def average(self) -> Any:
        return self.sum / max(1, self.count)


def convnet(width: int, classes: int) -> nn.Module:
    """A small network for the CPU."""
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, classes),
    )


def graph_leak() -> None:
    """A meter adds up losses with all that they were computed from."""
    dataset = TensorDataset(torch.rand(300 * 16, 3, 40, 40), torch.randint(0, 10, (300 * 16,)))
    loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=1)
    model = convnet(24, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = AverageMeter()
    for step, (x, y) in enumerate(batches(loader)):
        loss = nn.functional.cross_entropy(model(x), y)
        losses.update(loss.item() if FIX else loss, len(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 59:
            print(f"step {step + 1} average loss {float(losses.average):.4f}")


def missing_no_grad() -> None:
    """model.eval() before each validation, and nothing against gradients in it."""
    train = TensorDataset(torch.rand(45 * 16, 3, 32, 32), torch.randint(0, 10, (45 * 16,)))
    val = TensorDataset(torch.rand(16 * 48, 3, 32, 32), torch.randint(0, 10, (16 * 48,)))
    train_loader = DataLoader(train, batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
    val_loader = DataLoader(val, batch_size=48)
    model = convnet(24, 10)
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(5):
        model.train()
        for x, y in batches(train_loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        outputs, labels = [], []
        with torch.set_grad_enabled(not FIX):
            for x, y in batches(val_loader):
                outputs.append(model(x))
                labels.append(y)
        right = (torch.cat(outputs).argmax(1) == torch.cat(labels)).float().mean()
        print(f"epoch {epoch} accuracy {right:.3f}")


def tiny_model() -> None:
    """Logistic regression on photographs: a step of next to nothing after a decode of milliseconds."""
    loader = DataLoader(data.Photos(250 * 10), batch_size=10, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.AvgPool2d(32), nn.Flatten(), nn.Linear(3 * 7 * 7, 1000))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1) if FIX else torch.optim.Adam(model.parameters())
    for x, y in batches(loader):

        def closure(x: Any = x, y: Any = y) -> Any:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.float() / 255), y)
            loss.backward()
            return loss

        optimizer.step(closure)


# ------------------------------------------------------------------------------------------------------ the machine

NEIGHBOUR = """
import os, sys, time, zlib
if os.fork():
    os._exit(0)
os.setsid()
text, end = os.urandom(60000) + bytes(60000), time.time() + 60
while os.path.exists(f"/proc/{sys.argv[1]}") and time.time() < end:
    zlib.compress(text, 9)
"""
"""Somebody's backup: not this program's child, and gone when this program is."""


def starved() -> None:
    """Three backups run on the two cores that the workers need."""
    device = cuda()
    if not FIX:
        for _ in range((os.cpu_count() or 2) * 3 // 2):
            subprocess.run([sys.executable, "-S", "-c", NEIGHBOUR, str(os.getpid())], check=True)
    transform = v2.Compose([v2.RandomResizedCrop(160), v2.ColorJitter(0.2, 0.2), v2.PILToTensor()])
    files = data.photographs()

    class Views(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 250 * 6

        def __getitem__(self, i: int) -> Any:
            with Image.open(files[i % len(files)]) as image:
                return transform(image.convert("RGB")), i % 100

    loader = DataLoader(Views(), batch_size=6, shuffle=True, num_workers=2, pin_memory=True)
    model = Net(100, step_ms=24).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches(loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


FEATURES = (128, 256)


class FeatureServer(socketserver.ThreadingTCPServer):
    """Sends features by number, over one link for all."""

    daemon_threads = True

    def __init__(self, rate: float) -> None:
        super().__init__(("127.0.0.1", 0), FeatureHandler)
        self.rate, self.free_at, self.lock = rate, 0.0, threading.Lock()
        self.blob = np.random.default_rng(3).standard_normal(FEATURES).astype(np.float16).tobytes()

    def pace(self, nbytes: int) -> None:
        with self.lock:
            now = time.monotonic()
            self.free_at = max(now, self.free_at) + nbytes / self.rate
            until = self.free_at
        time.sleep(until - now)


class FeatureHandler(socketserver.BaseRequestHandler):
    """Eight bytes of number in, an array out."""

    def handle(self) -> None:
        server = self.server
        assert isinstance(server, FeatureServer)
        while self.request.recv(8):
            for at in range(0, len(server.blob), 16384):
                piece = server.blob[at : at + 16384]
                server.pace(len(piece))
                self.request.sendall(piece)


class Features(Dataset):  # type: ignore[type-arg]
    """Features of a server, over one connection per worker."""

    connection: socket.socket | None = None

    def __init__(self, address: Any, n: int) -> None:
        self.address, self.n = address, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        if self.connection is None:
            self.connection = socket.create_connection(self.address)
        self.connection.sendall(i.to_bytes(8, "little"))
        array = np.empty(FEATURES, np.float16)
        view = memoryview(array).cast("B")
        while view:
            view = view[self.connection.recv_into(view) :]
        return torch.from_numpy(array), i % 50


def slow_link() -> None:
    """Features from a node that stores them, at 14 MB/s."""
    device = cuda()
    server = FeatureServer(1e9 if FIX else 14e6)
    node = mp.get_context("fork").Process(target=server.serve_forever, daemon=True)
    node.start()
    loader = DataLoader(Features(server.server_address, 260 * 16), 16, num_workers=3, pin_memory=True)
    model = Net(50, step_ms=26).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for x, y in batches(loader):
        loss = nn.functional.cross_entropy(model(x.to(device, non_blocking=True)), y.to(device, non_blocking=True))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    node.terminate()
    node.join()


class Crawled(Dataset):  # type: ignore[type-arg]
    """Photographs off the web: what does not open is tried three times, and then left out."""

    def __init__(self, files: list[str], n: int) -> None:
        self.files, self.n = files, n
        self.transform = v2.Compose([v2.Resize((144, 144)), v2.RandomCrop(128), v2.PILToTensor()])

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        file = self.files[i % len(self.files)]
        for attempt in range(3):
            try:
                return self.transform(Image.open(file).convert("RGB")), i % 7
            except Exception:
                time.sleep(0.015 * (attempt + 1))
        return None


def without_none(samples: list[Any]) -> Any:
    """A batch of those that opened."""
    return torch.utils.data.default_collate([sample for sample in samples if sample is not None])


def crawl(folder: Path) -> list[str]:
    """Copies, of which every sixth is cut short, empty, or a page that says 404."""
    files = []
    for i, photo in enumerate(data.photographs()[:120]):
        jpeg = Path(photo).read_bytes()
        if i % 6 == 5 and not FIX:
            jpeg = (jpeg[: len(jpeg) * 2 // 3], b"", b"<html><body>404 Not Found</body></html>")[i // 6 % 3]
        files.append(folder / f"{i:04}.jpg")
        files[-1].write_bytes(jpeg)
    return [str(file) for file in files]


def bad_images() -> None:
    """One photograph in six is damaged."""
    device = cuda()
    with tempfile.TemporaryDirectory() as folder:
        dataset = Crawled(crawl(Path(folder)), 250 * 12)
        loader = DataLoader(dataset, 12, shuffle=True, num_workers=2, collate_fn=without_none, pin_memory=True)
        model = Net(7, step_ms=28).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02, nesterov=True, momentum=0.9)
        for x, y in batches(loader):
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()


def healthy() -> None:
    """A small transformer on the CPU; its tokens are there long before it wants them."""
    torch.set_num_threads(1)
    dataset = TensorDataset(torch.randint(0, 800, (260 * 8, 48)), torch.randint(0, 3, (260 * 8,)))
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=1, drop_last=True)
    embed = nn.Embedding(800, 128)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 384, batch_first=True), 2)
    head = nn.Linear(128, 3)
    model = nn.Sequential(embed, encoder)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-3)
    seen = 0.0
    for step, (x, y) in enumerate(batches(loader)):
        loss = nn.functional.cross_entropy(head(model(x).mean(1)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += loss.item()
        if step % 100 == 99:
            print(f"step {step + 1} loss {seen / (step + 1):.3f}")


SCRIPTS: dict[str, tuple[str, Callable[[], None]]] = {
    "few_workers": ("too-few-workers", few_workers),
    "too_many": ("too-many-workers", too_many),
    "thread_oversubscription": ("worker-threads", thread_oversubscription),
    "slow_disk": ("storage", slow_disk),
    "giant_images": ("giant-images", giant_images),
    "slow_collate": ("slow-collate", slow_collate),
    "pin_memory_off": ("pin-memory-off", pin_memory_off),
    "straggler": ("straggler-rank", straggler),
    "epoch_boundary": ("epoch-boundary", epoch_boundary),
    "gpu_bound": ("gpu-bound", gpu_bound),
    "launch_bound": ("launch-bound", launch_bound),
    "sync_in_loop": ("sync-in-loop", sync_in_loop),
    "gpu_shared": ("gpu-shared", gpu_shared),
    "graph_leak": ("graph-leak", graph_leak),
    "missing_no_grad": ("missing-no-grad", missing_no_grad),
    "tiny_model": ("tiny-model", tiny_model),
    "starved": ("cpu-starved", starved),
    "slow_link": ("slow-link", slow_link),
    "bad_images": ("bad-images", bad_images),
    "healthy": ("step-bound", healthy),
}
"""What it should be called, and the script."""


if __name__ == "__main__":
    started, imports = time.perf_counter(), cpu_ms(resource.RUSAGE_SELF)
    SCRIPTS[sys.argv[1]][1]()
    simgpu.synchronize()
    if DEBUG:
        report(sys.argv[1], time.perf_counter() - started, imports)
