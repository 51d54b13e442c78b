"""What is wanted, what there is and what jobs wait, again and again, while KEDA scales."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from api import read
from workload import NAMESPACE

from cluster import in_url
from enginetest.processes import await_that

EVERY = 0.2
"""Seconds between two looks."""
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@dataclass
class Sample:
    """One look."""

    at: float
    wanted: dict[str, int | None]
    """By the address of each scaler that there is; None: it does not know, or does not answer."""
    replicas: int | None
    """What the Deployment asks for; None: the API server does not answer."""
    pods: int


class Watch:
    """Looks at the Deployment, its pods and the scalers."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def look(self) -> None:
        """One sample more."""
        found = read(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/feedwater/scale")
        pods = (read(PODS) or {}).get("items", [])
        by_component: dict[str, list[str]] = {"node": [], "scaler": []}
        for pod in pods:
            component = pod["metadata"].get("labels", {}).get("app.kubernetes.io/component")
            if component in by_component and "deletionTimestamp" not in pod["metadata"]:
                by_component[component].append(pod["status"].get("podIP", ""))
        wanted = {address: _wanted(address) for address in by_component["scaler"] if address}
        replicas = found["spec"].get("replicas", 0) if found else None
        self.samples.append(Sample(time.time(), wanted, replicas, len(by_component["node"])))

    def since(self, at: float) -> list[Sample]:
        """What was seen since then."""
        return [sample for sample in self.samples if sample.at >= at]

    def seen(self, at: float) -> set[int]:
        """All numbers of replicas since then."""
        return {sample.replicas for sample in self.since(at) if sample.replicas is not None}

    def story(self, at: float) -> str:
        """Each change of what was seen since then."""
        lines, last = [], None
        for sample in self.since(at):
            seen = f"wanted {list(sample.wanted.values())}, replicas {sample.replicas}, pods {sample.pods}"
            if seen != last:
                lines.append(f"{sample.at - at:6.1f} s: {seen}")
            last = seen
        return "\n".join(lines)

    def first(self, at: float, what: Callable[[Sample], bool], within: float) -> float:
        """Seconds from then to the first sample that is so; it has to come within so many from now."""
        found = await_that(
            "the number of pods",
            lambda: next((sample for sample in self.since(at) if what(sample)), None),
            within,
            lambda: self.story(at),
        )
        assert found is not None
        return found.at - at


def changes(samples: list[Sample]) -> int:
    """How often the number of replicas changed."""
    numbers = [sample.replicas for sample in samples if sample.replicas is not None]
    return sum(before != after for before, after in pairwise(numbers))


def _wanted(address: str) -> int | None:
    try:
        return int(json.loads(_ask(address, "wanted"))["wanted"])
    except (OSError, ValueError, http.client.HTTPException):  # it does not know, or is not there
        return None


def has_stream(address: str) -> bool:
    """Whether KEDA hears of a scaler at once."""
    return b"\nfeedwater_scaler_streams 1\n" in _ask(address, "metrics")


def _ask(address: str, page: str) -> bytes:
    with urllib.request.urlopen(f"http://{in_url(address)}:7071/{page}", timeout=0.5) as answer:
        found: bytes = answer.read()
        return found


@contextmanager
def watched() -> Iterator[Watch]:
    """A Watch at work."""
    watch, end = Watch(), threading.Event()

    def work() -> None:
        while not end.wait(EVERY):
            watch.look()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield watch
    finally:
        end.set()
        thread.join()
