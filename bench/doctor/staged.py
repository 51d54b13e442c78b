"""Twenty ordinary training scripts, each with one problem.

    python bench/doctor/staged.py NAME

VARIANT=1 has other sizes, rates and workers, and in two cases another mechanism. FIX=1 is the script without its
problem. The GPU is simgpu's.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data
import simgpu
import torch
from data import Bad, Blur, Burn, Photos, Remote, SlowStart, burn
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

V, FIX = int(os.environ.get("VARIANT", "0")), os.environ.get("FIX") == "1"
N = int(os.environ.get("STEPS", "150"))
ONE = torch.ones(())
SCRIPTS: dict[str, tuple[str, Callable[[], None]]] = {}
"""Name: the cause that is expected, and the script."""


def staged(cause: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Names what is wrong with a script."""

    def keep(script: Callable[[], None]) -> Callable[[], None]:
        SCRIPTS[script.__name__] = cause, script
        return script

    return keep


def gpu_loop(loader: Any, milliseconds: float, epochs: int = 1) -> None:
    """An asynchronous loop that looks at its loss now and then."""
    simgpu.install()
    simgpu.stream.pinned = True
    step = 0
    for _ in range(epochs):
        for _x, _y in loader:
            simgpu.launch(milliseconds)
            step += 1
            if step % 50 == 0:
                ONE.item()
    simgpu.synchronize()


def cpu_loop(loader: Any, model: Any, times: int = 1) -> None:
    """A loop without a GPU."""
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        for _ in range(times):
            nn.functional.cross_entropy(model(x.float() / 255), y).backward()
        optimizer.step()


def mlp(hidden: int = 256) -> Any:
    """For pictures of 64 x 64."""
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, hidden), nn.ReLU(), nn.Linear(hidden, 10))


@staged("too-few-workers")
def few_workers() -> None:
    """One worker, and a free core."""
    batch = (8, 24)[V]
    gpu_loop(DataLoader(Photos(batch * N), batch, shuffle=True, num_workers=1), (12, 30)[V])


@staged("too-many-workers")
def too_many() -> None:
    """Several workers a core."""
    batch = (8, 16)[V]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1000)]
    model = nn.Sequential(nn.Conv2d(3, 16, 7, 4), nn.ReLU(), *head)
    cpu_loop(DataLoader(Photos(batch * N), batch, shuffle=True, num_workers=(14, 24)[V]), model)


@staged("worker-threads")
def thread_oversubscription() -> None:
    """Workers with a pool of threads each."""
    batch, threads = (6, 12)[V], (8, 16)[V]
    init = None if FIX else (lambda _: torch.set_num_threads(threads))
    gpu_loop(DataLoader(Blur(batch * N), batch, num_workers=2, worker_init_fn=init), (20, 40)[V])


@staged("storage")
def slow_disk() -> None:
    """A source of a few megabytes a second."""
    batch, rate = (4, 16)[V], (4e6, 9e6)[V]

    def throttle(file: str) -> None:
        time.sleep(len(Path(file).read_bytes()) / rate)

    gpu_loop(DataLoader(Photos(batch * N, throttle), batch, num_workers=2), (25, 60)[V])


@staged("giant-images")
def giant_images() -> None:
    """Pictures of 12 or 24 megapixels."""
    size = (512, 384) if FIX else ((4000, 3000), (6000, 4000))[V]
    file = Path(tempfile.gettempdir()) / f"feedwater-staged-{size[0]}.jpg"
    if not file.exists():
        picture = Image.open(data.photographs()[0]).convert("RGB")
        picture.resize(size, Image.Resampling.BICUBIC).save(file, quality=93)
    gpu_loop(DataLoader(Photos(2 * N, None, [str(file)]), 2, num_workers=2), 20)


def by_value(samples: list[Any]) -> Any:
    """Puts a batch together value by value."""
    y = torch.tensor([y for _, y in samples])
    if FIX:
        return torch.stack([x for x, _ in samples]).float() / 255, y
    return torch.tensor([[[[v / 255 for v in row] for row in plane] for plane in x.tolist()] for x, _ in samples]), y


@staged("slow-collate")
def slow_collate() -> None:
    """A collate_fn in Python."""
    batch = (8, 16)[V]
    gpu_loop(DataLoader(Burn(batch * N, 0.2), batch, num_workers=2, collate_fn=by_value), (6, 12)[V])


@staged("pin-memory-off")
def pin_memory_off() -> None:
    """Copies from pageable memory."""
    simgpu.install()
    batch = (64, 128)[V]
    loader = DataLoader(Burn(batch * N, 0.05, (3, 160, 160)), batch, num_workers=2, pin_memory=FIX)
    simgpu.stream.pinned = bool(loader.pin_memory)
    for x, _ in loader:
        x.to("cuda", non_blocking=True)
        simgpu.launch((30, 50)[V])


