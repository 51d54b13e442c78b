"""One training loop of ResNet-50 on a GPU, measured: what main.py runs in processes of their own. Prints JSON.

python loop.py FOLDER WAY [--kind amp] [--workers 8] [--batch 256] [--steps 100] [--warm 30] [--trace FILE]

WAY is dataloader, feedwater or device, which is Feedwater with device="cuda"; KIND is how the step is made. With
--again the loop gets its first batch again and again, so that data is always there and all else is the same. Its meter
is the product's own, around next, whatever the loader is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import traceback
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import repeat
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch
from feedwater._meter.idle import Meter
from feedwater._meter.pace import Pace, StepTime
from gaps import NEXT, read
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function
from torchvision.models import resnet50
from torchvision.transforms import v2

AUGMENT = [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip()]
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
FLOATS = (
    v2.ToImage(),
    v2.ToDtype(torch.float32, scale=True),
    v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
)


def dataloader(folder: str, batch: int, workers: int) -> Iterator[Any]:
    """PyTorch's, with everything that speeds it up."""
    from torchvision.datasets import ImageFolder

    data = ImageFolder(folder, v2.Compose([*AUGMENT, v2.PILToTensor()]))
    options: dict[str, Any] = {"prefetch_factor": 4, "persistent_workers": True} if workers else {}
    loader = torch.utils.data.DataLoader(
        data, batch, shuffle=True, drop_last=True, num_workers=workers, pin_memory=True, **options
    )
    while True:
        yield from loader


def feedwater(
    folder: str, batch: int, _workers: int, device: str | None = None, more: tuple[Any, ...] = ()
) -> Iterator[Any]:
    """Ours, on this machine's cores; more ops are done behind the others."""
    import feedwater

    options: dict[str, Any] = {"batch_size": batch, "shuffle": True, "drop_last": True, "device": device}
    with feedwater.Loader(folder, v2.Compose([*AUGMENT, *more]), **options) as loader:
        while True:
            yield from loader


