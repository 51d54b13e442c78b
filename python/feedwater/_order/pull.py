"""One epoch of a PyTorch sampler, drawn in this process.

It runs under a random state of its own, seeded by (seed, epoch): the program's random numbers are never touched, and a
resumed run draws the same epoch again and skips what is consumed. A generator of the sampler's own is put where it
stood before, and what is skipped must be what was consumed.
"""

from __future__ import annotations

import operator
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from .._common.random_state import RandomState
from .._common.torch_modes import on_cpu
from ..errors import StateMismatchError
from .generators import Generators
from .sampler_epoch import SamplerEpoch
from .steps import Indices

__all__ = ["PLACES", "Pull", "index_of", "seed_of"]

KEPT_STATES = 300
PLACES = "numpy.flatnonzero(mask)"
"""Of the samples that a mask chooses."""


def seed_of(seed: int, epoch: int) -> int:
    """64 bits for one epoch of one seed."""
    import hashlib

    digest = hashlib.sha256(f"feedwater sampler {seed} {epoch}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def index_of(item: Any, sampler: Any) -> int:
    """An index as a sampler gave it; raises TypeError if it is none."""
    if item is True or item is False:
        raise TypeError(f"{type(sampler).__name__} gave {item}: needs indices; of a mask pass its places, {PLACES}")
    try:
        return operator.index(item)
    except TypeError:
        name = type(sampler).__name__
        raise TypeError(f"{name} gave {item!r:.50}: needs indices, whole numbers (lists: batch_sampler=)") from None


def _check_list(items: Any, sampler: Any) -> Any:
    if not isinstance(items, Iterable):
        raise TypeError(f"{type(sampler).__name__} gave {items!r:.50}: a batch_sampler gives lists of indices")
    return items


class Pull:
    """One epoch of a sampler, drawn as it is needed and kept, so that steps can be looked at again.

    Items are indices, or lists of them (a batch sampler); both are kept flat. base counts the samples before the first
    one kept: more than 0 only if the sampler restored a state of its own.
    """

    def __init__(
        self, sampler: Any, seed: int, epoch: int, resume: dict[str, Any] | None, sampler_epoch: SamplerEpoch
    ) -> None:
        self.epoch, self.ended = epoch, False
        self.flat = array("q")
        self.bounds = array("q", [0])
        """Where each list of a batch sampler ends, in flat."""
        resume = resume or {}
        self._restored = resume.get("state") if hasattr(sampler, "load_state_dict") else None
        self.base = 0 if self._restored is None else int(resume["drawn"])
        self.states: dict[int, Any] = {}
        """The sampler's own state by samples drawn, where it has one; the latest of them."""
        self._sampler, self._sampler_epoch = sampler, sampler_epoch
        self._who = f"the sampler {type(sampler).__name__}"
        self._random = RandomState(0)
        self._seed = seed_of(seed, epoch)
        self._iterator: Iterator[Any] | None = None
        self._generators = Generators(sampler)
        if "generators" in resume:
            self._generators.restore_states(self._generators.unpack_states(resume["generators"]))
        self.stood = self._generators.read_states()
        """Where the sampler's generators stood before the epoch was drawn."""
        self._before: int | None = 0 if self._restored is None else resume.get("digest")
        """The digest of what lies before base; None if it is not known."""
        self._summed = self.base, self._before
        self._expected: tuple[int, int] | None = None
        if self._restored is None and "digest" in resume:  # what is restored is not drawn again: nothing to compare
            self._expected = int(resume["drawn"]), resume["digest"]

    def ensure_drawn(self, drawn: int, *, lists: bool = False) -> None:
        """Draws until that many samples are there, or the epoch ends. StateMismatchError if it is another one."""
        while not self.ended and self.base + (self.bounds[-1] if lists else len(self.flat)) < drawn:
            try:
                if self._iterator is None:
                    self._random = RandomState(self._seed)
                    self._run_seeded(partial(self._begin_epoch, lists))
                with self._sampler_epoch.drawing():
                    self._run_seeded(partial(self._draw_more, drawn - self.base - len(self.flat), lists))
            except BaseException:  # a generator that was interrupted is dead: the next draw begins it anew and skips
                self._iterator = None
                raise
        self._compare_skipped()

    def draw_rest(self, *, lists: bool = False) -> None:
        """Draws the rest, if the sampler has generators of its own: how far was looked ahead must not tell in the next
        epoch. Not one that gives more than its length, which may have no end, nor one that is not known to fit.
        """
        most = operator.length_hint(self._sampler)  # 0 also of a batch sampler over a sampler that has no length
        if not self.stood or self._expected is not None or not most:
            return
        if lists:
            while not self.ended and len(self.bounds) - 1 <= most:
                self.ensure_drawn(self.base + len(self.flat) + 1, lists=True)
        else:
            self.ensure_drawn(most + 1)

    def digest_until(self, drawn: int) -> int | None:
        """Of the indices up to there, however they were cut into steps and lists; None if they are not known.

        It is a CRC-32, which goes on from a number: one that is restored has not the indices before base.
        """
        at, digest = self._summed
        if drawn < at:
            at, digest = self.base, self._before
        if digest is None or not at <= drawn <= self.base + len(self.flat):
            return None
        with memoryview(self.flat) as flat:
            digest = zlib.crc32(flat[at - self.base : drawn - self.base], digest)
        self._summed = drawn, digest
        return digest

    def _compare_skipped(self) -> None:
        """What is skipped must be what was consumed before the state was saved."""
        if self._expected is None:
            return
        drawn, digest = self._expected
        if not self.ended and len(self.flat) < drawn:
            return
        if self.digest_until(drawn) != digest:
            raise StateMismatchError(
                f"{type(self._sampler).__name__} draws epoch {self.epoch} otherwise than before: its first {drawn:,} "
                "samples are not those that were consumed when the state was saved, and some would come twice, others "
                "never. Resume with the same sampler. If it keeps anything from one epoch to the next, give it "
                "set_epoch(epoch), or state_dict() and load_state_dict(state); or leave its generator out"
            )
        self._expected = None

    def _begin_epoch(self, lists: bool) -> None:
        self._generators.restore_states(self.stood)
        self._sampler_epoch.tell_sampler(self.epoch)
        if self._restored is not None:
            self._sampler.load_state_dict(self._restored)
        iterator = iter(self._sampler)
        done = len(self.bounds) - 1 if lists else len(self.flat)
        next(islice(iterator, done, done), None)
        self._iterator = iterator
        self._sampler_epoch.note_epoch()

    def _run_seeded(self, work: Callable[[], None]) -> None:
        """The sampler's code, under its random state."""
        on_cpu(partial(self._random.run_seeded, work, self._who))

    def _draw_more(self, wanted: int, lists: bool) -> None:
        assert self._iterator is not None
        before = len(self.flat)
        if lists:
            del self.flat[self.bounds[-1] :]  # what an interrupted draw left
            drawn = list(islice(self._iterator, 1))
            for items in drawn:
                self.flat.extend(index_of(item, self._sampler) for item in _check_list(items, self._sampler))
                self.bounds.append(len(self.flat))
            self.ended = not drawn
        else:
            self.flat.extend(index_of(item, self._sampler) for item in islice(self._iterator, wanted))
            self.ended = len(self.flat) - before < wanted
        if hasattr(self._sampler, "state_dict"):
            self.states[self.base + len(self.flat)] = self._sampler.state_dict()
            if len(self.states) > KEPT_STATES:
                del self.states[next(iter(self.states))]

    def take_indices(self, position: int, count: int) -> Indices:
        """count samples from position on; beyond the end the epoch begins again."""
        first, length = position - self.base, len(self.flat)
        if first + count <= length:
            return np.array(self.flat[first : first + count], np.int64)
        return np.array([self.flat[place % length] for place in range(first, first + count)], np.int64)
