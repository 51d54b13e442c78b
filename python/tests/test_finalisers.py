"""Batches that are wanted in finalisers of garbage."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import feedwater


class Holder:
    """Reads what is left of a pass when it goes, and says what came of it."""

    def __init__(self, said: list[Any]) -> None:
        self.said = said
        self.itself: Any = None

    def begin_pass(self, loader: Any) -> None:
        self.passing = iter(loader)
        next(self.passing)

    def __del__(self) -> None:
        try:
            self.said.append(len(list(self.passing)))
        except BaseException as error:
            self.said.append(error)


@pytest.mark.parametrize("cycle", [False, True])
def test_a_finaliser_that_runs_before_the_loaders_gets_its_batches(fake: Any, cycle: bool) -> None:
    said: list[Any] = []
    holder = Holder(said)  # the older of two in one cycle goes first
    holder.itself = holder if cycle else None
    holder.begin_pass(fake.loader())
    del holder
    gc.collect()
    assert said == [9]


def test_a_finaliser_that_runs_behind_the_loaders_is_told(fake: Any) -> None:
    said: list[Any] = []
    loader = fake.loader()
    holder = Holder(said)
    holder.itself = holder
    holder.begin_pass(loader)
    del loader, holder
    gc.collect()
    (error,) = said
    assert isinstance(error, feedwater.Error) and "this Loader was garbage" in str(error)
    assert len(fake.log("start")) == 1, "no agent was started for it"
    assert next(iter(fake.loader())) is not None
