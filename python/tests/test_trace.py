"""The spans of a Loader's batches, from the loop to the node, as a collector gets them."""

from __future__ import annotations

import json
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
from feedwater._trace import parent

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector:
    """Takes OTLP over HTTP, in JSON."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        taken = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                for of in body["resourceSpans"]:
                    service = said(of["resource"])["service.name"]
                    for scope in of["scopeSpans"]:
                        taken.extend({**span, **said(span), "service": service} for span in scope["spans"])
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
        found = [span for span in list(self.spans) if span["name"] == f"feedwater.{name}"]
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


def said(thing: dict[str, Any]) -> dict[str, Any]:
    """Attributes by their names without the prefix that ours have."""
    return {
        entry["key"].removeprefix("feedwater."): next(iter(entry["value"].values()))
        for entry in thing.get("attributes", ())
    }


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
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
    assert sorted(int(batch["position"]) for batch in batches) == positions
    for batch in batches:
        assert (batch["traceId"].lower(), batch["parentSpanId"].lower()) == (TRACE, SPAN)
        assert batch["service"] == "feedwater-agent"
        assert (batch["job"], batch["rank"], batch["epoch"], batch["samples"]) == ("rn50", "1", "0", "8")
        assert batch["wait_seconds"] >= 0
        (attempt,) = collector.named("attempt", parentSpanId=batch["spanId"], outcome="done")
        assert attempt["node"] == address and attempt["hedge"] is False
        (made,) = collector.named("make", parentSpanId=attempt["spanId"])
        assert made["service"] == "feedwater-node" and int(made["bytes"]) > 8 * 32 * 32 * 3
        samples = collector.named("sample", parentSpanId=made["spanId"])
        assert len(samples) == 3
        if int(batch["position"]) == positions[-1]:
            assert {sample["key"] for sample in samples} <= keys


def test_nobody_is_told_of_anything_that_nobody_asked_for(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{SPAN}-01")
    with fake.loader() as loader:
        next(iter(loader))
        assert not loader._engine.feed._traced()
        assert loader._engine.feed._context == b""


def test_the_parent_is_the_programs_span_else_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACEPARENT", raising=False)
    assert parent() == b""
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{SPAN}-01" + "x" * 100_000)
    assert parent().startswith(b"00-" + TRACE.encode()) and len(parent()) < 100
    monkeypatch.setenv("TRACEPARENT", "é")
    assert parent().isascii()
    current = types.SimpleNamespace(trace_id=int(TRACE, 16), span_id=1, trace_flags=1, is_valid=False)
    span = types.SimpleNamespace(get_span_context=lambda: current)
    api = types.ModuleType("opentelemetry.trace")
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", api)  # as while it is being imported
    assert parent() == b"?"
    api.get_current_span = lambda: span  # type: ignore[attr-defined]
    assert parent() == b"?"
    current.is_valid = True
    assert parent() == f"00-{TRACE}-{1:016x}-01".encode()
