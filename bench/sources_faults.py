"""What becomes of a bucket's faults: the same batches, or an error that names the object.

A VersityGW lies behind toxiproxy, which delays, cuts, resets and truncates connections, and behind a proxy of this
script, which refuses some requests. For each row two epochs have the digest of the folder. Then an object is replaced,
cut and removed, while a job runs.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import http.server
import itertools
import json
import os
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import feedwater
from feedwater import Loader

from sources import KEYS, digest_of, free_port, prepare_photos, put_object, running, versity_gateway

TOXICS: dict[str, list[dict[str, Any]]] = {
    "calm": [],
    "25 ± 20 ms": [{"type": "latency", "attributes": {"latency": 25, "jitter": 20}}],
    "10 MB/s": [{"type": "bandwidth", "attributes": {"rate": 10_000}}],
    "in pieces of 1 to 3 KB": [{"type": "slicer", "attributes": {"average_size": 2000, "size_variation": 1000}}],
    "a third of connections is reset": [{"type": "reset_peer", "toxicity": 0.33, "attributes": {"timeout": 50}}],
    "half end after 300 KB": [{"type": "limit_data", "toxicity": 0.5, "attributes": {"bytes": 300_000}}],
    "one in 20 falls silent": [{"type": "timeout", "toxicity": 0.05, "attributes": {"timeout": 0}}],
}
"""By what is said of them: toxiproxy's, of what the server sends."""
REFUSED = 10
"""One in so many requests is refused."""


class Toxiproxy:
    """A program of that name, before a server."""

    def __init__(self, control: int, server: str) -> None:
        self._control, self.address = control, f"127.0.0.1:{free_port()}"
        self._ask("POST", "/proxies", {"name": "bucket", "listen": self.address, "upstream": server, "enabled": True})

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._control)
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        if answer.status >= 300:
            raise SystemExit(f"toxiproxy: {method} {path}: {answer.status} {said!r}")

    @contextlib.contextmanager
    def poisoned(self, toxics: list[dict[str, Any]]) -> Iterator[None]:
        """Has the toxics while the block runs."""
        for at, toxic in enumerate(toxics):
            self._ask("POST", "/proxies/bucket/toxics", {"name": f"toxic{at}", "stream": "downstream", **toxic})
        try:
            yield
        finally:
            for at in range(len(toxics)):
                self._ask("DELETE", f"/proxies/bucket/toxics/toxic{at}")

    def cut(self, seconds: float) -> None:
        """Ends all connections, and takes none for so long."""
        self._ask("POST", "/proxies/bucket", {"enabled": False})
        time.sleep(seconds)
        self._ask("POST", "/proxies/bucket", {"enabled": True})


class Refusing(http.server.BaseHTTPRequestHandler):
    """A proxy that refuses one in REFUSED requests, as a bucket that is asked too often does."""

    protocol_version = "HTTP/1.1"
    server_address: str
    count = itertools.count(1)

    def do_GET(self) -> None:
        """Asks the server, or refuses."""
        if next(self.count) % REFUSED == 0:
            self._answer(503, [], b"<Error><Code>SlowDown</Code></Error>")
            return
        connection = http.client.HTTPConnection(self.server_address)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        passed = [pair for pair in answer.getheaders() if pair[0].lower() not in ("connection", "transfer-encoding")]
        self._answer(answer.status, passed, body)
        connection.close()

    def do_HEAD(self) -> None:
        """Likewise."""
        self.do_GET()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        with contextlib.suppress(OSError):  # who asked needs it no more
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


class Threaded(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Answers many at once."""

    daemon_threads = True
    request_queue_size = 128


@contextlib.contextmanager
def refusing(server: str) -> Iterator[str]:
    """The address of a proxy that refuses some requests to a server."""
    kind = type("Refusing", (Refusing,), {"server_address": server})
    proxy = Threaded(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{proxy.server_address[1]}"
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


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


def main() -> int:
    """Prints the table; 1 where something else came."""
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("photos", type=Path, nargs="?")
    parse.add_argument("--versitygw", required=True)
    parse.add_argument("--toxiproxy", required=True)
    asked = parse.parse_args()
    os.environ.update(KEYS)
    bad = 0
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as stack:
        root = Path(made) / "data"
        prepare_photos(asked.photos, root / "photos")
        want, took = digest_of(root / "photos")
        server = stack.enter_context(versity_gateway(asked.versitygw, root, Path(made)))
        control = free_port()
        stack.enter_context(running(control, asked.toxiproxy, "-host", "127.0.0.1", "-port", str(control)))
        toxiproxy = Toxiproxy(control, server)
        print(f"| {'bucket':40} | {'digest':16} | seconds |\n|{'-' * 42}|{'-' * 18}|--------:|")
        print(f"| {'the folder':40} | {want:16} | {took:7.2f} |")

        def row(name: str, address: str) -> None:
            nonlocal bad
            digest, took = digest_of(place_of(address))
            bad += digest != want
            print(f"| {name:40} | {digest:16} | {took:7.2f} |", flush=True)

        for name, toxics in TOXICS.items():
            with toxiproxy.poisoned(toxics):
                row(name, toxiproxy.address)
        cutter = threading.Thread(target=toxiproxy.cut, args=[2])
        cutter.start()
        row("no server for 2 s", toxiproxy.address)
        cutter.join()
        row(f"one in {REFUSED} requests is refused", stack.enter_context(refusing(server)))
        last_name = max(path for path in (root / "photos").rglob("*.*")).name
        for name, (spoil, says) in change(Path(made) / "objects", server).items():
            said = said_of(toxiproxy.address, spoil)
            good = says in said and last_name in said
            bad += not good
            print(f"an object is {name}: {said or 'nothing is said'}")
    if bad:
        print(f"{bad} rows are not as they should be", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
