"""How many samples pods have sent, also those that are gone."""

from __future__ import annotations

import http.client
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from api import read
from workload import NAMESPACE

from cluster import in_url

EVERY = 1.0
"""Seconds between two looks. What a pod sends between the last one and its end is not counted."""


class Counter:
    """Looks at all pods again and again. A program that begins anew counts from 0, beside the one before."""

    def __init__(self) -> None:
        self._ended = 0.0
        self._latest: dict[str, float] = {}
        self._pods: dict[str, str] = {}

    def look(self) -> None:
        """Reads each pod that answers; those of the last list while there is none."""
        self._pods = _addresses() or self._pods
        for uid, address in self._pods.items():
            now = _sent(address)
            if now is None:
                continue
            before = self._latest.get(uid, 0.0)
            if now < before:
                self._ended += before
            self._latest[uid] = now

    def samples(self) -> float:
        """All that was seen."""
        return self._ended + sum(self._latest.values())


def _addresses() -> dict[str, str]:
    """Where pods are, by their numbers."""
    place = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app.kubernetes.io/component%3Dnode"
    found = (read(place) or {}).get("items", [])
    return {pod["metadata"]["uid"]: pod["status"].get("podIP", "") for pod in found}


def _sent(address: str) -> float | None:
    try:
        with urllib.request.urlopen(f"http://{in_url(address)}:7071/metrics", timeout=1) as answer:
            found = re.search(r"^feedwater_node_samples_total (\S+)", answer.read().decode(), re.MULTILINE)
    except (OSError, ValueError, http.client.HTTPException):  # it begins, ends, or stands still
        return None
    return float(found[1]) if found else 0.0


@contextmanager
def counted() -> Iterator[Counter]:
    """A Counter at work, which has looked once before."""
    counter, end = Counter(), threading.Event()
    counter.look()

    def work() -> None:
        while not end.wait(EVERY):
            counter.look()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield counter
    finally:
        end.set()
        thread.join()
        counter.look()
