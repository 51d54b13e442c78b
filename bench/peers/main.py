"""Feedwater against other loaders: the same photographs, task and cores, in turns; one table, one picture.

    python bench/peers/main.py run FOLDER [--quick] [--only NAME ...] [--out dist/peers]
    python bench/peers/main.py compare OLD.json NEW.json
    python bench/peers/main.py document FILE.json

2048 links to FOLDER's photographs are the data set: 32 batches of 64, RandomResizedCrop(224), flip, normalised to
float32. Each peer has an environment of its own below .tools/peers, made here, and runs in a process of its own. First
each is run with 1, 2 and 4 workers or threads; with the fastest of them it takes part in the rounds, forwards and
backwards. The first epoch of a run does not count. CPU time is that of all processes of a run. Then each saves at half
an epoch and goes on in another process, and has a worker killed amid an epoch; what was lost or repeated is counted by
the samples' ids. With --quick there is one round, and 2 workers alone are tried.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import install
import measure
from contestants import Contestant, chosen

import machine
import report
from peer import Settings, files

SAMPLES, FOLDERS = 2048, 8
EPOCHS, ROUNDS = 3, 3
QUICK_EPOCHS, QUICK_WORKERS = 2, (2,)


class Entry:
    """A contestant in one run of this script."""

    def __init__(self, contestant: Contestant, folder: Path, scratch: Path, epochs: int) -> None:
        self.contestant, self.python = contestant, ""
        self.row: dict[str, Any] = {"name": contestant.name, "rounds": [], "tried": {}, "conversion": {}}
        prepared = scratch / contestant.module
        self.settings = Settings(str(folder), str(prepared), SAMPLES, contestant.variant, epochs=epochs)

    def fail(self, reason: object) -> None:
        """Leaves it out of the rest, and says why."""
        self.row |= {"rounds": [], "absent": str(reason)}
        print(f"  {self.contestant.name}: {reason}", flush=True)

    @property
    def takes_part(self) -> bool:
        """Whether nothing has failed so far."""
        return "absent" not in self.row

    def take(self, row: dict[str, Any]) -> None:
        """Goes on with the rounds of an earlier run."""
        self.row = row
        if self.takes_part:
            self.settings = replace(self.settings, workers=row["workers"])
            self.begin()

    def begin(self) -> None:
        """Makes the environment, converts the data."""
        try:
            self.python = install.python(self.contestant)
            Path(self.settings.prepared).mkdir(exist_ok=True)
            if self.contestant.converts:
                self._convert()
        except (install.NotInstalledError, RuntimeError) as error:
            self.fail(error)

    def _convert(self) -> None:
        place = Path(self.settings.prepared)
        began = time.monotonic()
        done = measure.run(self.python, self.contestant.module, replace(self.settings, prepare=True))
        if not done.ended:
            raise RuntimeError(f"conversion: {done.error}")
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        self.row["conversion"] = {"bytes": size, "seconds": time.monotonic() - began}

    def tune(self, workers: tuple[int, ...]) -> None:
        """Finds the number of workers that is fastest."""
        if len(workers) == 1:
            self.row["workers"] = workers[0]
            self.settings = replace(self.settings, workers=workers[0])
            return
        for number in workers:
            if found := self.once(replace(self.settings, workers=number, epochs=QUICK_EPOCHS)):
                self.row["tried"][str(number)] = found["rate"]
        if self.row["tried"]:
            self.row["workers"] = int(max(self.row["tried"], key=lambda number: self.row["tried"][number]))
            self.settings = replace(self.settings, workers=self.row["workers"])

    def once(self, settings: Settings) -> dict[str, Any]:
        """One measured run; empty if it failed."""
        try:
            found = measure.speed(self.python, self.contestant, settings)
        except (RuntimeError, ValueError) as error:
            self.fail(error)
            return {}
        print(f"  {self.contestant.name}, {settings.workers} workers: {found['rate']:.0f} images/s", flush=True)
        self.row["versions"] = found.pop("versions")
        return found

    def end(self) -> None:
        """Resumes, and is killed."""
        once = replace(self.settings, epochs=1)
        self.row["resume"] = measure.resume(self.python, self.contestant, once)
        print(f"  {self.contestant.name}, resumed: {report.resumed(self.row['resume'])}", flush=True)
        self.row["kill"] = measure.kill(self.python, self.contestant, once)
        print(f"  {self.contestant.name}, kill -9: {report.killed(self.row['kill'])}", flush=True)


def link(folder: str, target: Path) -> int:
    """Fills target with SAMPLES links to folder's photographs. How many these are."""
    photographs = [path for path in files(folder) if path.suffix.lower() in (".jpg", ".jpeg")]
    if not photographs:
        raise SystemExit(f"{folder}: no photographs in it")
    for number in range(SAMPLES):
        photograph = photographs[number % len(photographs)].resolve()
        photograph.read_bytes()  # into the page cache
        place = target / f"c{number % FOLDERS}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:06}.jpg").symlink_to(photograph)
    return len(photographs)


