"""The same photographs from every kind of source give the same batches.

Class folders, a list, tar and Parquet files and MDS on a disk, in a bucket, and what of it a web server can tell; a
program's own reader; and one job of three nodes, of which one reads the folder and two the bucket. Two epochs each,
with labels; a table of digests. The bucket is that of a real S3 server if there is one, else of a stand-in. Without
photographs pictures are made.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import hmac
import http.client
import io
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import feedwater
import numpy as np
import PIL.Image
from feedwater import Loader

from parquet import write_parquet

KEYS = {"AWS_ACCESS_KEY_ID": "the-access-key", "AWS_SECRET_ACCESS_KEY": "the-secret-key"}
"""Those of the stand-in, which a real server is given too."""
PARTS = {"folder": "photos", "list": "list.csv", "tar files": "s-*.tar", "Parquet files": "p-*.parquet", "MDS": "mds"}
"""What lies in a bucket, by its name in the table."""
MADE = 60
"""Pictures that are made where there are no photographs."""
OF_A_PART = 200
"""Pictures in a tar file, a Parquet file and a shard of MDS."""


class Pictures:
    """What a program reads by itself."""

    def __init__(self, rows: list[tuple[Path, int]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, index: int) -> tuple[bytes, int]:
        """The file of picture index, and its label."""
        path, label = self._rows[index]
        return path.read_bytes(), label


def digest_of(source: Any, **options: Any) -> tuple[str, float]:
    """Two epochs of a source, and how long they took."""
    total, began = hashlib.sha256(), time.perf_counter()
    crop = feedwater.transforms.RandomResizedCrop(96)
    with Loader(source, crop, batch_size=64, shuffle=True, seed=5, **options) as loader:
        for _ in range(2):
            for images, labels in loader:
                total.update(np.asarray(images).tobytes() + np.asarray(labels).astype("<i8").tobytes())
    return total.hexdigest()[:16], time.perf_counter() - began


def prepare_photos(photos: Path | None, root: Path) -> None:
    """A copy of the photographs, or pictures that are made."""
    if photos is None:
        make_photos(root)
    else:
        shutil.copytree(photos, root)


def make_photos(root: Path) -> None:
    """Pictures of noise in class folders."""
    rng = np.random.default_rng(1)
    for at in range(MADE):
        path = root / f"class{at % 3}" / f"{at:03}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((160, 120)).save(path)


def rows_of(photos: Path) -> list[tuple[Path, int]]:
    """The pictures of class folders, and labels."""
    classes = sorted(path.name for path in photos.iterdir() if path.is_dir())
    return [(path, label) for label, name in enumerate(classes) for path in sorted((photos / name).iterdir())]


def write_others(root: Path, rows: list[tuple[Path, int]]) -> int:
    """A list, tar and Parquet files and MDS of pictures that lie below root. Returns how many tar files there are."""
    lines = (f'"{path.relative_to(root)}",{label}\n' for path, label in rows)
    (root / "list.csv").write_text("path,label\n" + "".join(lines))
    (root / "mds").mkdir()
    index: dict[str, Any] = {"version": 2, "shards": []}
    starts = range(0, len(rows), OF_A_PART)
    for shard, first in enumerate(starts):
        part = rows[first : first + OF_A_PART]
        write_tar(root / f"s-{shard:02}.tar", part, first)
        write_parquet(root / f"p-{shard:02}.parquet", [(path.read_bytes(), label) for path, label in part])
        index["shards"].append(write_mds(root / "mds" / f"shard.{shard:05}.mds", part))
    (root / "mds" / "index.json").write_text(json.dumps(index))
    return len(starts)


def write_tar(name: Path, rows: list[tuple[Path, int]], first: int) -> None:
    """A tar file of pictures and labels, the first of which is number first."""
    with tarfile.open(name, "w") as tar:
        for at, (path, label) in enumerate(rows, first):
            tar.add(path, f"{at:06}{path.suffix}")
            member = tarfile.TarInfo(f"{at:06}.cls")
            member.size = len(str(label))
            tar.addfile(member, io.BytesIO(str(label).encode()))


def write_mds(name: Path, rows: list[tuple[Path, int]]) -> dict[str, Any]:
    """A shard of MDS, and what its index says of it."""
    body, ends = bytearray(), [0]
    for path, label in rows:
        picture = path.read_bytes()
        body += struct.pack("<I", len(picture)) + picture + struct.pack("<q", label)
        ends.append(len(body))
    head = 4 * (len(ends) + 1)
    name.write_bytes(struct.pack(f"<I{len(ends)}I", len(rows), *(head + end for end in ends)) + body)
    return {
        "format": "mds",
        "compression": None,
        "samples": len(rows),
        "column_names": ["image", "label"],
        "column_encodings": ["bytes", "int"],
        "column_sizes": [None, 8],
        "raw_data": {"basename": name.name, "bytes": name.stat().st_size, "hashes": {}},
        "zip_data": None,
    }


def put_all(root: Path, address: str) -> None:
    """Makes a bucket called data of all files below a folder, by the server's own requests: so they have ETags."""
    put_object(address, "/data", b"")
    for path in sorted(root.rglob("*")):
        if path.is_file():
            put_object(address, "/data/" + urllib.parse.quote(str(path.relative_to(root))), path.read_bytes())


