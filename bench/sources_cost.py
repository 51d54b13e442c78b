"""What it costs to read pictures from shards and from a bucket, against the same pictures in class folders.

    python bench/sources_cost.py FOLDER --bucket bin/bench-bucket [--rounds 15] [--quick] [--json FILE]

A node has one core, and whatever else runs the other ones: this trainer, and the servers of the bucket, which take 5 ms
for each answer. Each turn is a Loader of its own, with RandomResizedCrop(224) in batches of 64. Before and after each
turn the class folders have one, and a contestant is held against the mean of these two; medians of all rounds. Times
of the processor are the node's. Bytes are those that a server sent or, of a disk, that the node's calls to read gave.
1 where a limit is not kept. Leave the machine alone meanwhile: it says how much of it others used.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import feedwater

import machine
from figure import Figure, report, spread
from parquet import write_parquet
from sources import KEYS, OF_A_PART, free_port, prepare_photos, rows_of, stand_in, wait_for, write_others

BATCH, SIZE = 64, 224
SKIP, STEPS = 6, 16
"""Batches of a turn before it is measured, and those that are."""
LATENCY = "5ms"
FOLDER = "class folders"
PACKED = "gzipped Parquet, warm read cache"
WARM = "files in a bucket, warm read cache"
BLOCKS = "tar in a bucket, blocks of 64"


@dataclass(frozen=True)
class Limits:
    """What a contestant has to reach; None: that is not looked at."""

    speed: float | None
    """Of the class folders' samples a second, at least."""
    micros: float | None
    """Processor time of a sample beyond that of one in class folders, at most."""
    read: float = 1.1
    """Bytes that are read for each byte of a picture, at most."""


LIMITS = {
    "tar on disk": Limits(0.97, None),
    "plain Parquet on disk": Limits(0.97, None),
    "files in a bucket": Limits(0.80, 150),
    "tar in a bucket": Limits(0.85, 150),
    BLOCKS: Limits(0.85, 150),
    "plain Parquet in a bucket": Limits(0.85, 150),
    "files in a bucket by TLS": Limits(None, 250),
    WARM: Limits(0.95, None),
    PACKED: Limits(None, None),
}


@dataclass(frozen=True)
class Contestant:
    """A source of the pictures, at a node."""

    node: Node
    place: str
    """As a Loader names it."""
    sent: Callable[[], int] | None = None
    """Bytes that its server sent; None: it lies on a disk."""
    shuffle: bool | str = True


@dataclass(frozen=True)
class Node:
    """A running node."""

    pid: int
    address: str
    http: str

    def made(self) -> int:
        """Samples that were decoded."""
        return self._sum("feedwater_node_decoded_samples_")

    def questions(self) -> int:
        """Requests that it sent to servers of objects."""
        return self._sum("feedwater_node_place_requests_total")

    def _sum(self, metric: str) -> int:
        """The sum of what it tells under names that begin so."""
        with urllib.request.urlopen(f"http://{self.http}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith(metric))

    def read_bytes(self) -> int:
        """Bytes that its calls to read gave, of files and connections."""
        line = Path(f"/proc/{self.pid}/io").read_text().splitlines()[0]
        return int(line.removeprefix("rchar: "))


@dataclass(frozen=True)
class Turn:
    """What a turn gave."""

    rate: float
    micros: float
    """Processor time of a sample."""
    read: float
    """Bytes for each byte of a picture."""
    asked: float
    """Questions to servers for each sample."""

    def mean(self, other: Turn) -> Turn:
        """The mean of two."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Turn(*(statistics.mean(pair) for pair in pairs))


@dataclass(frozen=True)
class Pair:
    """A turn, and the mean of the folder's before and after it."""

    ours: Turn
    folder: Turn


@contextlib.contextmanager
def pinned_node(core: int, certificate: Path, data: dict[str, str], *flags: str) -> Iterator[Node]:
    """A node on one core with these roots, which trusts the certificate of a server."""
    listen, http = free_port(), free_port()
    roots = [f"--data={name}={place}" for name, place in data.items()]
    ports = ["--listen", f"127.0.0.1:{listen}", "--http", f"127.0.0.1:{http}"]
    command = [machine.program(), "serve", *roots, *ports, "--index", "off", "--log-level", "error", *flags]
    environment = {**os.environ, "SSL_CERT_FILE": str(certificate)}
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [core])  # which a process has from the one that starts it
    process = subprocess.Popen(command, env=environment)
    os.sched_setaffinity(0, ours)
    try:
        wait_for(listen, process)
        yield Node(process.pid, f"127.0.0.1:{listen}", f"127.0.0.1:{http}")
    finally:
        process.terminate()
        process.wait(60)


