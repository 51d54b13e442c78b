"""Pixels per second against torchvision, tf.data and libjpeg-turbo: one run, the same photographs, one table.

    python bench/pixels/table.py FOLDER [--rounds 5] [--quick] [--whole] [--encoding NAME] [--transforms NAME]
                                        [--tensorflow PYTHON] [--document]

Up to 500 JPEG files of the folder are copied, and saved anew as 4:2:0 of quality 90, a second data set. All are in
the page cache. Contestants take turns, forwards and backwards; a ratio is that of two results of the same round.
The first hundred or so are saved as PNG, WebP and progressive JPEG too, for rows on one core, and with --whole on all,
where other transforms and sizes of pictures come then too.
On one core all make the same crops, others each round, out of files in memory; those that promise torchvision's pixels
are checked to make them; what counts is CPU time. On all cores it is images per second in the training process.

It takes a quarter of an hour. The table is printed and written to OUT.md, all results to OUT.json, a picture to
OUT.svg; --document puts table and picture into docs/speed.md.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from PIL import features

import chart
import machine
import path
import pictures
import report
import unit
import whole
from rows import (
    ENCODED,
    TRANSFORMED,
    Pair,
    Row,
    crop_pairs,
    dataloader_pairs,
    effect_pairs,
    encoding_pairs,
    rows,
    whole_pairs,
)
from unit import TENSOR, C, Data, Programs, Runs

MOST_PICTURES = 500
MOST_ENCODED = 100
ENCODED_IMAGES = 2048
"""Images per run of pictures in another encoding, some of which take a tenth of a second each."""
TRANSFORMS: dict[str, tuple[path.Work, int, int]] = {
    **{name: (path.Work(name), MOST_PICTURES, 4000) for name in (path.CROP, "eval", "RandAugment", "affine", "SimCLR")},
    "12 megapixels": (path.Work(batch=16), 24, 384),
    "JPEG 64×64": (path.Work("crop to 64"), MOST_PICTURES, 20000),
    "PNG 32×32": (path.Work("pad, crop to 32"), MOST_PICTURES, 40000),
}
"""What --transforms measures, of how many pictures, and images per run."""

# -- measuring --------------------------------------------------------------------------------------------------------


class Measurement:
    """All that one run of this script finds out."""

    def __init__(self, programs: Programs, rounds: int, images: int, tensorflow: str | None) -> None:
        self.programs, self.rounds, self.images, self.tensorflow = programs, rounds, images, tensorflow
        self.rows: list[Row] = []
        self.runs: dict[str, Runs] = {}
        self.notes: list[str] = []

    def measure(self, data: Data, limits: bool) -> None:
        """Measures a data set, with the limits and the effects or without."""
        part = f"{data.name}, one core, RandomResizedCrop(224) and flip"
        levels = self.programs.levels
        self._take(part, "cpu", self._crops(data), crop_pairs(levels, limits))
        if limits:
            starts = unit.of_effects(self.programs, data)
            part = f"{data.name}, one core, the same and an effect"
            self._take(part, "cpu", unit.one_core(starts, self.rounds)[0], effect_pairs(levels))
        part = f"{data.name}, all cores, files to batches"
        runs = whole.all_cores(self.programs, data, self.tensorflow, self.rounds, self.images)
        self._take(part, "rate", runs, whole_pairs(limits))

    def measure_encoding(self, data: Data, on_all_cores: bool) -> None:
        """Measures the crops of files in another encoding, on one core and, if asked for, on all."""
        runs, same = unit.one_core(unit.of_encoding(self.programs, data), self.rounds)
        self._check(data, runs, same)
        part = f"{data.name}, one core, RandomResizedCrop(224) and flip"
        self._take(part, "cpu", runs, encoding_pairs(self.programs.levels))
        if on_all_cores:
            part = f"{data.name}, all cores, files to batches"
            runs = whole.against_dataloader(data, self.rounds, ENCODED_IMAGES, path.Work(), kept=True)
            self._take(part, "rate", runs, dataloader_pairs(ENCODED[data.name]))

    def measure_transforms(self, name: str, data: Data, work: path.Work, images: int) -> None:
        """Measures transforms on all cores."""
        runs = whole.against_dataloader(data, self.rounds, images, work, kept=False)
        self._take(f"{name}, all cores, files to batches", "rate", runs, dataloader_pairs(TRANSFORMED[name]))

    def _check(self, data: Data, runs: Runs, same: dict[str, int]) -> None:
        wrong = [name for name in runs if name.startswith("feedwater") and same[name] < data.pictures]
        if wrong:
            raise SystemExit(f"{data.name}: not torchvision's pixels: {', '.join(wrong)}")

    def _crops(self, data: Data) -> Runs:
        runs, same = unit.one_core(unit.of_crops(self.programs, data), self.rounds)
        self._check(data, runs, same)
        counts = ", ".join(f"{name} {same[name]}" for name in (C, TENSOR) if name in same)
        self.note(f"{data.name}: of {data.pictures} pictures equal to torchvision's on PIL: feedwater all, {counts}")
        return runs

    def _take(self, part: str, clock: str, runs: Runs, pairs: Iterable[Pair]) -> None:
        self.runs[part] = runs
        new = list(rows(part, clock, runs, pairs))
        self.rows += new
        print("\n".join(report.text(new)), flush=True)

    def index(self, data: Data) -> None:
        """Makes the index of a data set, and notes how large its pictures are, and what the index took."""
        self.note(f"{data.name}: {pictures.size(data.folder) / data.pictures / 1000:.0f} KB a picture")
        self.note(make_index(data))

    def note(self, line: str) -> None:
        """Prints a line that stands below the table too."""
        self.notes.append(line)
        print(line, flush=True)


def make_index(data: Data) -> str:
    """Makes the index of a data set, and says what it took."""
    command = [machine.program(), "index", data.folder, "--index", data.index, "--index-copies", "1TiB"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=machine.RUN_S)
    first, second = done.stdout.splitlines()[:2]
    return f"{data.name}: {first}; {second.partition(', in ')[0]}"


# -- the run ----------------------------------------------------------------------------------------------------------


def settings(programs: Programs, tensorflow: str | None) -> str:
    """The machine, its load, and the versions of everything."""
    others = whole.tensorflow_version(tensorflow) if tensorflow else "tensorflow: left out, --tensorflow names none"
    return "\n".join(
        [
            machine.settings(),
            f"kernels {', '.join(programs.levels)}; Pillow's libjpeg-turbo {features.version('libjpeg_turbo')}",
            programs.compiler,
            others,
            f"load average before: {os.getloadavg()[0]:.2f}",
        ]
    )


def run(args: argparse.Namespace, scratch: Path) -> None:
    """Measures everything and writes it down."""
    encodings = chosen(pictures.ENCODINGS, args.encoding, args.transforms)
    transforms = chosen(TRANSFORMS, args.transforms, args.encoding) if args.whole or args.transforms is not None else []
    rounds = 2 if args.quick else args.rounds
    programs = unit.build(scratch)
    os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")  # lists of files of folders that will be gone
    about = settings(programs, args.tensorflow)
    folders = {"photographs": scratch / "photographs", "4:2:0, quality 90": scratch / "subsampled"}
    count = pictures.prepare(args.folder, MOST_PICTURES, *folders.values())
    print(f"{about}\n{count} pictures, {rounds} rounds", flush=True)
    all_of_it, measured = machine.Apart(), Measurement(programs, rounds, args.images, args.tensorflow)
    for number, (name, folder) in enumerate([] if args.some else folders.items()):
        data = Data(name, folder, scratch / f"index{number}", scratch / f"crops{number}", count)
        measured.index(data)
        data.draw(programs, rounds + 1)
        measured.measure(data, limits=number == 0)
    for name in encodings:
        data = encoded(measured, folders["photographs"], scratch / name.replace("/", "-"), name, MOST_ENCODED)
        data.draw(programs, rounds + 1)
        measured.measure_encoding(data, args.whole)
    for name in transforms:
        work, most, images = TRANSFORMS[name]
        data = encoded(measured, folders["photographs"], scratch / name.replace("/", "-"), name, most)
        measured.measure_transforms(name, data, work, images)
    measured.note(all_of_it.others())
    write(args, measured, about)


def chosen(names: Collection[str], part: str | None, other: str | None) -> list[str]:
    """The names that have the part; without one all, but none if other rows alone are asked for.

    A part that no name has is an error: nothing would be measured.
    """
    some = [name for name in names if (part in name if part is not None else other is None)]
    if part is not None and not some:
        sys.exit(f"no row has {part!r} in its name; there are: {', '.join(names)}")
    return some


def encoded(measured: Measurement, photographs: Path, place: Path, name: str, most: int) -> Data:
    """The photographs, at most so many, as the name says, with an index; of no encoding or size as they are."""
    if name in pictures.ENCODINGS | pictures.SMALL_AND_LARGE:
        count = pictures.encode(photographs, place / "pictures", name, most)
        data = Data(name, place / "pictures", place / "index", place / "crops", count)
    else:
        count = len(list(pictures.jpegs(str(photographs))))
        data = Data(name, photographs, place / "index", place / "crops", count)
    measured.index(data)
    return data


def write(args: argparse.Namespace, measured: Measurement, about: str) -> None:
    """Writes the files, and prints all rows together."""
    out = Path(args.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    table, picture = report.markdown(measured.rows, about, measured.notes), chart.svg(measured.rows)
    everything = {
        "about": about,
        "notes": measured.notes,
        "rows": [asdict(row) | {"value": row.value, "verdict": row.verdict} for row in measured.rows],
        "runs": measured.runs,
    }
    for suffix, content in ((".json", json.dumps(everything, indent=1)), (".md", table), (".svg", picture)):
        Path(f"{out}{suffix}").write_text(content)
    if args.document:
        report.document(table, picture)
    print("\n".join(report.text(measured.rows)) + f"\n\n{out}.json, {out}.md, {out}.svg", flush=True)


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="image folder, classes in sub-folders")
    names = ", ".join(pictures.ENCODINGS)
    parser.add_argument("--encoding", metavar="NAME", help=f"rows of some alone, by a part of the name: {names}")
    names = ", ".join(TRANSFORMS)
    parser.add_argument(
        "--transforms", metavar="NAME", help=f"rows on all cores of some alone, by a part of the name: {names}"
    )
    parser.add_argument("--whole", action="store_true", help="all of both, on all cores, in an hour and a half more")
    parser.add_argument("--rounds", type=int, default=5, help="how often each contestant runs")
    parser.add_argument("--images", type=int, default=4000, help="images per run on all cores, at the least")
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="interpreter that has tensorflow, for tf.data")
    parser.add_argument("--out", default=str(machine.ROOT / "dist" / "pixels"), help="files to write, without suffix")
    parser.add_argument("--document", action="store_true", help="write table and picture into docs/speed.md")
    args = parser.parse_args()
    args.some = args.encoding is not None or args.transforms is not None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that everything is cleared away
    with tempfile.TemporaryDirectory() as scratch:
        run(args, Path(scratch))


if __name__ == "__main__":
    main()
