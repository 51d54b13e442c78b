"""What becomes of a bucket's faults: the same batches, or an error that names the object.

A VersityGW lies behind toxiproxy, which delays, cuts, resets and truncates connections, or behind troubleproxy, which
does so with single requests. For each row two epochs have the digest of the folder. So have jobs whose nodes read the
folder and the bucket, one of which is killed, and such that go on from the one to the other. Then a loop is timed, and
objects are replaced, cut and removed while a job runs. Without photographs pictures are made.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import feedwater
import numpy as np
import PIL.Image
from feedwater import Loader

from sources import KEYS, digest_of, free_port, prepare_photos, put_object, running, running_nodes, versity_gateway

TOXICS: dict[str, list[dict[str, Any]]] = {
    "calm": [],
    "25 ± 20 ms": [{"type": "latency", "attributes": {"latency": 25, "jitter": 20}}],
    "10 MB/s": [{"type": "bandwidth", "attributes": {"rate": 10_000}}],
    "in pieces of 1 to 3 KB": [{"type": "slicer", "attributes": {"average_size": 2000, "size_variation": 1000}}],
    "a third of connections is reset": [{"type": "reset_peer", "toxicity": 0.33, "attributes": {"timeout": 50}}],
    "half end after 300 KB": [{"type": "limit_data", "toxicity": 0.5, "attributes": {"bytes": 300_000}}],
    "one in 20 falls silent": [{"type": "timeout", "toxicity": 0.05, "attributes": {"timeout": 0}}],
    "one in 50 has a byte a second": [
        {"type": "slicer", "toxicity": 0.02, "attributes": {"average_size": 1, "delay": 1_000_000}}
    ],
}
"""By what is said of them: toxiproxy's, of what the server sends."""
FAULTS = {
    "503 SlowDown": "503",
    "500": "500",
    "429": "429",
    "a reset": "reset",
    "half a body": "cut",
    "a length that is wrong": "long",
}
"""What becomes of one in ten requests, as troubleproxy calls it."""
GONE = {
    "credentials that have expired": ("expired", "ExpiredToken"),
    "no answers": ("hang", "no answer for"),
}
"""What comes of all requests from one in a running job on, as troubleproxy calls it, and what is said of an object."""
BEFORE_GONE = 40
"""Reads of objects that are answered: those of the first batches."""
STALLS = {
    "25 ± 20 ms, 1 % of answers take 1 s": (0.005, ("--latency", "25ms", "--jitter", "20ms", "--late", "0.01")),
    "10 % of answers are 503": (0.02, ("--fault", "503")),
}
"""Which share of its time a loop may wait, and troubleproxy's flags."""
STALL_EPOCHS = 4
LARGE = 24


class Toxiproxy:
    """A program of that name, before a server.

    Each row has a proxy of its own, which stays: it hangs where toxics are taken from connections that have ended.
    """

    def __init__(self, control: int, server: str) -> None:
        self._control, self._server = control, server

    def _ask(self, path: str, body: dict[str, Any]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._control)
        connection.request("POST", path, json.dumps(body))
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        if answer.status >= 300:
            raise SystemExit(f"toxiproxy: POST {path}: {answer.status} {said!r}")

    def add_proxy(self, *toxics: dict[str, Any]) -> str:
        """The address of a proxy with toxics."""
        address = f"127.0.0.1:{free_port()}"
        self._ask("/proxies", {"name": address, "listen": address, "upstream": self._server, "enabled": True})
        for at, toxic in enumerate(toxics):
            self._ask(f"/proxies/{address}/toxics", {"name": f"toxic{at}", "stream": "downstream", **toxic})
        return address

    def cut(self, address: str, seconds: float) -> None:
        """Ends all connections of a proxy, and has it take none for so long."""
        self._ask(f"/proxies/{address}", {"enabled": False})
        time.sleep(seconds)
        self._ask(f"/proxies/{address}", {"enabled": True})


