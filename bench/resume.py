"""Time to the first batch: resumed at 90 % of an ImageNet-sized epoch, against a fresh start.

    python bench/resume.py FOLDER [--rounds 9]

Links to FOLDER's pictures in 1000 class folders of a temporary directory make a data set of 1,281,167 samples. Each
run is a process of its own: from making the Loader to the first batch of 64, the agent's start included. Its list of
files is in the cache (the first runs, which make it, are not counted).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
from figure import Figure, report

SAMPLES, CLASSES, BATCH = 1_281_167, 1000, 64
CURSOR = SAMPLES * 9 // 10 // BATCH * BATCH
LINKS = 30_000
"""Most hard links to one file; some file systems allow few more."""


def link_farm(folder: str, target: Path) -> None:
    """Fills target with class folders of links, hard ones where the file system has room for them."""
    pictures = [Path(place, name) for place, _, names in os.walk(folder, followlinks=True) for name in sorted(names)]
    hard = LINKS * len(pictures) >= SAMPLES and os.stat(folder).st_dev == os.stat(target).st_dev
    for label in range(CLASSES):
        directory = target / f"n{label:04}"
        directory.mkdir()
        for number in range(label, SAMPLES, CLASSES):
            picture = pictures[number % len(pictures)]
            link = directory / f"{number:07}{picture.suffix}"
            if hard:
                os.link(picture, link)
            else:
                link.symlink_to(picture.absolute())


def first_batch(folder: str, cursor: int) -> dict[str, Any]:
    """Takes the first batch at a cursor of epoch 0."""
    import feedwater
    from feedwater import transforms

    augment = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip()]
    state = json.loads(os.environ.get("BENCH_STATE", "{}"))
    began = time.perf_counter()
    with feedwater.Loader(folder, augment, batch_size=BATCH, shuffle=True) as loader:
        if cursor:
            loader.load_state_dict({**state, "consumed": cursor})
        images, _ = next(iter(loader))
        took = time.perf_counter() - began
        assert len(images) == BATCH and loader.last is not None and loader.last.position == cursor
        return {"ms": took * 1000, "state": loader.state_dict(), "samples": len(loader.dataset)}


def measure(apart: machine.Apart, farm: Path, cache: str, rounds: int) -> dict[str, list[float]]:
    """All runs, in turns."""
    cursors = {"fresh start": 0, "resumed": CURSOR}
    environment = {"XDG_CACHE_HOME": cache}
    first = apart.run(str(farm), "--cursor", "0", environment=environment)
    assert first["samples"] == SAMPLES, first["samples"]
    print(f"first run, which lists the files: {first['ms'] / 1000:.1f} s", flush=True)
    apart.run(str(farm), "--cursor", "0", environment=environment)  # a list of files just changed is not trusted
    environment["BENCH_STATE"] = json.dumps(first["state"])
    took: dict[str, list[float]] = {name: [] for name in cursors}
    for _, name in machine.turns(rounds, list(cursors)):
        took[name].append(apart.run(str(farm), "--cursor", str(cursors[name]), environment=environment)["ms"])
    return took


def main() -> None:
    """Makes the data set, runs everything, prints the figures and removes the data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="image folder, classes in sub-folders")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is run")
    parser.add_argument("--figures", metavar="FILE", help="add the figures to this file")
    parser.add_argument("--cursor", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.cursor is not None:
        print(json.dumps(first_batch(args.folder, args.cursor)))
        return
    print(machine.settings(), flush=True)
    with tempfile.TemporaryDirectory(prefix="feedwater-resume-") as directory:
        farm, cache = Path(directory, "links"), Path(directory, "cache")
        farm.mkdir()
        began = time.perf_counter()
        link_farm(args.folder, farm)
        print(f"{SAMPLES:,} links to its pictures: {time.perf_counter() - began:.0f} s", flush=True)
        apart = machine.Apart()
        took = measure(apart, farm, str(cache), args.rounds)
        others = apart.others()
    for name, times in took.items():
        print(f"{name:12} {statistics.median(times):7.1f} ms to the first batch ({min(times):.1f} … {max(times):.1f})")
    print(others)
    later = statistics.median(took["resumed"]) - statistics.median(took["fresh start"])
    report([Figure("first batch when resumed at 90 % of 1.28 M, later by", later, 50, "ms")], args.figures)


if __name__ == "__main__":
    main()
