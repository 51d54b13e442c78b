"""The whole path of two builds, files to tensor, in turns: whether a change made anything slower.

    python bench/builds.py OLD FOLDER [--transforms eval] [--images 16000] [--pairs 20] [--index]

OLD is a checkout of another commit in which `make build` was run; the other build is this checkout's. Each run is a
process of its own: a Loader with no nodes, over files in the page cache, measured as bench/path.py measures it. The
ratios are those of two runs of the same pair, old to new, of CPU time of trainer and agent together, and of images a
second. Behind the median stands the interval that holds it in 95 of 100 cases, by the order of the pairs alone. CPU
time tells changes of 1 % on a machine that others use too; rates need one that is quiet.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
from math import comb
from pathlib import Path

import machine
from path import BATCH, CROP, LOCAL, SIZES, warm


def main() -> None:
    """Runs both builds in turns and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="checkout of the other commit, built")
    parser.add_argument("folder", help="image folder, classes in sub-folders")
    parser.add_argument("--transforms", choices=SIZES, default=CROP, help="what is done to the pictures")
    parser.add_argument("--batch", type=int, default=BATCH, help="images in a batch")
    parser.add_argument("--images", type=int, default=16_000, help="images per run, rounded up to whole passes")
    parser.add_argument("--pairs", type=int, default=20, help="how often each build runs")
    parser.add_argument("--index", action="store_true", help="with an index that was made before")
    args = parser.parse_args()
    trees = {"old": args.old.resolve(), "new": machine.ROOT}
    pictures = warm(args.folder)
    images = pictures * -(-args.images // pictures)
    run = ["--images", str(images), "--run", LOCAL, "--transforms", args.transforms, "--batch", str(args.batch)]
    with tempfile.TemporaryDirectory() as directory:
        environments = {name: _environment(tree, Path(directory) / name) for name, tree in trees.items()}
        for name, environment in environments.items():
            index = environment["FEEDWATER_INDEX"] if args.index else "off"
            if args.index:
                program = environment["FEEDWATER_BINARY"]
                subprocess.run([program, "index", args.folder, "--index", index], check=True, stdout=subprocess.DEVNULL)
            environments[name] = environment | {"FEEDWATER_INDEX": index}
        apart = machine.Apart(str(machine.ROOT / "bench" / "path.py"))
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
        for _, name in machine.turns(args.pairs, list(trees)):
            runs[name].append(apart.run(args.folder, *run, environment=environments[name]))
    pairs = list(zip(runs["old"], runs["new"]))
    rates = [statistics.median(result["rate"] for result in runs[name]) for name in trees]
    print(f"{args.folder}, {args.transforms}, {'with' if args.index else 'no'} index, {len(pairs)} pairs")
    print(f"CPU time, old to new:   {_describe([old['cpu'] / new['cpu'] for old, new in pairs])}")
    print(f"images/s, new to old:   {_describe([new['rate'] / old['rate'] for old, new in pairs])}")
    print(f"images/s:               {rates[0]:.0f}, {rates[1]:.0f}; {apart.others()}")


def _environment(tree: Path, index: Path) -> dict[str, str]:
    """What makes a run one of the build in a checkout."""
    program = tree / "bin" / "feedwater"
    if not program.exists():
        raise SystemExit(f"{tree} is not built: run `make build` there")
    return {
        "PYTHONPATH": str(tree / "python"),
        "FEEDWATER_BINARY": str(program),
        "FEEDWATER_INDEX": str(index),
        "PYTHONWARNINGS": "ignore",
    }


def _describe(values: list[float]) -> str:
    """The median with its interval, and the range."""
    ordered = sorted(values)
    low, high = (ordered[place] for place in interval(len(ordered)))
    return f"{statistics.median(ordered):.3f} ({low:.3f} … {high:.3f}), all {ordered[0]:.3f} … {ordered[-1]:.3f}"


def interval(count: int) -> tuple[int, int]:
    """Places, in order, of the values between which the median lies in 95 of 100 cases; the ends where there are few.

    Of count values k or fewer lie below the median with the probability of k or fewer heads in as many throws.
    """
    tail, outside = 0, 0
    for k in range(count // 2):
        tail += comb(count, k)
        if 2 * tail > 0.05 * 2**count:
            break
        outside = k + 1
    return max(outside - 1, 0), count - 1 - max(outside - 1, 0)


if __name__ == "__main__":
    main()