def tried(contestant: Contestant, quick: bool) -> tuple[int, ...]:
    """The numbers of workers to try."""
    fewer = tuple(number for number in contestant.workers if number in QUICK_WORKERS)
    return fewer if quick and fewer else contestant.workers


def run(args: argparse.Namespace, scratch: Path) -> Iterator[dict[str, Any]]:
    """Measures everything. The results so far come after the rounds, and whenever one has resumed and been killed."""
    folder = scratch / "photographs"
    photographs = link(args.folder, folder)
    entries = [Entry(one, folder, scratch, QUICK_EPOCHS if args.quick else EPOCHS) for one in chosen(args.only)]
    print(f"{machine.settings()}\n{photographs} photographs, load average {os.getloadavg()[0]:.2f}", flush=True)
    if args.rounds_of:
        results: dict[str, Any] = json.loads(Path(args.rounds_of).read_text())
        rows = {row["name"]: row for row in results["rows"]}
        for entry in entries:
            entry.take(rows[entry.contestant.name])
        results["load of the rest"] = os.getloadavg()[0]
    else:
        results = {"machine": machine.settings(), "photographs": photographs, "load": os.getloadavg()[0]}
        results |= measure_rounds(entries, args.quick)
    yield results
    for entry in entries:
        if entry.takes_part:
            entry.end()
            yield results


def measure_rounds(entries: list[Entry], quick: bool) -> dict[str, Any]:
    """Finds the best settings of each, and has them take turns."""
    for entry in entries:
        entry.begin()
        if entry.takes_part:
            entry.tune(tried(entry.contestant, quick))
    part = {entry.contestant.name: entry for entry in entries}
    rounds = 1 if quick else ROUNDS
    apart = machine.Apart()
    for _, name in machine.turns(rounds, list(part)):
        if part[name].takes_part and (found := part[name].once(part[name].settings)):
            part[name].row["rounds"].append(found)
    return {"rounds": rounds, "others": apart.others(), "rows": [entry.row for entry in entries]}


def write(results: dict[str, Any], out: Path) -> None:
    """Writes results, table and picture."""
    out.parent.mkdir(parents=True, exist_ok=True)
    text = report.page(results)
    for suffix, content in (
        (".json", json.dumps(results, indent=1) + "\n"),
        (".md", text),
        (".svg", report.picture(results["rows"])),
    ):
        Path(f"{out}{suffix}").write_text(content)


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("run", help="measure")
    measuring.add_argument("folder", help="folder of photographs")
    measuring.add_argument("--quick", action="store_true", help="one round, two workers")
    measuring.add_argument("--only", nargs="*", default=[], metavar="NAME", help="Feedwater and these alone")
    measuring.add_argument("--rounds-of", metavar="FILE", help="take rounds from results; resume and kill alone")
    measuring.add_argument("--out", default=str(machine.ROOT / "dist" / "peers"), help="files, without suffix")
    comparing = commands.add_parser("compare", help="new results against old ones")
    comparing.add_argument("old")
    comparing.add_argument("new")
    documenting = commands.add_parser("document", help="put results into docs/peers.md")
    documenting.add_argument("file")
    args = parser.parse_args()
    if args.command == "document":
        report.document(json.loads(Path(args.file).read_text()), machine.ROOT / "docs" / "peers.md")
        return
    if args.command == "compare":
        print(report.compare(*(json.loads(Path(file).read_text()) for file in (args.old, args.new))))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that everything is cleared away
    with tempfile.TemporaryDirectory(prefix="feedwater-peers-") as scratch:
        for results in run(args, Path(scratch)):
            write(results, Path(args.out))
    print(f"\n{Path(f'{args.out}.md').read_text()}\n{args.out}.json, {args.out}.md, {args.out}.svg", flush=True)


if __name__ == "__main__":
    main()
