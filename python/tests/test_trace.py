"""The spans of a Loader's batches, from the loop to the node, as a collector gets them."""

from __future__ import annotations

import struct
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import feedwater
from feedwater._agent.trace import find_parent_span

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protobuf message: numbers, and bytes of what has a length."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 128:
                return value

    while at < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        yield number, message[at : at + size]
        at += size


def within(message: bytes, *path: int) -> list[Any]:
    """All that lies at a path of field numbers."""
    found: list[Any] = [message]
    for step in path:
        found = [value for one in found for number, value in fields(one) if number == step]
    return found


def said(attributes: list[bytes]) -> dict[str, Any]:
    """Attributes by their names, without the prefix that ours have."""
    as_python = {1: bytes.decode, 2: bool, 3: int, 4: lambda raw: struct.unpack("<d", raw)[0]}
    named = {}
    for attribute in attributes:
        kind, value = next(fields(within(attribute, 2)[0]))
        named[within(attribute, 1)[0].decode().removeprefix("feedwater.")] = as_python[kind](value)
    return named


def read(request: bytes) -> Iterator[dict[str, Any]]:
    """The spans of an ExportTraceServiceRequest."""
    for resource in within(request, 1):
        service = said(within(resource, 1, 1))["service.name"]
        for span in within(resource, 2, 2):
            trace, ident, parent = ((within(span, number) or [b""])[0].hex() for number in (1, 2, 4))
            name = within(span, 5)[0].decode().removeprefix("feedwater.")
            yield {"name": name, "trace": trace, "id": ident, "parent": parent, "service": service} | said(
                within(span, 9)
            )


class Collector:
    """Takes OTLP over HTTP."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        taken = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                taken.extend(read(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def named(self, name: str, **is_: Any) -> list[dict[str, Any]]:
        """Spans of a name, of which these are true."""
        found = [span for span in list(self.spans) if span["name"] == name]
        return [span for span in found if all(span.get(key) == value for key, value in is_.items())]

    def until(self, arrived: Callable[[], Any]) -> None:
        """Waits for spans; a minute at most."""
        end = time.monotonic() + 60
        while not arrived():
            assert time.monotonic() < end, self.spans
            time.sleep(0.01)

    def close(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{SPAN}-01")
    yield made
    made.close()


def test_a_batch_is_followed_to_node_and_file(collector: Collector, real: str, nodes: Any, photos: Path) -> None:
    address = nodes.start(photos)
    transform = feedwater.transforms.RandomResizedCrop(32)
    with feedwater.Loader(
        "photos", transform, batch_size=8, nodes=address, job="rn50", rank=1, num_replicas=2, steps_per_epoch=3
    ) as loader:
        positions = [loader.last.position for _ in loader if loader.last is not None]
        collector.until(lambda: len(collector.named("batch", outcome="done")) == len(positions))
        collector.until(lambda: len(collector.named("make", outcome="done")) >= len(positions))
        keys = {sample.key for sample in loader.replay_batch(positions[-1])}
    batches = collector.named("batch", outcome="done")
    assert sorted(batch["position"] for batch in batches) == positions
    for batch in batches:
        assert (batch["trace"], batch["parent"], batch["service"]) == (TRACE, SPAN, "feedwater-agent")
        assert (batch["job"], batch["rank"], batch["epoch"], batch["samples"]) == ("rn50", 1, 0, 8)
        assert batch["wait_seconds"] >= 0
        (attempt,) = collector.named("attempt", parent=batch["id"], outcome="done")
        assert attempt["node"] == address and attempt["hedge"] is False
        (made,) = collector.named("make", parent=attempt["id"])
        assert made["service"] == "feedwater-node" and made["bytes"] > 8 * 32 * 32 * 3
        samples = collector.named("sample", parent=made["id"])
        assert len(samples) == 3
        if batch["position"] == positions[-1]:
            assert {sample["key"] for sample in samples} <= keys


def test_nobody_is_told_of_anything_that_nobody_asked_for(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{SPAN}-01")
    with fake.loader() as loader:
        next(iter(loader))
        assert not loader._engine.feed.traced
        assert loader._engine.feed._context == b""


def test_the_parent_is_the_programs_span_else_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACEPARENT", raising=False)
    assert find_parent_span() == b""
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{SPAN}-01" + "x" * 100_000)
    assert find_parent_span().startswith(b"00-" + TRACE.encode()) and len(find_parent_span()) < 100
    monkeypatch.setenv("TRACEPARENT", "é")
    assert find_parent_span().isascii()
    current = types.SimpleNamespace(trace_id=int(TRACE, 16), span_id=1, trace_flags=1, is_valid=False)
    span = types.SimpleNamespace(get_span_context=lambda: current)
    api = types.ModuleType("opentelemetry.trace")
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", api)  # as while it is being imported
    assert find_parent_span() == b"?"
    api.get_current_span = lambda: span  # type: ignore[attr-defined]
    assert find_parent_span() == b"?"
    current.is_valid = True
    assert find_parent_span() == f"00-{TRACE}-{1:016x}-01".encode()