def take_turn(of: Contestant, picture_bytes: float) -> Turn:
    """Runs a Loader for some batches."""
    transforms = feedwater.transforms
    crop = [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip()]
    counted = of.sent or of.node.read_bytes
    with feedwater.Loader(
        of.place, crop, batch_size=BATCH, shuffle=of.shuffle, seed=3, steps_per_epoch=1 << 16, nodes=of.node.address
    ) as loader:
        batches = iter(loader)
        for _ in range(SKIP):
            next(batches)
        made, read, asked = of.node.made(), counted(), of.node.questions()
        cpu, began = machine.cpu_seconds([of.node.pid]), time.perf_counter()
        for _ in range(STEPS):
            next(batches)
        took, cpu = time.perf_counter() - began, machine.cpu_seconds([of.node.pid]) - cpu
        made, read, asked = of.node.made() - made, counted() - read, of.node.questions() - asked
    return Turn(STEPS * BATCH / took, cpu / made * 1e6, read / (made * picture_bytes), asked / made)


def write_all(photos: Path | None, root: Path) -> list[Path]:
    """The pictures in all forms below root. Returns them as files."""
    prepare_photos(photos, root / "photos")
    rows = rows_of(root / "photos")
    write_others(root, rows)
    for first in range(0, len(rows), OF_A_PART):
        part = [(path.read_bytes(), label) for path, label in rows[first : first + OF_A_PART]]
        write_parquet(root / f"z-{first // OF_A_PART:02}.parquet", part, compress=True)
    return [path for path, _ in rows]


@contextlib.contextmanager
def contestants(bucket: str, root: Path, made: Path, core: int) -> Iterator[dict[str, Contestant]]:
    """All of them by name, with what they need running."""
    with contextlib.ExitStack() as stack:
        certificate = made / "certificate.pem"
        plain = stack.enter_context(stand_in(bucket, root, "--latency", LATENCY))
        secure = stack.enter_context(stand_in(bucket, root, "--latency", LATENCY, "--certificate", str(certificate)))
        data = {"disk": str(root)}
        data |= {name: f"s3://data?endpoint={server.url}" for name, server in (("http", plain), ("tls", secure))}
        options = ("--cache-dir", str(made / "lists"))
        node = stack.enter_context(pinned_node(core, certificate, data, *options))
        cached = stack.enter_context(
            pinned_node(core, certificate, data, *options, "--read-cache", str(made / "blocks"))
        )
        yield {
            FOLDER: Contestant(node, "disk/photos"),
            "tar on disk": Contestant(node, "disk/s-*.tar"),
            "plain Parquet on disk": Contestant(node, "disk/p-*.parquet"),
            "files in a bucket": Contestant(node, "http/photos", plain.sent_bytes),
            "tar in a bucket": Contestant(node, "http/s-*.tar", plain.sent_bytes),
            BLOCKS: Contestant(node, "http/s-*.tar", plain.sent_bytes, "blocks:64"),
            "plain Parquet in a bucket": Contestant(node, "http/p-*.parquet", plain.sent_bytes),
            "files in a bucket by TLS": Contestant(node, "tls/photos", secure.sent_bytes),
            WARM: Contestant(cached, "http/photos"),
            PACKED: Contestant(cached, "disk/z-*.parquet"),
        }


def by_processor(pair: Pair) -> float:
    """The speed that the processor's time alone would give, of the folder's."""
    return pair.folder.micros / pair.ours.micros


def speeds(pairs: list[Pair]) -> list[float]:
    """Samples a second, of the folder's."""
    return [pair.ours.rate / pair.folder.rate for pair in pairs]


