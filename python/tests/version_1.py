"""Runs whose states an older build saved, with what it made of them next: version_1.json. It was made in a tree of
that build by

PYTHONPATH=python FEEDWATER_BINARY=bin/feedwater python .../version_1.py > .../version_1.json
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from torchvision.transforms import v2

import feedwater

PICTURES = Path(__file__).resolve().parents[2] / "pipeline" / "numerics"
CUT = 3
"""Batches before the state."""


def transforms() -> v2.Compose:
    return v2.Compose([v2.RandomResizedCrop(32), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4), v2.RandAugment()])


RUNS: dict[str, dict[str, Any]] = {
    "ordinary": {"formats": ("jpg", "gif", "bmp"), "options": {}},
    "turned": {"formats": ("jpg",), "options": {"apply_exif": True}},
    "png": {"formats": ("png",), "options": {}},
    "webp": {"formats": ("webp",), "options": {}},
}
"""What each run is of: the pictures' formats, and options of its Loader."""


def folder(parent: Path, run: str) -> Path:
    """A folder of pictures that is the same each time."""
    root = parent / run
    for i, path in enumerate(sorted(p for p in PICTURES.iterdir() if p.suffix[1:] in RUNS[run]["formats"])):
        for k in range(3):
            target = root / f"{i % 2}" / f"{k}-{path.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return root


def loader(parent: Path, run: str, source: str | None = None, **options: Any) -> feedwater.Loader:
    given = {"batch_size": 4, "shuffle": True, "seed": 11, "local_workers": 1, "on_error": "skip", "max_errors": 1}
    return feedwater.Loader(source or folder(parent, run), transforms(), **{**given, **RUNS[run]["options"], **options})


def digests(loader: feedwater.Loader, most: int) -> list[str]:
    """Digests of the next batches, within this epoch."""
    all_ = []
    for image, label in loader:
        h = hashlib.sha256(repr((tuple(image.shape), str(image.dtype), label.tolist())).encode())
        h.update(image.contiguous().numpy().tobytes())
        all_.append(h.hexdigest()[:24])
        if len(all_) == most:
            break
    return all_


def main() -> None:
    made = {}
    for run in RUNS:
        with tempfile.TemporaryDirectory() as parent:
            with loader(Path(parent), run) as begun:
                digests(begun, CUT if run not in ("png", "webp") else 1)
                state = begun.state_dict()
            with loader(Path(parent), run) as resumed:
                resumed.load_state_dict(state)
                made[run] = {"state": state, "batches": digests(resumed, 100)}
    json.dump(made, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
