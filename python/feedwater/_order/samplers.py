"""Orders that come from the trainer: PyTorch samplers and batch samplers, and subsets. They want lists of indices."""

from __future__ import annotations

import logging
import operator
from bisect import bisect_right
from typing import Any

import numpy as np

from .._common.homes import home_of
from .._common.ranks import Ranks
from ..errors import DataError, StateMismatchError
from .generators import Generators, pack_states
from .pull import KEPT_STATES, Pull, seed_of
from .sampler_epoch import SamplerEpoch, parts_of
from .steps import Indices, Step, Tail, count_steps, digest_indices, from_end, share_step

__all__ = ["BatchSamplerOrder", "SamplerOrder", "SubsetOrder", "check_split", "warn_other_length"]

log = logging.getLogger("feedwater")


def split_of(sampler: Any) -> Ranks | None:
    """Whose part it gives, or the sampler inside a batch sampler, if it splits by itself as DistributedSampler does."""
    for part in parts_of(sampler):
        rank, world = getattr(part, "rank", None), getattr(part, "num_replicas", None)
        if rank is not None and world is not None:
            return Ranks(rank, world)
    return None


def check_split(sampler: Any, ranks: Ranks) -> None:
    """Raises ValueError if the sampler splits by itself, and gives another part than that of these ranks."""
    split = split_of(sampler)
    if split is not None and split != ranks:
        raise ValueError(
            f"{type(sampler).__name__} has rank={split.rank}, num_replicas={split.world}, and the Loader "
            f"rank={ranks.rank}, num_replicas={ranks.world}: samples would come twice or never. Pass both the same "
            "ones (or the Loader mesh=), or a sampler of the whole order, which the Loader splits"
        )


def warn_other_length(sampler: Any, samples: int, name: str) -> None:
    """Warns if a sampler was made for another number of samples than the data set, or its Subset, has."""
    for part in parts_of(sampler):
        for attribute in ("data_source", "dataset", "weights"):
            made_for = operator.length_hint(getattr(part, attribute, None), samples)
            if made_for != samples:
                log.warning(
                    "%s was made for %d samples (its %s), and %s has %d. Its indices are places in what the Loader is "
                    "given, as with a DataLoader: give both the same data set, or the same Subset",
                    type(part).__name__,
                    made_for,
                    attribute,
                    name,
                    samples,
                )
                return


class SubsetOrder:
    """A fixed list of samples, shuffled anew every epoch if asked for: in runs of so many neighbours, 0 not at all."""

    known_ahead = True

    def __init__(self, indices: Indices, batch: int, tail: Tail, run_length: int, seed: int) -> None:
        self.indices, self.batch, self.tail = indices, batch, tail
        self.run_length, self.seed = run_length, seed
        self.largest = batch
        self._epochs: dict[int, Indices] = {}

    def step_at(self, epoch: int, start: int, ranks: Ranks) -> Step | None:
        part = share_step(start, len(self.indices) - start, self.batch, ranks, self.tail)
        if part is None:
            return None
        _, position, count, _ = part
        places = np.arange(position, position + count) % len(self.indices)
        return Step(epoch, start, *part, self._epoch_indices(epoch)[places])

    def count_steps(self, ranks: Ranks) -> int:
        return count_steps(len(self.indices), self.batch, ranks, self.tail)

    def find_position(self, epoch: int, index: int, ranks: Ranks) -> int | None:
        """The position at which an epoch has a sample first; None if it has not."""
        places = np.flatnonzero(self._epoch_indices(epoch) == index)
        return int(places[0]) if len(places) else None

    def count_samples(self, ranks: Ranks) -> int:
        return len(self.indices)

    def _epoch_indices(self, epoch: int) -> Indices:
        if not self.run_length:
            return self.indices
        if epoch not in self._epochs:
            if len(self._epochs) > 1:
                del self._epochs[min(self._epochs)]
            # Sorting by a keyed hash is a permutation that no library version changes. Stable, it keeps blocks whole.
            blocks = np.arange(len(self.indices), dtype=np.uint64) // np.uint64(self.run_length)
            hashes = _mix_bits(blocks + np.uint64(seed_of(self.seed, epoch)))
            self._epochs[epoch] = self.indices[np.argsort(hashes, kind="stable")]
        return self._epochs[epoch]