def figures(pairs: dict[str, list[Pair]]) -> list[Figure]:
    """What must be reached."""
    found = []
    for name, limits in LIMITS.items():
        if limits.speed is not None:
            speed = statistics.median(speeds(pairs[name]))
            found.append(Figure(f"{name}: speed, of the folder's", speed, limits.speed, "×", True))
        if limits.micros is not None:
            more = statistics.median(pair.ours.micros - pair.folder.micros for pair in pairs[name])
            found.append(Figure(f"{name}: CPU of a sample beyond a file's", more, limits.micros, "µs"))
        read = statistics.median(pair.ours.read for pair in pairs[name])
        found.append(Figure(f"{name}: bytes read for a byte needed", read, limits.read, "×"))
    return found


def table(pairs: dict[str, list[Pair]]) -> str:
    """Medians, with the range of the rounds."""
    lines = [f"{'':38}{'samples/s':>10}{'of the folder':>28}{'CPU-µs':>8}{'folder':>8}{'by CPU':>8}{'asked':>8}"]
    for name, results in pairs.items():
        rate = statistics.median(pair.ours.rate for pair in results)
        ours, folder = (statistics.median(getattr(pair, of).micros for pair in results) for of in ("ours", "folder"))
        by_cpu = statistics.median(by_processor(pair) for pair in results)
        asked = statistics.median(pair.ours.asked for pair in results)
        lines.append(
            f"{name:38}{rate:10.0f}{spread(speeds(results)):>28}{ours:8.0f}{folder:8.0f}{by_cpu:8.3f}{asked:8.2f}"
        )
    return "\n".join(lines)


def run_rounds(of: dict[str, Contestant], rounds: int, picture_bytes: float) -> dict[str, list[Pair]]:
    """All turns, each with those of the folder before and after it."""
    pairs: dict[str, list[Pair]] = {name: [] for name in LIMITS}
    before = take_turn(of[FOLDER], picture_bytes)
    for number, name in machine.turns(rounds, list(LIMITS)):
        ours = take_turn(of[name], picture_bytes)
        after = take_turn(of[FOLDER], picture_bytes)
        pairs[name].append(Pair(ours, before.mean(after)))
        print(
            f"  round {number + 1}: {name:38}{ours.rate:8.0f} samples/s, folder {pairs[name][-1].folder.rate:.0f}",
            flush=True,
        )
        before = after
    return pairs


def busy_by_others() -> float:
    """Core-seconds of this machine that neither this process used nor what it has running."""
    return machine.busy_seconds() - machine.cpu_seconds([os.getpid()])


def main() -> int:
    """Prints the tables; 1 where a limit is not kept."""
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("photos", type=Path, nargs="?", help="photographs in class folders; else some are made")
    parse.add_argument("--bucket", required=True, help="program of bench/bucket")
    parse.add_argument("--rounds", type=int, default=15, help="turns of each contestant")
    parse.add_argument("--quick", action="store_true", help="two rounds")
    parse.add_argument("--json", metavar="FILE", help="add the figures to this file, a JSON object for each line")
    asked = parse.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("this needs two cores: one of the node, and one of all else")
    print(machine.settings(), flush=True)
    os.sched_setaffinity(0, cores[1:])
    os.environ.update(KEYS)
    with tempfile.TemporaryDirectory() as made:
        root = Path(made) / "data"
        files = write_all(asked.photos, root)
        picture_bytes = statistics.mean(path.stat().st_size for path in files)
        print(f"{len(files)} pictures of {picture_bytes / 1000:.0f} kB, {LATENCY} of each answer", flush=True)
        with contestants(asked.bucket, root, Path(made), cores[0]) as all_of_them:
            for name in (WARM, PACKED):
                fill(all_of_them[name], len(files))
            busy, began = busy_by_others(), time.perf_counter()
            pairs = run_rounds(all_of_them, 2 if asked.quick else asked.rounds, picture_bytes)
            others = (busy_by_others() - busy) / (time.perf_counter() - began)
    print(f"\n{table(pairs)}\nothers used {others:.2f} cores meanwhile")
    found = figures(pairs)
    report(found, asked.json)
    return 0 if all(figure.ok for figure in found) else 1


def fill(of: Contestant, samples: int) -> None:
    """Reads each picture once, in two epochs at most: what was in flight at the end is read too."""
    with feedwater.Loader(of.place, feedwater.transforms.CenterCrop(8), batch_size=4, nodes=of.node.address) as loader:
        assert sum(len(batch[0]) for batch in loader) == samples


if __name__ == "__main__":
    sys.exit(main())