@staged("straggler-rank")
def straggler() -> None:
    """One of two ranks has slower data."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    slow = dist.get_rank() == 1 and not FIX
    for _ in DataLoader(Burn(8 * N, (3, 5)[V] if slow else 0.5), 8, num_workers=1):
        time.sleep(0.008)
        dist.all_reduce(torch.ones(1000))
    dist.destroy_process_group()


@staged("epoch-boundary")
def epoch_boundary() -> None:
    """Short epochs, and workers that take a while to begin."""
    steps, SlowStart.start_ms = (12, 30)[V], (250.0, 400.0)[V]
    loader = DataLoader(SlowStart(8 * steps, 1), 8, num_workers=2, persistent_workers=FIX)
    gpu_loop(loader, 20, epochs=N // steps + 1)


@staged("gpu-bound")
def gpu_bound() -> None:
    """Nothing is wrong."""
    batch = (4, 8)[V]
    gpu_loop(DataLoader(Photos(batch * N), batch, num_workers=2), (70, 120)[V])


@staged("launch-bound")
def launch_bound() -> None:
    """Hundreds of tiny kernels."""
    simgpu.install()
    for _ in DataLoader(Burn(8 * N, 0.3), 8, num_workers=1):
        for _ in range(20 if FIX else (300, 500)[V]):
            simgpu.launch(0.015, 90)


@staged("sync-in-loop")
def sync_in_loop() -> None:
    """The loss is asked for ten times a step, then the host has work of its own."""
    simgpu.install()
    for _ in DataLoader(Burn(8 * N, 0.3), 8, num_workers=1):
        for _ in range(10):
            simgpu.launch((1.5, 2.5)[V])
            if not FIX:
                ONE.item()
        burn((20, 30)[V])


@staged("gpu-shared")
def gpu_shared() -> None:
    """Another program is on the GPU. bench/doctor/nvml.py says so, in the place of feedwater-nvml."""
    if "STAGED_PID" in os.environ:
        Path(os.environ["STAGED_PID"]).write_text(str(os.getpid()))
    gpu_loop(DataLoader(Burn(8 * N, 0.3), 8, num_workers=1), (80, 50)[V])


@staged("graph-leak")
def graph_leak() -> None:
    """Losses are kept with their graphs."""
    model: Any = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    total, losses = 0, []
    for x, y in DataLoader(Burn(16 * 2 * N, 0.2), 16, num_workers=1):
        loss = nn.functional.cross_entropy(model(x.float() / 255), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept: Any = loss.item() if FIX else loss
        if V:
            losses.append(kept)
        else:
            total += kept


@staged("missing-no-grad")
def missing_no_grad() -> None:
    """Evaluation builds graphs."""
    model = mlp((2000, 800)[V]).eval()
    right = 0
    with torch.set_grad_enabled(not FIX):
        for x, y in DataLoader(Burn(64 * N, 0.2), 64, num_workers=1):
            out = model(x.float() / 255)
            right += int((out.argmax(1) == y).sum())


@staged("tiny-model")
def tiny_model() -> None:
    """A linear model of twenty numbers."""
    points = TensorDataset(torch.randn(32000, 20), torch.randint(0, 2, (32000,)))
    model = nn.Linear(20, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in DataLoader(points, (16, 32)[V] * (16 if FIX else 1), shuffle=True, num_workers=(2, 0)[V]):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@staged("cpu-starved")
def starved() -> None:
    """Other programs on every core."""
    command = [sys.executable, "-S", "-c", "while 1: pass"]
    hogs = [] if FIX else [subprocess.Popen(command) for _ in range((6, 10)[V])]
    try:
        gpu_loop(DataLoader(Photos(8 * N), 8, num_workers=2), 16)
    finally:
        for hog in hogs:
            hog.kill()


@staged("slow-link")
def slow_link() -> None:
    """A server of a few megabytes a second."""
    port = 18000 + os.getpid() % 1000
    server = subprocess.Popen([sys.executable, data.__file__, str(port), str((3e6, 6e6)[V])])
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.2)
        batch = (4, 12)[V]
        gpu_loop(DataLoader(Remote(batch * N, port), batch, num_workers=2), (25, 40)[V])
    finally:
        server.kill()


@staged("bad-images")
def bad_images() -> None:
    """Broken pictures are decoded and dropped."""
    Bad.fixed = FIX
    gpu_loop(DataLoader(Bad(6 * N), 6, num_workers=2), (20, 70)[V])


@staged("step-bound")
def healthy() -> None:
    """Nothing is wrong, and there is no GPU."""
    model = mlp(512)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for x, y in DataLoader(Burn(16 * N, (0.3, 0.6)[V]), 16, num_workers=1):
        optimizer.zero_grad()
        for _ in range(3):
            nn.functional.cross_entropy(model(x.float() / 255), y).backward()
        optimizer.step()
        time.sleep(0.02)


if __name__ == "__main__":
    torch.manual_seed(0)
    SCRIPTS[sys.argv[1]][1]()
