"""How long a node that has never seen a bucket takes to the first batch, with a list in the bucket and without.

    python bench/sources_cold.py --versitygw PROGRAM --toxiproxy PROGRAM [--rounds 3] [--latency 25]

A VersityGW has the same small pictures twice, in class folders and in 147 tar files, behind toxiproxy, which delays
what the server sends. Each run is a new node without any list of its own, from the start of its process to a trainer's
first batch of 256. After the rounds without a list `feedwater snapshot` writes one into the bucket.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import feedwater
import numpy as np
import PIL.Image

import machine
from sources import KEYS, free_port, put_object, running, versity_gateway
from sources_faults import Toxiproxy

PICTURES, CLASSES, SHARDS = 20_000, 100, 147
DIFFERENT = 50
"""Pictures; others have the same bytes."""
PLACES = {f"{PICTURES:,} objects in {CLASSES} class folders": "photos", f"{SHARDS} tar files": "s-*.tar"}
WITHOUT, WITH, AGAIN = "without a list", "list in the bucket", "started again"


def make_pictures() -> list[bytes]:
    """Small JPEG files of noise."""
    rng, made = np.random.default_rng(1), []
    for _ in range(DIFFERENT):
        noise = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
        file = io.BytesIO()
        PIL.Image.fromarray(noise).save(file, "JPEG")
        made.append(file.getvalue())
    return made


def make_tar(pictures: list[bytes], numbers: range) -> bytes:
    """A tar file of these samples."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for number in numbers:
            label = str(number * CLASSES // PICTURES).encode()
            for ending, data in (("jpg", pictures[number % DIFFERENT]), ("cls", label)):
                member = tarfile.TarInfo(f"{number:06}.{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return file.getvalue()


def objects() -> Iterator[tuple[str, bytes]]:
    """What lies in the bucket, by its keys."""
    pictures = make_pictures()
    for number in range(PICTURES):
        yield f"photos/class{number * CLASSES // PICTURES:03}/{number:06}.jpg", pictures[number % DIFFERENT]
    for shard in range(SHARDS):
        numbers = range(shard * PICTURES // SHARDS, (shard + 1) * PICTURES // SHARDS)
        yield f"s-{shard:03}.tar", make_tar(pictures, numbers)


def fill_bucket(address: str) -> None:
    """Writes all objects, several at once."""

    def put(item: tuple[str, bytes]) -> None:
        put_object(address, "/data/" + urllib.parse.quote(item[0]), item[1])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(put, objects()))


def time_first_batch(bucket: str, below: str, caches: Path) -> float:
    """Seconds from a node's start to the first batch of a trainer. The node keeps its lists below caches."""
    os.environ["XDG_CACHE_HOME"] = str(caches)
    began = time.perf_counter()
    with machine.node(bucket) as (_, address):
        crop = feedwater.transforms.CenterCrop(48)
        with feedwater.Loader(f"bench/{below}", crop, batch_size=256, shuffle=True, nodes=address) as loader:
            next(iter(loader))
            return time.perf_counter() - began


@contextlib.contextmanager
def slow_bucket(versitygw: str, toxiproxy: str, made: Path, latency: float) -> Iterator[str]:
    """The URL of a bucket with all objects, whose server answers late."""
    with contextlib.ExitStack() as stack:
        (made / "nothing").mkdir()
        server = stack.enter_context(versity_gateway(versitygw, made / "nothing", made))
        fill_bucket(server)
        control = free_port()
        stack.enter_context(running(control, toxiproxy, "-host", "127.0.0.1", "-port", str(control)))
        late = {"type": "latency", "attributes": {"latency": latency}}
        yield f"s3://data?endpoint=http://{Toxiproxy(control, server).add_proxy(late)}"


def write_list(bucket: str, below: str) -> float:
    """Has `feedwater snapshot` write the list of a place into the bucket. Seconds that it takes."""
    place = bucket.replace("s3://data?", f"s3://data/{below}?")
    began = time.perf_counter()
    subprocess.run([machine.program(), "snapshot", place], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def run_all(bucket: str, rounds: int, made: Path) -> dict[str, dict[str, list[float]]]:
    """Seconds to the first batch by place and by what was there."""
    took: dict[str, dict[str, list[float]]] = {name: {WITHOUT: [], WITH: [], AGAIN: []} for name in PLACES}
    for kind in (WITHOUT, WITH):
        if kind == WITH:
            for name, below in PLACES.items():
                print(f"feedwater snapshot, {name}: {write_list(bucket, below):.2f} s", flush=True)
        for number, name in machine.turns(rounds, list(PLACES)):
            caches = made / f"{kind}-{number}-{PLACES[name][0]}"
            took[name][kind].append(time_first_batch(bucket, PLACES[name], caches))
            if kind == WITHOUT:
                took[name][AGAIN].append(time_first_batch(bucket, PLACES[name], caches))
    return took


def main() -> None:
    """Prints the table."""
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--versitygw", required=True)
    parse.add_argument("--toxiproxy", required=True)
    parse.add_argument("--rounds", type=int, default=3, help="new nodes for each place, with a list and without")
    parse.add_argument("--latency", type=int, default=25, help="ms before what the server sends")
    asked = parse.parse_args()
    os.environ.update(KEYS)
    with contextlib.ExitStack() as stack:
        made = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bucket = stack.enter_context(slow_bucket(asked.versitygw, asked.toxiproxy, made, asked.latency))
        took = run_all(bucket, asked.rounds, made)
    print(f"\nseconds to the first batch, at {asked.latency} ms, medians of {asked.rounds} rounds:\n")
    print(f"| {'':36} | {WITHOUT:>18} | {WITH:>18} | {AGAIN:>18} |\n|{'-' * 38}|{'-' * 19}:|{'-' * 19}:|{'-' * 19}:|")
    for name, kinds in took.items():
        print(f"| {name:36} | " + " | ".join(f"{statistics.median(kinds[kind]):18.2f}" for kind in kinds) + " |")


if __name__ == "__main__":
    sys.exit(main())