def put_object(address: str, path: str, data: bytes) -> None:
    """A PUT signed as S3 asks for."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    digest, scope = hashlib.sha256(data).hexdigest(), f"{now[:8]}/us-east-1/s3/aws4_request"
    headers = f"host:{address}\nx-amz-content-sha256:{digest}\nx-amz-date:{now}\n"
    signed = "host;x-amz-content-sha256;x-amz-date"
    request = hashlib.sha256(f"PUT\n{path}\n\n{headers}\n{signed}\n{digest}".encode()).hexdigest()
    key = b"AWS4" + KEYS["AWS_SECRET_ACCESS_KEY"].encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    proof = hmac.digest(key, f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{request}".encode(), "sha256").hex()
    credential = f"{KEYS['AWS_ACCESS_KEY_ID']}/{scope}"
    connection = http.client.HTTPConnection(address)
    connection.request(
        "PUT",
        path,
        data,
        {
            "X-Amz-Date": now,
            "X-Amz-Content-Sha256": digest,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed}, Signature={proof}",
        },
    )
    answer = connection.getresponse()
    if answer.status != 200:
        raise SystemExit(f"PUT {path}: {answer.status} {answer.read()!r}")
    connection.close()


def free_port() -> int:
    """A port that nobody listened at a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Returns when the process listens."""
    while True:
        if process.poll() is not None:
            raise SystemExit(f"{process.args} ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)


@contextlib.contextmanager
def running(port: int, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that listens, and is ended with the block."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield process
    finally:
        process.terminate()
        process.wait()


class StandIn:
    """A running bench/bucket."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process, self.url, self.address = process, url, url.partition("://")[2]

    def sent_bytes(self) -> int:
        """Those of all its answers' bodies so far."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextlib.contextmanager
def stand_in(program: str, root: Path, *flags: str) -> Iterator[StandIn]:
    """A server of what lies in a folder: as a bucket called data, and below /plain/."""
    command = [program, *flags, str(root)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield StandIn(process, process.stdout.readline().strip())
    finally:
        process.stdin.close()
        process.wait()


@contextlib.contextmanager
def versity_gateway(program: str, root: Path, place: Path) -> Iterator[str]:
    """The address of a VersityGW with a bucket called data, of what lies in a folder."""
    port = free_port()
    os.environ.update(ROOT_ACCESS_KEY=KEYS["AWS_ACCESS_KEY_ID"], ROOT_SECRET_KEY=KEYS["AWS_SECRET_ACCESS_KEY"])
    address = f"127.0.0.1:{port}"
    for folder in ("meta", "objects"):
        (place / folder).mkdir()
    command = (program, "--port", address, "posix", "--sidecar", f"{place}/meta", f"{place}/objects")
    with running(port, *command):
        put_all(root, address)
        yield address


@contextlib.contextmanager
def running_nodes(*data: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Nodes by their addresses, of which each serves what it is given as --data."""
    with contextlib.ExitStack() as stack:
        nodes = {}
        for served in data:
            port = free_port()
            listen = ("serve", "--listen", f"127.0.0.1:{port}", "--data", served, "--log-level", "error")
            program = os.environ["FEEDWATER_BINARY"]
            nodes[f"127.0.0.1:{port}"] = stack.enter_context(running(port, program, *listen))
        yield nodes


def main() -> int:
    """Prints the table; 1 where digests differ."""
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("photos", type=Path, nargs="?")
    parse.add_argument("--bucket", required=True, help="program of bench/bucket")
    parse.add_argument("--versitygw", help="program of that name, in place of the stand-in's bucket")
    asked = parse.parse_args()
    os.environ.update(KEYS)
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as stack:
        root = Path(made) / "data"
        prepare_photos(asked.photos, root / "photos")
        rows = rows_of(root / "photos")
        parts = write_others(root, rows)
        sources: dict[str, tuple[Any, dict[str, Any]]] = {
            "folder": (root / "photos", {}),
            "list": (root / "list.csv", {}),
            "tar files": (root / "s-*.tar", {}),
            "Parquet files": (root / "p-*.parquet", {}),
            "MDS": (root / "mds", {}),
            "a program's own": (feedwater.Bytes(Pictures(rows), version="1", workers=2), {}),
        }
        web = bucket = stack.enter_context(stand_in(asked.bucket, root)).address
        if asked.versitygw:
            bucket = stack.enter_context(versity_gateway(asked.versitygw, root, Path(made)))
        end = f"?endpoint=http://{bucket}"
        for name, below in PARTS.items():
            sources[f"{name} in a bucket"] = (f"s3://data/{below}{end}", {})
        for name, (stem, ending) in {"tar": ("s", "tar"), "Parquet": ("p", "parquet")}.items():
            sources[f"{name} files by HTTP"] = (f"http://{web}/plain/{stem}-{{00..{parts - 1:02}}}.{ending}", {})
        sources |= {f"{name} by HTTP": (f"http://{web}/plain/{PARTS[name]}", {}) for name in ("list", "MDS")}
        in_bucket = f"photos=s3://data/photos{end}"
        nodes = stack.enter_context(running_nodes(f"photos={root / 'photos'}", in_bucket, in_bucket))
        sources["three nodes, two of them on the bucket"] = ("photos", {"nodes": list(nodes)})
        print(f"| {'source':40} | {'digest':16} | seconds |\n|{'-' * 42}|{'-' * 18}|--------:|")
        digests = set()
        for name, (source, options) in sources.items():
            digest, took = digest_of(source, **options)
            digests.add(digest)
            print(f"| {name:40} | {digest:16} | {took:7.2f} |", flush=True)
    if len(digests) > 1:
        print("the digests differ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