@contextlib.contextmanager
def troubled(program: str, server: str, *trouble: str) -> Iterator[str]:
    """The address of a troubleproxy before a server."""
    process = subprocess.Popen([program, *trouble, server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()


def place_of(address: str) -> str:
    """The photographs in the bucket of a server."""
    return f"s3://data/photos?endpoint=http://{address}"


def said_of(address: str, spoil: Callable[[], None]) -> str:
    """The error of a job in which something happens to an object after the first batch."""
    crop = feedwater.transforms.CenterCrop(64)
    with Loader(place_of(address), crop, batch_size=8, memory=16 << 20) as loader:
        batches = iter(loader)
        next(batches)
        spoil()
        try:
            for _ in itertools.chain(batches, loader):
                pass
        except feedwater.DataError as error:
            return str(error)
    return ""


def refused(place: str) -> str:
    """What is said where nothing can be read."""
    try:
        with Loader(place, feedwater.transforms.CenterCrop(64), batch_size=8, start_timeout=10) as loader:
            next(iter(loader))
    except feedwater.Error as error:
        return f"{type(error).__name__}: {error}"
    return ""


def gone(address: str) -> str:
    """The error of a job on a node whose bucket gives nothing any more."""
    crop = feedwater.transforms.CenterCrop(64)
    with running_nodes(f"photos={place_of(address)}") as nodes:
        try:
            with Loader("photos", crop, nodes=list(nodes), batch_size=8, timeout=8, memory=16 << 20) as loader:
                for _ in itertools.chain.from_iterable(itertools.repeat(loader, 3)):
                    pass
        except feedwater.StallError as error:
            return str(error)
    return ""


def change(objects: Path, server: str) -> dict[str, tuple[Callable[[], None], str]]:
    """What happens to the last photograph, and what is said of it.

    It is replaced by the server's own request: what a file of its has been overwritten with has the old ETag.
    """
    last = sorted((objects / "data" / "photos").rglob("*.*"))[-1]
    data = last.read_bytes()

    def replace() -> None:
        put_object(server, f"/data/{last.relative_to(objects / 'data')}", data[:-1] + bytes([data[-1] ^ 1]))

    def cut() -> None:
        last.write_bytes(data[: len(data) // 2])

    return {"replaced": (replace, "has version"), "cut": (cut, "bytes"), "removed": (last.unlink, "is gone")}


def add_large(root: Path) -> None:
    """Pictures of half a megabyte beside small ones: bodies that no socket's buffer holds."""
    rng = np.random.default_rng(2)
    for at in range(LARGE):
        noise = PIL.Image.fromarray(rng.integers(0, 256, (225, 300, 3), dtype=np.uint8))
        noise.resize((1200, 900)).save(root / f"class{at % 3}" / f"large{at:03}.jpg", quality=95)


def stream_of(loader: Loader, total: Any, batches: int | None = None, then: Callable[[], object] | None = None) -> None:
    """Adds so many batches, or the rest of two epochs, to a digest; then is called after the third."""
    taken = 0
    while loader.state_dict()["epoch"] < 2 and taken != batches:
        for images, labels in loader:
            total.update(np.asarray(images).tobytes() + np.asarray(labels).astype("<i8").tobytes())
            taken += 1
            if taken == 3 and then is not None:
                then()
            if taken == batches:
                break


def jobs(folder: Path, server: str) -> Iterator[tuple[str, str, float]]:
    """Names, digests and seconds of jobs whose nodes read the folder and the bucket."""
    crop, options = feedwater.transforms.RandomResizedCrop(96), {"batch_size": 64, "shuffle": True, "seed": 5}
    here, bucket = f"photos={folder}", f"photos={place_of(server)}"
    with running_nodes(here, bucket, bucket) as nodes:
        for name, killed in {"three nodes": None, "three nodes, one is killed": list(nodes.values())[1]}.items():
            total, began = hashlib.sha256(), time.perf_counter()
            with Loader("photos", crop, nodes=list(nodes), **options) as loader:
                stream_of(loader, total, then=killed and killed.kill)
            yield name, total.hexdigest()[:16], time.perf_counter() - began
        there = [list(nodes)[2], next(iter(nodes))]
        for name, order in {
            "bucket, resumed on the folder": there,
            "folder, resumed on the bucket": there[::-1],
        }.items():
            total, began = hashlib.sha256(), time.perf_counter()
            with Loader("photos", crop, nodes=[order[0]], **options) as loader:
                stream_of(loader, total, batches=3)
                state = loader.state_dict()
            with Loader("photos", crop, nodes=[order[1]], **options) as loader:
                loader.load_state_dict(state)
                stream_of(loader, total)
            yield name, total.hexdigest()[:16], time.perf_counter() - began


def stall_of(source: Any, step_s: float) -> float:
    """The share of its time that a loop waits whose steps take so long. The first epoch does not count."""
    crop = feedwater.transforms.RandomResizedCrop(96)
    waited = worked = 0.0
    with Loader(source, crop, batch_size=64, shuffle=True, seed=5) as loader:
        for epoch in range(1 + STALL_EPOCHS):
            batches, end = iter(loader), object()
            while True:
                asked = time.perf_counter()
                if next(batches, end) is end:
                    break
                came = time.perf_counter()
                time.sleep(step_s)
                if epoch:
                    waited += came - asked
                    worked += time.perf_counter() - came
    return waited / (waited + worked)


class Table:
    """Rows that are printed at once, and how many are not as they should be."""

    def __init__(self) -> None:
        self.bad = 0

    def add_row(self, name: str, found: str, good: bool, took: float | None = None) -> None:
        """Prints a row."""
        self.bad += not good
        seconds = "" if took is None else f"{took:.2f}"
        print(f"| {name:44} | {found:16} | {seconds:>7} | {'' if good else 'WRONG'} |", flush=True)


def check_digests(table: Table, want: str, toxiproxy: Toxiproxy, server: str, proxy: str, folder: Path) -> None:
    """Two epochs through each trouble."""

    def add_bucket(name: str, address: str) -> None:
        digest, took = digest_of(place_of(address))
        table.add_row(name, digest, digest == want, took)

    for name, toxics in TOXICS.items():
        add_bucket(name, toxiproxy.add_proxy(*toxics))
    address = toxiproxy.add_proxy()
    cutter = threading.Thread(target=toxiproxy.cut, args=[address, 2])
    cutter.start()
    add_bucket("no server for 2 s", address)
    cutter.join()
    for name, fault in FAULTS.items():
        with troubled(proxy, server, "--fault", fault) as address:
            add_bucket(f"one in ten: {name}", address)
    with troubled(proxy, server, "--fault", "expired", "--share", "1", "--after", "40", "--times", "1") as address:
        add_bucket("credentials expire once", address)
    for name, digest, took in jobs(folder, server):
        table.add_row(name, digest, digest == want, took)


def check_errors(table: Table, toxiproxy: Toxiproxy, server: str, objects: Path) -> None:
    """What is said of objects that change, and of what cannot be read."""
    last = max(path for path in (objects / "data" / "photos").rglob("*.*")).name
    address = toxiproxy.add_proxy()
    for name, (spoil, says) in change(objects, server).items():
        said = said_of(address, spoil)
        table.add_row(f"an object is {name}", "DataError" if said else "nothing", says in said and last in said)
        print(f"    {said}")
    said = refused(f"s3://data/none?endpoint=http://{server}")
    table.add_row("a prefix without an object", said.partition(":")[0], said.startswith("DataError") and "none" in said)
    print(f"    {said}")
    os.environ |= {name: key[::-1] for name, key in KEYS.items() if "SECRET" in name}
    said = refused(place_of(server))
    os.environ.update(KEYS)
    table.add_row("a wrong key", said.partition(":")[0], "SignatureDoesNotMatch" in said)
    print(f"    {said}")


def check_gone(table: Table, server: str, proxy: str) -> None:
    """What is said where a bucket gives nothing any more in a running job."""
    for name, (fault, says) in GONE.items():
        with troubled(proxy, server, "--fault", fault, "--share", "1", "--after", str(BEFORE_GONE)) as address:
            said = gone(address)
        table.add_row(f"{name}, for ever", "StallError" if said else "nothing", says in said and "/n0" in said)
        print(f"    {said}")


def check_stalls(table: Table, server: str, proxy: str, folder: Path, step_s: float) -> None:
    """How long a loop waits that is slower than the machine."""
    least = stall_of(folder, step_s)
    table.add_row("stall: the folder", f"{least:.2%}", True, step_s)
    for name, (limit, trouble) in STALLS.items():
        with troubled(proxy, server, *trouble) as address:
            stall = stall_of(place_of(address), step_s)
        table.add_row(f"stall: {name}", f"{stall:.2%} of {limit:.1%}", stall <= limit + least, step_s)


def main() -> int:
    """Prints the table; 1 where something else came."""
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("photos", type=Path, nargs="?")
    parse.add_argument("--versitygw", required=True)
    parse.add_argument("--toxiproxy", required=True)
    parse.add_argument("--troubleproxy", required=True)
    asked = parse.parse_args()
    os.environ.update(KEYS)
    table = Table()
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as stack:
        folder = Path(made) / "data" / "photos"
        prepare_photos(asked.photos, folder)
        if asked.photos is None:
            add_large(folder)
        want, took = digest_of(folder)
        server = stack.enter_context(versity_gateway(asked.versitygw, folder.parent, Path(made)))
        control = free_port()
        stack.enter_context(running(control, asked.toxiproxy, "-host", "127.0.0.1", "-port", str(control)))
        toxiproxy = Toxiproxy(control, server)
        table.add_row("the folder", want, True, took)
        check_digests(table, want, toxiproxy, server, asked.troubleproxy, folder)
        batches = 2 * -(-sum(path.is_file() for path in folder.rglob("*")) // 64)
        check_stalls(table, server, asked.troubleproxy, folder, max(0.2, 3 * took / batches))
        check_gone(table, server, asked.troubleproxy)
        check_errors(table, toxiproxy, server, Path(made) / "objects")
    if table.bad:
        print(f"{table.bad} rows are not as they should be", file=sys.stderr)
    return 1 if table.bad else 0


if __name__ == "__main__":
    sys.exit(main())