def on_device(folder: str, batch: int, workers: int, more: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Ours, with batches on the GPU."""
    return feedwater(folder, batch, workers, "cuda", more)


WAYS = {"dataloader": dataloader, "feedwater": feedwater, "device": on_device}


KINDS = ("plain", "amp", "graph", "streams", "ddp", "compiled")
"""What takes longest to begin comes last."""


class Step:
    """A step of training, channels last, with uint8 pictures normalised on the GPU; in bfloat16 but for plain.

    graph replays a CUDA graph of it, streams normalises in a stream of its own, ddp is one rank over NCCL.
    """

    def __init__(self, kind: str = "amp") -> None:
        self._kind = kind
        self._model = resnet50().cuda().to(memory_format=torch.channels_last)
        if kind == "compiled":
            self._model = torch.compile(self._model)
        elif kind == "ddp":
            store = torch.distributed.HashStore()
            torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
            self._model = nn.parallel.DistributedDataParallel(self._model)
        self._side = torch.cuda.Stream()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._static: tuple[torch.Tensor, torch.Tensor] | None = None
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.1, momentum=0.9, foreach=True)
        self._mean = torch.tensor(MEAN, device="cuda").view(1, 3, 1, 1)
        self._std = torch.tensor(STD, device="cuda").view(1, 3, 1, 1)
        torch.backends.cudnn.benchmark = True

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        images, labels = images.to("cuda", non_blocking=True), labels.to("cuda", non_blocking=True)
        if self._kind == "graph":
            self._replay(images, labels)
            return
        if self._kind != "streams":
            self._train(self._normalise(images), labels)
            return
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            pictures = self._normalise(images)
        images.record_stream(self._side)
        torch.cuda.current_stream().wait_stream(self._side)
        pictures.record_stream(torch.cuda.current_stream())
        self._train(pictures, labels)

    def _normalise(self, images: torch.Tensor) -> torch.Tensor:
        return images.float().sub_(self._mean).div_(self._std).contiguous(memory_format=torch.channels_last)

    def _replay(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        """The first call warms up on a stream of its own and captures."""
        if self._graph is None or self._static is None:
            self._static = images.clone(), labels.clone()
            self._side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._side):
                for _ in range(3):
                    self._train(self._normalise(self._static[0]), self._static[1])
            torch.cuda.current_stream().wait_stream(self._side)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):  # pin_memory has a thread
                self._train(self._normalise(self._static[0]), self._static[1])
        self._static[0].copy_(images)
        self._static[1].copy_(labels)
        self._graph.replay()

    def _train(self, pictures: torch.Tensor, labels: torch.Tensor) -> None:
        with nullcontext() if self._kind == "plain" else torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(self._model(pictures), labels)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()


class Readings:
    """What feedwater-nvml tells of this process's GPU meanwhile."""

    def __init__(self, program: str) -> None:
        self._uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
        command = [program, "--interval", "0.5s"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True) if program else None

    def end(self) -> dict[str, float | None]:
        """Means of what it told; None: unknown."""
        lines: list[str] = []
        if self._process is not None:
            self._process.terminate()
            lines = self._process.communicate(timeout=60)[0].splitlines()
        gpus = [gpu for line in lines for gpu in json.loads(line)["gpus"] if gpu.get("uuid") == self._uuid]
        return {name: self._mean([gpu.get(name) for gpu in gpus]) for name in ("utilisation", "sm_activity")}

    @staticmethod
    def _mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return fmean(known) if known else None


class Known(NamedTuple):
    """Steps whose idle the meter knows."""

    steps: int
    idle_s: float
    step_s: float


def turns(batches: Iterator[Any], step: Step, pace: Pace, steps: int) -> Known:
    """So many steps, and what the meter says of them. When it returns the GPU has done them all."""
    times: list[StepTime | None] = []
    for _ in range(steps):
        entered = pace.enter_next()
        with record_function(f"{NEXT}next"):
            images, labels = next(batches)
        pace.leave_next(entered)
        times.append(pace.step)
        step(images, labels)
    torch.cuda.synchronize()
    pace.meter.read_marks()
    idle = [(one.idle_s, one.step_s) for one in times if one is not None and one.idle_s is not None]
    known = [(idle_s, step_s) for idle_s, step_s in idle if not isnan(idle_s)]
    return Known(len(known), sum(idle_s for idle_s, _ in known), sum(step_s for _, step_s in known))


def meter_us(turns: int = 2000) -> float:
    """CPU time of the loop's thread that the meter takes a step: two events recorded, and read later."""
    meter = Meter()
    began = time.thread_time()
    for _ in range(turns):
        meter.enter_next()
        meter.leave_next(0.0, 1.0)
    return (time.thread_time() - began) / turns * 1e6


def measured(args: argparse.Namespace) -> dict[str, Any]:
    """Per step, in seconds; after a warm-up."""
    batches = WAYS[args.way](args.folder, args.batch, args.workers)
    if args.again:
        batches = repeat(next(batches))
    step, pace = Step(args.kind), Pace()
    turns(batches, step, pace, args.warm)
    pace.end_pass()  # the synchronize was no step
    readings = Readings(args.nvml)
    tracing = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) if args.trace else nullcontext()
    began, waited = time.perf_counter(), pace.wait_s
    with tracing as profiler:
        known = turns(batches, step, pace, args.steps)
    took = time.perf_counter() - began
    told: dict[str, Any] = {
        "step_s": took / args.steps,
        "images_s": args.steps * args.batch / took,
        "wait_s": (pace.wait_s - waited) / args.steps,
        "meter_idle_s": known.idle_s / known.steps if known.steps else None,
        "meter_share": known.idle_s / known.step_s if known.steps else None,
        "idle_unknown": pace.meter.unknown,
        "meter_us": meter_us(),
        "nvml": readings.end(),
    }
    if profiler is not None:
        profiler.export_chrome_trace(args.trace)
        told["trace"] = read(json.loads(Path(args.trace).read_text()))._asdict()
    return told


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--kind", choices=KINDS, default="amp")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm", type=int, default=30)
    parser.add_argument("--trace", help="file for a trace of the steps")
    parser.add_argument("--nvml", default="", help="feedwater-nvml")
    args = parser.parse_args()
    try:
        told = measured(args)
    except Exception as error:  # whoever runs it tells why, in the file of its results too
        traceback.print_exc()
        told = {"error": f"{type(error).__name__}: {str(error).strip()}".partition("\n")[0]}
    print(json.dumps(told))
    if "error" in told:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
