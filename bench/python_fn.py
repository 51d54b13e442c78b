"""python= against the same function in a DataLoader: images per second, and CPU milliseconds per image.

    python bench/python_fn.py --data FOLDER [--library albumentations|kornia] [--workers 2] [--rounds 5]

Both crop to 224 and flip; then each sample goes through the function of examples/*_transform.py. Each contestant runs
in a process of its own, in turn; its first epoch, with all that starts, is not counted. CPU is that of the process and
all its children. Both work ahead, over an epoch's end too for ours: have enough epochs that this does not count.
Medians over the rounds, and the ratio's range.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CONTESTANTS = ("feedwater", "DataLoader")


class Behind:
    """torchvision's transforms, and behind them the function, as a DataLoader has it."""

    def __init__(self, transform, function):
        self.transform, self.function = transform, function

    def __call__(self, picture):
        import numpy as np
        import torch

        image = self.transform(picture)
        image = image if isinstance(image, torch.Tensor) else np.asarray(image)
        rng = np.random.default_rng(int(torch.randint(2**32, ())))
        return self.function({"image": image}, rng)["image"]


def loader_of(name, args):
    """A loader of two processes or so."""
    import torch
    from torchvision.transforms import v2

    sys.path.insert(0, str(EXAMPLES))
    function = __import__(f"{args.library}_transform").fn
    ops = [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip()]
    if args.library == "kornia":
        ops += [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    transform = v2.Compose(ops)
    if name == "feedwater":
        import feedwater

        return feedwater.Loader(
            args.data, transform, python=function, python_workers=args.workers, batch_size=32, shuffle=True
        )
    from torchvision.datasets import ImageFolder

    return torch.utils.data.DataLoader(
        ImageFolder(args.data, Behind(transform, function)),
        batch_size=32,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
        multiprocessing_context="spawn",
    )


def cpu_s():
    """CPU time of this process and its children so far."""
    import psutil

    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        times = process.cpu_times()
        total += times.user + times.system
    return total


def run(name, args):
    """One contestant, in this process."""
    loader = loader_of(name, args)
    for _ in loader:
        pass
    began, cpu, images = time.perf_counter(), cpu_s(), 0
    for _ in range(args.epochs):
        for image, _ in loader:
            images += len(image)
    wall, cpu = time.perf_counter() - began, cpu_s() - cpu
    print(json.dumps({"rate": images / wall, "cpu_ms": 1e3 * cpu / images}))


def main():
    """All contestants, in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--library", choices=("albumentations", "kornia"), default="albumentations")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--only", choices=CONTESTANTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only:
        run(args.only, args)
        return
    figures = {name: [] for name in CONTESTANTS}
    for _ in range(args.rounds):
        for name in CONTESTANTS:
            command = [sys.executable, *sys.argv, "--only", name]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            figures[name].append(json.loads(done.stdout.splitlines()[-1]))
    for name, rounds in figures.items():
        rate, cpu = (statistics.median(one[key] for one in rounds) for key in ("rate", "cpu_ms"))
        print(f"{name:12}{rate:8.0f} images/s{cpu:8.2f} ms of CPU per image")
    ours, theirs = figures.values()
    for key, words in (("rate", "images/s"), ("cpu_ms", "CPU per image")):
        ratios = sorted((o[key] / t[key] if key == "rate" else t[key] / o[key]) for o, t in zip(ours, theirs))
        print(f"{words}: {statistics.median(ratios):.2f} times as good ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