def _mix_bits(x: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The finaliser of splitmix64, wrapping."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return x


class _Pulled:
    """What the orders of samplers share: the epoch being pulled, the checks, the state."""

    known_ahead = False
    largest: int | None
    lists: bool
    """Whether the sampler gives lists."""

    def __init__(
        self, sampler: Any, seed: int, samples: int, sampler_epoch: SamplerEpoch | None, chosen: Indices | None
    ) -> None:
        self.sampler, self.seed = sampler, seed
        self.chosen = chosen
        """The samples of the Subset that the sampler's indices are places in; None: they are samples."""
        self.samples = samples if chosen is None else len(chosen)
        self.sampler_epoch = sampler_epoch or SamplerEpoch(sampler)
        self.sharded = split_of(sampler) is not None
        self._pull: Pull | None = None
        self._resume: dict[str, Any] | None = None
        self._generators = Generators(sampler)
        self._stood: dict[int, list[Any]] = {}
        """Where its generators stood before earlier epochs, the latest of them."""

    def _epoch_pull(self, epoch: int) -> Pull:
        if self._pull is None or self._pull.epoch != epoch:
            if self._pull is not None:
                self._leave_epoch(self._pull)
            resume = self._resume
            if resume is not None and resume["epoch"] != epoch:
                resume = None
            self._pull = Pull(self.sampler, self.seed, epoch, resume, self.sampler_epoch)
            self._resume = None  # not before: an interrupted one is made again
        return self._pull

    def _leave_epoch(self, pull: Pull) -> None:
        """Another epoch comes next."""
        pull.draw_rest(lists=self.lists)
        if pull.stood:
            self._stood[pull.epoch] = pull.stood
            if len(self._stood) > KEPT_STATES:
                del self._stood[next(iter(self._stood))]

    def find_position(self, epoch: int, index: int, ranks: Ranks) -> int | None:
        """The position at which an epoch has a sample first, as far as it is drawn; None if that is not known.

        Of a sampler that splits by itself it is not: the positions of what it gave go by how that was cut into steps.
        """
        pull = self._pull
        if pull is None or pull.epoch != epoch or (self.sharded and ranks.world > 1):
            return None
        drawn = from_end(np.array(pull.flat, np.int64), self.samples)
        wanted = index if self.chosen is None else np.flatnonzero(self.chosen == index)
        places = np.flatnonzero(np.isin(drawn, wanted))
        return pull.base + int(places[0]) if len(places) else None

    def _check_indices(self, indices: Indices) -> Indices:
        """The samples that they mean: negative ones count from the end, and those of a Subset are places in it."""
        indices = from_end(indices, self.samples)
        bad = indices[(indices < 0) | (indices >= self.samples)]
        if len(bad):
            name, last = type(self.sampler).__name__, self.samples - 1
            if self.chosen is None:
                raise DataError(f"{name} gave index {bad[0]}, but the data set has samples 0 to {last}")
            raise DataError(
                f"{name} gave index {bad[0]}, but the Subset has places 0 to {last}, and a sampler's indices are "
                "places in it, as with a DataLoader: make the sampler for the Subset, or pass the whole data set"
            )
        return indices if self.chosen is None else self.chosen[indices]

    def save_state(self, epoch: int, consumed: int, ranks: Ranks) -> dict[str, Any]:
        """What a resumed run must know of the sampler besides the cursor.

        It is the same on all ranks, unless the sampler splits by itself: then digest and state are this rank's.
        """
        drawn = consumed // ranks.world if self.sharded else consumed
        if self._resume is not None and (epoch, drawn) == (self._resume["epoch"], self._resume.get("drawn")):
            return self._resume  # loaded, and nothing drawn since
        state: dict[str, Any] = {"class": home_of(self.sampler), "epoch": epoch, "drawn": drawn}
        if self.chosen is not None:
            state["subset"] = digest_indices(self.chosen)
        if self.sharded:
            state |= {"world": ranks.world, "rank": ranks.rank}
        if stood := self._states_before(epoch):
            state["generators"] = pack_states(stood)
        pull = self._pull
        if pull is None or pull.epoch != epoch:
            return state
        digest = pull.digest_until(drawn)
        if digest is not None:
            state["digest"] = digest
        if drawn in pull.states:
            state["state"] = pull.states[drawn]
        return state

    def _states_before(self, epoch: int) -> list[Any]:
        """Where the sampler's generators stood before an epoch, or stand if it was not drawn yet."""
        pull = self._pull
        if pull is not None and pull.epoch == epoch:
            return pull.stood
        if epoch in self._stood:
            return self._stood[epoch]
        if pull is not None:
            pull.draw_rest(lists=self.lists)
        return self._generators.read_states()

    def load_state(self, state: dict[str, Any] | None, ranks: Ranks) -> None:
        """Takes up what save_state told; None: a beginning. Raises StateMismatchError if it cannot go on from there."""
        self._pull = self._resume = None
        self._stood = {}
        if state is None:
            return
        kind = type(self.sampler)
        if state["class"] != home_of(self.sampler):
            raise StateMismatchError(f"the state is of sampler {state['class']}, this Loader has {kind.__qualname__}")
        if state.get("subset") != (None if self.chosen is None else digest_indices(self.chosen)):
            raise StateMismatchError("the state is of another choice of samples: another Subset under the sampler")
        if self.sharded and state.get("world") != ranks.world:
            raise StateMismatchError(
                f"{kind.__qualname__} splits the data by itself, over {state.get('world')} ranks in the state and "
                f"{ranks.world} now: resume on as many ranks, or pass a sampler of the whole order"
            )
        if "generators" in state:
            self._check_generators(state, ranks)
        if "epoch" in state:  # states of earlier versions have it only where the sampler has a state of its own
            self._resume = dict(state)
            if self.sharded and state.get("rank") != ranks.rank:  # another rank drew other indices: not comparable
                self._resume.pop("digest", None)

    def _check_generators(self, state: dict[str, Any], ranks: Ranks) -> None:
        """Raises StateMismatchError if the sampler cannot go on from where the state's generators stood."""
        seeds, before = (
            self._generators.read_seeds(),
            self._generators.seeds_of(self._generators.unpack_states(state["generators"])),
        )
        if self.sharded and state.get("rank") != ranks.rank and seeds != before:
            raise StateMismatchError(
                f"the state is of rank {state.get('rank')}, whose {type(self.sampler).__qualname__} has a generator "
                f"seeded otherwise than that of rank {ranks.rank}: save and load a state on each rank"
            )


class SamplerOrder(_Pulled):
    """An order given index by index: the global one, or one rank's part if the sampler splits by itself."""

    lists = False

    def __init__(
        self,
        sampler: Any,
        batch: int,
        tail: Tail,
        seed: int,
        samples: int,
        sampler_epoch: SamplerEpoch | None = None,
        chosen: Indices | None = None,
    ) -> None:
        super().__init__(sampler, seed, samples, sampler_epoch, chosen)
        self.batch, self.tail = batch, tail
        self.largest = batch

    def step_at(self, epoch: int, start: int, ranks: Ranks) -> Step | None:
        pull = self._epoch_pull(epoch)
        # A sampler that splits by itself is the whole order of a world of one.
        alone, factor = (Ranks(0, 1), ranks.world) if self.sharded else (ranks, 1)
        begin = start // factor
        pull.ensure_drawn(begin + self.batch * alone.world)
        left = pull.base + len(pull.flat) - begin
        part = share_step(begin, left, self.batch, alone, self.tail)
        if part is None:
            return None
        take, position, count, rows = part
        indices = self._check_indices(pull.take_indices(position, count))
        if self.sharded:
            position = start + ranks.rank * take
        return Step(epoch, start, take * factor, position, count, rows, indices)

    def count_steps(self, ranks: Ranks) -> int:
        return count_steps(len(self.sampler), self.batch, Ranks(0, 1) if self.sharded else ranks, self.tail)

    def count_samples(self, ranks: Ranks) -> int:
        return operator.length_hint(self.sampler) * (ranks.world if self.sharded else 1)


class BatchSamplerOrder(_Pulled):
    """An order given list by list. A list is the batch of one step: of all ranks, or of this one if it is split.

    A list of all ranks that does not divide among them is shared as a last step is: with "short" some come twice, with
    "valid" the last ranks' last rows hold no sample.
    """

    lists = True

    def __init__(
        self,
        sampler: Any,
        seed: int,
        samples: int,
        sampler_epoch: SamplerEpoch | None = None,
        tail: Tail = "short",
        chosen: Indices | None = None,
    ) -> None:
        super().__init__(sampler, seed, samples, sampler_epoch, chosen)
        self.tail = tail
        self.largest = None
        self._warned = False

    def step_at(self, epoch: int, start: int, ranks: Ranks) -> Step | None:
        pull = self._epoch_pull(epoch)
        factor = ranks.world if self.sharded else 1
        begin = start // factor - pull.base
        pull.ensure_drawn(start // factor + 1, lists=True)
        if begin >= len(pull.flat):
            return None
        number = bisect_right(pull.bounds, begin) - 1
        # A state of lists of other lengths may lie amid a list: only what is left of it.
        items = np.array(pull.flat[begin : pull.bounds[number + 1]], np.int64)
        step = self._make_step(epoch, start, begin + pull.base, items, ranks)
        if self.sharded:
            step.place = number  # other ranks' lists may be longer
        return step

    def _make_step(self, epoch: int, start: int, first: int, items: Indices, ranks: Ranks) -> Step:
        take = len(items)
        if self.sharded:
            position = first * ranks.world + ranks.rank * take
            return Step(epoch, start, take * ranks.world, position, take, take, self._check_indices(items))
        each = ranks.share_evenly(take)
        part = share_step(first, take, each, ranks, self.tail)
        assert part is not None
        _, position, count, _ = part
        if self.tail == "short" and each * ranks.world > take:
            self._warn_uneven(take, each * ranks.world - take, ranks.world)
        places = np.arange(position - first, position - first + count) % take
        return Step(epoch, start, *part, self._check_indices(items[places]))

    def _warn_uneven(self, samples: int, repeats: int, world: int) -> None:
        """The first time that a list does not divide among the ranks."""
        if not self._warned:
            self._warned = True
            log.warning(
                "%s gave a list of length %d, which is the batch of one step over %d ranks: %d rows are repeats, so "
                "that all ranks have as many, and so with each list that does not divide by %d. Give lists that do, or "
                'pass tail="valid" for a mask in place of repeats; a sampler with num_replicas and rank gives each '
                "rank lists of its own",
                type(self.sampler).__name__,
                samples,
                world,
                repeats,
                world,
            )

    def count_steps(self, ranks: Ranks) -> int:
        return len(self.sampler)

    def count_samples(self, ranks: Ranks) -> int:
        inner = getattr(self.sampler, "sampler", None)
        if inner is None:
            return sum(map(len, self.sampler)) if isinstance(self.sampler, (list, tuple)) else 0
        return operator.length_hint(inner) * (ranks.world if self.sharded else 1)
