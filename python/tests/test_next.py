"""What next does for a batch that is ready, counted: time differs between machines, the number of calls does not."""

from __future__ import annotations

import math
import select
import sys
from types import FrameType
from typing import Any

import pytest

from feedwater._meter import pulse

BATCHES = 20
MOST_CALLS = 106
"""Functions that are called for a batch, Python's and C's."""


@pytest.fixture
def ready(fake: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A Loader amid an epoch, which sends no pulse."""
    pytest.importorskip("torch")
    monkeypatch.setattr(pulse, "EVERY_S", math.inf)
    fake.set(samples=1000, window=4)
    with fake.loader() as loader:
        yield loader


def steady(loader: Any) -> Any:
    """Its iterator, after some batches."""
    batches = iter(loader)
    for _ in range(BATCHES):
        next(batches)
    return batches


def answer(loader: Any) -> None:
    """Waits until the agent has answered one more want, that of the batch which comes next."""
    select.select([loader._engine.feed.session.link._sock], [], [])


def test_few_functions_are_called_for_a_batch_that_is_ready(ready: Any) -> None:
    batches = steady(ready)
    called: list[str] = []

    def note(frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "c_call"):
            called.append(frame.f_code.co_name if event == "call" else arg.__name__)

    for _ in range(BATCHES):
        answer(ready)
        called.clear()
        sys.setprofile(note)
        next(batches)
        sys.setprofile(None)
        assert len(called) <= MOST_CALLS, " ".join(called)


def test_one_packet_goes_and_one_comes_for_a_batch_that_is_ready(ready: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = steady(ready)
    link, moved = ready._engine.feed.session.link, []
    for name in ("_send", "_recv"):
        call = getattr(link, name)
        monkeypatch.setattr(link, name, lambda *a, call=call, name=name: moved.append(name) or call(*a))
    for _ in range(BATCHES):
        answer(ready)
        next(batches)
    assert sorted(moved) == ["_recv"] * BATCHES + ["_send"] * BATCHES
