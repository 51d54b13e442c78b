"""Training scripts on a DataLoader and the same on a Loader: lines changed, and whether the network saw the same.

python bench/scripts/table.py [NAME ...]            prints the table; exits with 1 if a row is not as it should be

Each script is run as it is, with generated pictures of one grey each. hook/sitecustomize.py notes which pictures the
network was trained on, and how many steps the optimizer made. Orders differ, as each loader draws its own: what is
compared are the samples of all epochs, as often as each came.
"""

from __future__ import annotations

import ast
import csv
import difflib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL.Image

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BEFORE, AFTER = HERE / "before", ROOT / "examples" / "frameworks"
PICTURES, CLASSES, LIMIT_S = 32, 3, 400
RANKS = {"dcp": 2, "ddp": 2, "fsdp2": 2}
MOST_LINES = 5
ORDERED = {"sampler"}
"""Where one sampler decides for both, so that the order is the same too."""


@dataclass(frozen=True)
class Outcome:
    """What the network of a script saw."""

    digest: str
    samples: int
    steps: int


@dataclass(frozen=True)
class Row:
    """One kind of script."""

    name: str
    lines: int
    before: Outcome
    after: Outcome

    @property
    def same(self) -> bool:
        """Whether both saw the same."""
        return self.before == self.after

    def __str__(self) -> str:
        result = "the same" if self.same else f"OTHERWISE: {self.before} and {self.after}"
        seen = self.after
        return f"| {self.name} | {self.lines} | {seen.samples} | {seen.steps} | {seen.digest} | {result} |"


def make_data(folder: Path) -> dict[str, list[str]]:
    """Pictures, masks and a list in a folder; the arguments of scripts that take others than the pictures' folder."""
    rows = []
    for number in range(PICTURES):
        label = number * CLASSES // PICTURES
        for kind in (folder / "pictures" / f"class{label}", folder / "flat"):
            kind.mkdir(parents=True, exist_ok=True)
            picture = PIL.Image.fromarray(np.full((20 + number % 3, 24, 3), 4 * number, np.uint8))
            picture.save(kind / f"{number:03}.jpg", quality=95)
        (folder / "masks").mkdir(exist_ok=True)
        PIL.Image.fromarray(np.full((20 + number % 3, 24), label, np.uint8)).save(folder / "masks" / f"{number:03}.png")
        rows.append((f"class{label}/{number:03}.jpg", label))
    with open(folder / "pictures" / "list.csv", "w", newline="") as file:
        csv.writer(file).writerows([("path", "label"), *rows])
    write_coco(folder / "instances.json", [row[0] for row in rows])
    pictures = str(folder / "pictures")
    return {
        "": [pictures],
        "segmentation": [str(folder / "flat"), str(folder / "masks")],
        "detection": [pictures, str(folder / "instances.json")],
        "csv_list": [pictures, str(folder / "pictures" / "list.csv")],
    }


def write_coco(file: Path, names: list[str]) -> None:
    """One box in each picture."""
    sizes = [{"height": 20 + number % 3, "width": 24} for number in range(len(names))]
    images = [{"id": number, "file_name": name, **sizes[number]} for number, name in enumerate(names)]
    box = {"bbox": [2, 3, 8, 9], "area": 72, "iscrowd": 0, "category_id": 1}
    boxes = [{"id": number + 1, "image_id": number, **box} for number in range(len(names))]
    told = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "thing"}]}
    file.write_text(json.dumps(told))


def run_script(script: Path, arguments: list[str], work: Path) -> Outcome:
    """Runs it as people do; raises RuntimeError with what it printed if it fails."""
    seen = work / "seen"
    seen.mkdir(parents=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE / "hook"), str(ROOT / "python")]),
        "SEEN_FOLDER": str(seen),
        "FEEDWATER_CACHE_DIR": str(work / "lists"),
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "HF_HUB_OFFLINE": "1",
        "NO_ALBUMENTATIONS_UPDATE": "1",
    }
    environment.setdefault("FEEDWATER_BINARY", str(ROOT / "bin" / "feedwater"))
    ranks = RANKS.get(script.stem, 1)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    command = [sys.executable, *launch, str(script), *arguments]
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"{script}: exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}")
    return read_outcome(seen, ordered=script.stem in ORDERED)


def read_outcome(folder: Path, *, ordered: bool) -> Outcome:
    """What all ranks saw."""
    told = [json.loads(path.read_text()) for path in sorted(folder.iterdir())]
    samples = [number for one in told for batch in one["seen"] for number in batch]
    counted = samples if ordered else sorted(Counter(samples).items())
    digest = hashlib.sha256(json.dumps(counted).encode()).hexdigest()[:12]
    return Outcome(digest, len(samples), sum(one["steps"] for one in told))


def count_changes(name: str) -> int:
    """Lines that were added or changed; a statement over several lines is one."""
    before, after = (lines_of(folder / f"{name}.py") for folder in (BEFORE, AFTER))
    return sum(line.startswith("+ ") for line in difflib.ndiff(before, after))


def lines_of(path: Path) -> list[str]:
    """Without comments and how the lines are broken."""
    tree = ast.parse(path.read_text())
    return [line for line in ast.unparse(ast.Module(tree.body[1:], [])).splitlines() if line.strip()]


def make_row(name: str, folder: Path) -> Row:
    """Runs both scripts of a kind."""
    arguments = make_data(folder / "data")
    given = arguments.get(name, arguments[""])
    before, after = (
        run_script(place / f"{name}.py", given, folder / kind) for kind, place in (("before", BEFORE), ("after", AFTER))
    )
    return Row(name, count_changes(name), before, after)


def main() -> int:
    """The table."""
    there = sorted(path.stem for path in BEFORE.glob("*.py"))
    names = sys.argv[1:] or there
    if unknown := sorted(set(names) - set(there)):
        sys.exit(f"no script is called {unknown[0]!r}; there are: {', '.join(there)}")
    print("| script | lines changed | samples | steps | digest | beside a DataLoader |\n|---|--:|--:|--:|---|---|")
    bad = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                row = make_row(name, Path(folder))
                bad += not row.same or row.lines > MOST_LINES
                print(row, flush=True)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                bad += 1
                print(f"| {name} | {count_changes(name)} | | | | FAILED |", flush=True)
                print(error, file=sys.stderr)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
