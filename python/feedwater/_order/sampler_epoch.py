"""The epoch of the program's sampler: what the program tells it, and what the Loader does."""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from .._common.random_state import RandomState

__all__ = ["SamplerEpoch", "parts_of"]

log = logging.getLogger("feedwater")

FIRST = 0
"""A sampler that nobody told anything is at this epoch, as a Loader is."""


def parts_of(sampler: Any) -> tuple[Any, Any]:
    """A sampler, and the one inside a batch sampler; None where there is none."""
    return sampler, getattr(sampler, "sampler", None)


class _Told(int):
    """An epoch as we told it: the program may tell the same number, but that is another object."""


def _whole_number(epoch: Any) -> int | None:
    """A number of Python's as the object that it is, one of numpy's as Python's; None for what is no whole number."""
    try:
        return epoch if isinstance(epoch, int) else operator.index(epoch)
    except TypeError:
        return None


class SamplerEpoch:
    """Tells the sampler which epoch is drawn, and hears when the program tells it another one.

    The program's set_epoch is heard by the sampler's attribute `epoch`, as DistributedSampler has it; a sampler without
    one is told only, which a warning says. What the sampler itself changes while it draws is no wish of the program.
    """

    def __init__(self, sampler: Any) -> None:
        self._parts: list[Any] = [part for part in parts_of(sampler) if hasattr(part, "set_epoch")]
        self.known: int | None = FIRST
        """The sampler's epoch as far as it is no news."""
        self._warned = False

    def tell_sampler(self, epoch: int) -> None:
        """The epoch that is drawn next."""
        for part in self._parts:
            part.set_epoch(epoch if hasattr(part, "state_dict") else _Told(epoch))  # states are saved: plain numbers
        if self._parts and not self._warned and self._read_epoch() is None:
            self._warn_once(type(self._parts[0]).__name__)
        self.note_epoch()

    def _warn_once(self, name: str) -> None:
        self._warned = True
        log.warning(
            "%s has set_epoch and keeps the epoch in no attribute `epoch`: what the program tells it is not heard, and "
            "epochs advance by themselves. Call loader.set_epoch(epoch) too, or let the sampler keep self.epoch",
            name,
        )

    def take_wish(self) -> int | None:
        """The program's wish, once: from now on it is what we told."""
        wish = self.wish
        if wish is not None:
            RandomState(wish).run_seeded(partial(self.tell_sampler, wish), "the sampler's set_epoch")
        return wish

    def expect_epoch(self, epoch: int) -> None:
        """An epoch has ended and that one follows. The sampler is told now, so that being told the old one is heard."""
        if self._parts and self.wish is None:
            RandomState(epoch).run_seeded(partial(self.tell_sampler, epoch), "the sampler's set_epoch")

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """The sampler is at work: what becomes of its epoch is its own doing."""
        silent = self.wish is None
        yield
        if silent:
            self.note_epoch()

    def note_epoch(self) -> None:
        """Whatever the sampler's epoch is now, it is no news."""
        self.known = self._read_epoch()

    @property
    def wish(self) -> int | None:
        """The epoch that the program has told the sampler since; None if it has not."""
        now = self._read_epoch()
        same = now is self.known or (now == self.known and not isinstance(self.known, _Told))
        return None if same or now is None else int(now)

    def _read_epoch(self) -> int | None:
        for part in self._parts:
            epoch = _whole_number(getattr(part, "epoch", None))
            if epoch is not None and epoch >= FIRST:
                return epoch
        return None
