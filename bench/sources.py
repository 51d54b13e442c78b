"""The same photographs from every kind of source give the same batches.

Class folders, a list, tar files and MDS on a disk, and in a bucket of a real S3 server if there is one; and one job of
three nodes, of which one reads the folder and two the bucket. Two epochs each, with labels; a table of digests.
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
from feedwater import Loader

KEYS = {"AWS_ACCESS_KEY_ID": "feedwater", "AWS_SECRET_ACCESS_KEY": "a-secret-of-a-test"}


def digest_of(source: Any, **options: Any) -> tuple[str, float]:
    """Two epochs of a source, and how long they took."""
    total, began = hashlib.sha256(), time.perf_counter()
    crop = feedwater.transforms.RandomResizedCrop(96)
    with Loader(source, crop, batch_size=64, shuffle=True, seed=5, **options) as loader:
        for _ in range(2):
            for images, labels in loader:
                total.update(np.asarray(images).tobytes() + np.asarray(labels).astype("<i8").tobytes())
    return total.hexdigest()[:16], time.perf_counter() - began


def write_others(root: Path) -> None:
    """A list, tar files and MDS of the class folders below root/photos."""
    classes = sorted(path.name for path in (root / "photos").iterdir() if path.is_dir())
    rows = [(path, label) for label, name in enumerate(classes) for path in sorted((root / "photos" / name).iterdir())]
    lines = (f'"{path.relative_to(root)}",{label}\n' for path, label in rows)
    (root / "list.csv").write_text("path,label\n" + "".join(lines))
    (root / "mds").mkdir()
    index: dict[str, Any] = {"version": 2, "shards": []}
    for shard, first in enumerate(range(0, len(rows), 200)):
        part = rows[first : first + 200]
        write_tar(root / f"s-{shard:02}.tar", part, first)
        index["shards"].append(write_mds(root / "mds" / f"shard.{shard:05}.mds", part))
    (root / "mds" / "index.json").write_text(json.dumps(index))


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
    """Makes a bucket of all files below a folder, by the server's own requests: so they have ETags."""
    put_object(address, "/bucket", b"")
    for path in sorted(root.rglob("*")):
        if path.is_file():
            put_object(address, "/bucket/" + urllib.parse.quote(str(path.relative_to(root))), path.read_bytes())


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
def running(port: int, *command: str) -> Iterator[None]:
    """A program that listens, and is ended with the block."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield
    finally:
        process.terminate()
        process.wait()


def main() -> int:
    """Prints the table; 1 where digests differ."""
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("photos", type=Path)
    parse.add_argument("--versitygw", help="program of that name; without it no bucket is read")
    asked = parse.parse_args()
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as stack:
        root = Path(made) / "data"
        shutil.copytree(asked.photos, root / "photos")
        write_others(root)
        sources: dict[str, tuple[Any, dict[str, Any]]] = {
            "folder": (root / "photos", {}),
            "list": (root / "list.csv", {}),
            "tar files": (root / "s-*.tar", {}),
            "MDS": (root / "mds", {}),
        }
        if asked.versitygw:
            port = free_port()
            os.environ.update(
                KEYS, ROOT_ACCESS_KEY=KEYS["AWS_ACCESS_KEY_ID"], ROOT_SECRET_KEY=KEYS["AWS_SECRET_ACCESS_KEY"]
            )
            address = f"127.0.0.1:{port}"
            for folder in ("meta", "objects"):
                (Path(made) / folder).mkdir()
            place = ("posix", "--sidecar", f"{made}/meta", f"{made}/objects")
            stack.enter_context(running(port, asked.versitygw, "--port", address, *place))
            put_all(root, address)
            end = f"?endpoint=http://{address}"
            sources |= {
                "bucket": (f"s3://bucket/photos{end}", {}),
                "list in a bucket": (f"s3://bucket/list.csv{end}", {}),
                "tar files in a bucket": (f"s3://bucket/s-*.tar{end}", {}),
                "MDS in a bucket": (f"s3://bucket/mds{end}", {}),
            }
            nodes = []
            for data in (str(root / "photos"), f"s3://bucket/photos{end}", f"s3://bucket/photos{end}"):
                port = free_port()
                listen = ("serve", "--listen", f"127.0.0.1:{port}", "--data", f"photos={data}", "--log-level", "error")
                stack.enter_context(running(port, os.environ["FEEDWATER_BINARY"], *listen))
                nodes.append(f"127.0.0.1:{port}")
            sources["three nodes, two of them on the bucket"] = ("photos", {"nodes": nodes})
        found = {name: digest_of(source, **options) for name, (source, options) in sources.items()}
    print(f"| {'source':40} | {'digest':16} | seconds |\n|{'-' * 42}|{'-' * 18}|--------:|")
    for name, (digest, took) in found.items():
        print(f"| {name:40} | {digest:16} | {took:7.2f} |")
    if len({digest for digest, _ in found.values()}) > 1:
        print("the digests differ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
