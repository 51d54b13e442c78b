"""The whole path, files to tensor: PyTorch's DataLoader against Feedwater, on the same cores and the same pictures.

    python bench/path.py FOLDER [--rounds 5] [--images 4000] [--index]

The same work for all: decode, RandomResizedCrop(224), RandomHorizontalFlip, shuffled, collated to uint8 batches of 128
in the training process, which reads one pixel of each. The files are in the page cache. Every run is a process of its
own; contestants take turns, forwards and backwards. Rates are those from the 8th batch on, Feedwater's from the 32nd,
when its memory is there; each round's are compared with that round's best number of workers of the DataLoader. CPU is
that of all processes a contestant needs. With --index Feedwater runs a second time with an index of the pictures that
was made before, else it runs without.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import machine
from figure import Figure, report

BATCH = 128
SKIP, FRESH = 8, 24
"""Batches before a run is measured, and as many more for Feedwater: until then it touches slots for the first time."""
CROP = "crop"
SIZES = {
    CROP: 224,
    "eval": 224,
    "RandAugment": 224,
    "affine": 224,
    "SimCLR": 224,
    "crop to 64": 64,
    "pad, crop to 32": 32,
}
"""The transforms that are measured, and how many rows and columns they make."""
PIL, IO, LOCAL, NODE = "DataLoader, PIL", "DataLoader, torchvision.io", "feedwater, local", "feedwater, one node"
INDEXED, KEPT = ", indexed", ", pixels kept"
KEEP = "8GiB"
"""What decoded pictures may take, of those who keep them."""


@dataclass(frozen=True)
class Work:
    """What is done to pictures: the transforms of a name in SIZES, in batches of so many."""

    transforms: str = CROP
    batch: int = BATCH


# -- contestants: each yields uint8 batches ---------------------------------------------------------------------------


def transforms(name: str) -> list[Any]:
    """The transforms of a name in SIZES, but for what makes a tensor."""
    from torchvision.transforms import v2

    size, flip = SIZES[name], v2.RandomHorizontalFlip()
    crop = [v2.RandomResizedCrop(size), flip]
    chains: dict[str, list[Any]] = {
        "eval": [v2.Resize(256), v2.CenterCrop(size)],
        "RandAugment": [*crop, v2.RandAugment()],
        "affine": [*crop, v2.RandomAffine(10, translate=(0.1, 0.1), scale=(0.9, 1.1))],
        "SimCLR": [*crop, v2.ColorJitter(0.8, 0.8, 0.8, 0.2), v2.RandomGrayscale(0.2), v2.GaussianBlur(23)],
        "pad, crop to 32": [v2.RandomCrop(size, padding=4), flip],
    }
    return chains.get(name, crop)


def dataloader(folder: str, images: int, work: Work, workers: int, decode: str) -> Iterator[Any]:
    """torch.utils.data.DataLoader over torchvision's ImageFolder, without a pause between epochs."""
    import torch
    from torchvision.datasets import ImageFolder
    from torchvision.io import ImageReadMode, decode_image, read_file
    from torchvision.transforms import v2

    def tensor(path: str) -> torch.Tensor:
        return decode_image(read_file(path), mode=ImageReadMode.RGB)

    augment = transforms(work.transforms)
    if decode == IO:
        data = ImageFolder(folder, v2.Compose(augment), loader=tensor)
    else:
        data = ImageFolder(folder, v2.Compose([*augment, v2.PILToTensor()]))
    endless = torch.utils.data.ConcatDataset[Any]([data] * (images // len(data)))
    ahead = 4 if workers else None
    options: dict[str, Any] = {"num_workers": workers, "prefetch_factor": ahead, "drop_last": True}
    for batch, _ in torch.utils.data.DataLoader(endless, work.batch, shuffle=True, **options):
        yield batch


def feedwater(folder: str, images: int, work: Work) -> Iterator[Any]:
    """feedwater.Loader, with this machine's pipeline or the node's that BENCH_NODE names."""
    import feedwater
    from torchvision.transforms import v2

    transform = v2.Compose(transforms(work.transforms))
    nodes = os.environ.get("BENCH_NODE")
    steps = images // work.batch + FRESH
    options: dict[str, Any] = {"batch_size": work.batch, "shuffle": True, "nodes": nodes, "steps_per_epoch": steps}
    with feedwater.Loader("bench" if nodes else folder, transform, **options) as loader:
        for batch, _ in loader:
            yield batch


def contestants(indexed: bool = True, kept: bool = True) -> dict[str, Callable[[str, int, Work], Iterator[Any]]]:
    """All of them by name, the DataLoader with each number of workers that may be its best."""
    some = sorted({1, 2, 4, machine.CORES, 2 * machine.CORES})
    pil = {f"{PIL}, {n} workers": partial(dataloader, workers=n, decode=PIL) for n in (0, *some)}
    io = {f"{IO}, {n} workers": partial(dataloader, workers=n, decode=IO) for n in some if n > 1}
    ours = [name + index for index in ("", INDEXED)[: 1 + indexed] for name in (LOCAL, NODE)]
    ours += [LOCAL + KEPT] if kept else []
    return {**pil, **io, **dict.fromkeys(ours, feedwater)}


# -- one run ----------------------------------------------------------------------------------------------------------


def run(name: str, folder: str, images: int, work: Work) -> None:
    """Runs a contestant in this process and prints what it did as JSON."""
    make = contestants()[name]
    print(json.dumps(meter(make(folder, images, work), SKIP + FRESH * (make is feedwater), work)))


def meter(given: Iterator[Any], skip: int = SKIP, work: Work = Work()) -> dict[str, float]:
    """What it took to get these batches, but for the first so many."""
    family = {os.getpid(), *map(int, os.environ.get("BENCH_NODE_PID", "").split())}
    shape = (work.batch, 3, SIZES[work.transforms], SIZES[work.transforms])
    started = time.perf_counter()
    batches = 0
    first = begun = cpu = last = 0.0
    for batch in given:
        assert sorted(batch.shape) == sorted(shape), batch.shape
        int(batch[-1, -1, -1, -1])
        batches += 1
        last = time.perf_counter()
        if batches == 1:
            first = last - started
        if batches == skip:
            begun, cpu = last, machine.cpu_seconds(family)
    counted = (batches - skip) * work.batch
    spent = machine.cpu_seconds(family) - cpu
    return {"rate": counted / (last - begun), "cpu": spent / counted * 1000, "first": first}


# -- all runs ---------------------------------------------------------------------------------------------------------


def measure(
    apart: machine.Apart, name: str, folder: str, images: int, index: str, work: Work = Work()
) -> dict[str, float]:
    """Runs a contestant in a process of its own, with a fresh node if it needs one."""
    with ExitStack() as stack:
        index = index if name.endswith((INDEXED, KEPT)) else "off"
        environment = {"PYTHONWARNINGS": "ignore", "FEEDWATER_INDEX": index}  # warnings of more workers than cores
        environment |= {"FEEDWATER_KEEP": KEEP} if name.endswith(KEPT) else {}
        if name.startswith(NODE):
            pid, address = stack.enter_context(machine.node(folder, index))
            environment |= {"BENCH_NODE": address, "BENCH_NODE_PID": str(pid)}
        arguments = [folder, "--images", str(images), "--run", name]
        arguments += ["--transforms", work.transforms, "--batch", str(work.batch)]
        return apart.run(*arguments, environment=environment)


Runs = dict[str, list[dict[str, float]]]


def ratios(runs: Runs, name: str) -> list[float]:
    """A contestant's rates against the best number of workers with PIL, round by round."""
    best = [max(rates) for rates in zip(*([r["rate"] for r in runs[rival]] for rival in runs if rival.startswith(PIL)))]
    return [result["rate"] / rival for result, rival in zip(runs[name], best)]


def table(runs: Runs) -> str:
    """Medians, with the range of the rounds."""
    lines = [f"{'':38}{'images/s':>22}{'CPU-s/1000':>12}{'first batch':>13}{'against PIL':>22}"]
    for name, results in runs.items():
        rates = [result["rate"] for result in results]
        cpu, first = (statistics.median(result[key] for result in results) for key in ("cpu", "first"))
        against = ratios(runs, name)
        rate = f"{statistics.median(rates):.0f} ({min(rates):.0f} … {max(rates):.0f})"
        ratio = f"{statistics.median(against):.2f}× ({min(against):.2f} … {max(against):.2f})"
        lines.append(f"{name:38}{rate:>22}{cpu:12.2f}{first:11.2f} s{ratio:>22}")
    return "\n".join(lines)


def figures(runs: Runs) -> list[Figure]:
    """What must be reached."""
    limits = {LOCAL: 3.0, NODE: 2.5, LOCAL + INDEXED: 3.8}
    found = [
        Figure(f"images/s: {name}, against DataLoader + PIL", statistics.median(ratios(runs, name)), limit, "×", True)
        for name, limit in limits.items()
        if name in runs
    ]
    if LOCAL + INDEXED in runs:
        gains = [ours["rate"] / other["rate"] for ours, other in zip(runs[LOCAL + INDEXED], runs[LOCAL])]
        found.append(Figure("images/s: with an index, against without", statistics.median(gains), 1.2, "×", True))
    return found


def warm(folder: str) -> int:
    """Reads all files, so that they are in the page cache. Their number."""
    files = [Path(place) / name for place, _, names in os.walk(folder, followlinks=True) for name in names]
    for file in files:
        file.read_bytes()
    return len(files)


def main() -> None:
    """Runs all contestants and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="image folder, classes in sub-folders")
    parser.add_argument("--rounds", type=int, default=5, help="how often each contestant runs")
    parser.add_argument("--images", type=int, default=4000, help="images per run, rounded up to whole passes")
    parser.add_argument("--index", action="store_true", help="run Feedwater with an index of the pictures too")
    parser.add_argument("--figures", metavar="FILE", help="add the figures to this file")
    for hidden in ("--run", "--transforms", "--batch"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run(args.run, args.folder, args.images, Work(args.transforms, int(args.batch)))
        return
    pictures = warm(args.folder)
    images = pictures * -(-args.images // pictures)
    print(f"{machine.settings()}\n{pictures} pictures, {images} images per run, {args.rounds} rounds\n", flush=True)
    runs: Runs = {name: [] for name in contestants(args.index, kept=False)}
    with tempfile.TemporaryDirectory() as index:
        if args.index:
            subprocess.run([machine.program(), "index", args.folder, "--index", index], check=True)
        apart = machine.Apart()
        for number, name in machine.turns(args.rounds, list(runs)):
            result = measure(apart, name, args.folder, images, index)
            runs[name].append(result)
            print(f"  round {number + 1}: {name:38}{result['rate']:8.0f} images/s", flush=True)
    print(f"\n{table(runs)}\n{apart.others()}")
    report(figures(runs), args.figures)


if __name__ == "__main__":
    main()
