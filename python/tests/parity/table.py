"""The table of docs/parity.md: python tests/parity/table.py PHOTOS [--images 200] [--epochs 5] [NAME…]."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import PIL
import torch
import torchvision
from case import compare
from cases import CASES

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reference import arithmetic


def main() -> int:
    """Prints it as Markdown, and fails if a case does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=5, help="draws for each image")
    parser.add_argument("names", nargs="*", help="parts of the names of cases; all if none")
    arguments = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    print(f"torchvision {torchvision.__version__}, torch {torch.__version__}, Pillow {PIL.__version__}\n")
    print("| transform | dialect | images × draws | applied | values that differ | by at most |")
    print("|---|---|--:|--:|--:|--:|")
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch, arithmetic():
        for case in (case for family in CASES.values() for case in family):
            if arguments.names and not any(name in case.name for name in arguments.names):
                continue
            r = compare(case, arguments.photos, Path(scratch) / "linked", arguments.images, arguments.epochs)
            share = f"{r.differing / max(r.values, 1):.2%}" if r.differing else "0"
            counts = f"{r.images} × {arguments.epochs} | {r.applied} | {share} | {r.largest}"
            print(
                f"| `{case.name}` | {case.dialect} | {counts} |" + (f" wrong: {r.first}" if r.first else ""), flush=True
            )
            wrong += bool(r.first)
    return min(wrong, 1)


if __name__ == "__main__":
    raise SystemExit(main())
