"""The shape of an epoch: in which order samples come, how many steps it has, and which part of them this rank takes."""

from __future__ import annotations

from typing import Any

from .._arguments import checks
from .._common import ranks as ranks_
from .._common.ranks import Ranks
from .._config import Config
from .._order.sampler_epoch import SamplerEpoch
from .._order.samplers import BatchSamplerOrder, SamplerOrder, SubsetOrder, check_split, warn_other_length
from .._order.steps import Order, RangeOrder, count_steps, digest_indices, find_start, share_step
from ..errors import DataError
from .opening import Opening

__all__ = ["EpochShape", "resolve_ranks"]


class EpochShape:
    """Of one Loader. It opens the plan where the arguments do not tell."""

    def __init__(self, config: Config, opening: Opening) -> None:
        self._config, self._opening = config, opening
        self.sampler = config.batch_sampler if config.sampler is None else config.sampler
        self.sampler_epoch = SamplerEpoch(self.sampler)
        self.order: Order | None = None

    def count_samples(self) -> int:
        """Samples that an epoch can choose from. Opens nothing where the source tells."""
        source = self._config.source
        if source.indices is not None:
            return len(source.indices)
        return source.samples if source.samples is not None else self._opening.open_plan().samples

    def count_positions(self) -> int:
        """Positions that an epoch's order has, the last step's repeats among them."""
        fixed, ranks = self._config.steps_per_epoch, self.find_ranks()
        if fixed is None or self._config.batch_size is None:
            more = ranks.world - 1 if self._config.tail == "short" else 0
            return 1 << 63 if self._config.listed else self._opening.open_plan().samples + more
        return fixed * self._config.batch_size * ranks.world

    def batch_size_at(self, position: int) -> int:
        """Samples of this rank's batch that begins at a position of the epoch's own order. IndexError if none does."""
        order, ranks = self.ensure_order(), self.find_ranks()
        assert isinstance(order, RangeOrder)
        size = order.batch_size_at(position, ranks)
        if not size:
            raise IndexError(
                f"replay: position={position}: no batch of rank {ranks.rank} is known to begin there. Pass what was "
                "loader.last.position, or use replay(index, epoch)"
            )
        return size

    def find_position(self, index: int, epoch: int) -> int | None:
        """Where a Subset or a sampler has a sample first in an epoch's order; None if that is not known."""
        order = self.ensure_order()
        assert isinstance(order, (SubsetOrder, SamplerOrder, BatchSamplerOrder))
        return order.find_position(epoch, index, self.find_ranks())

    def find_ranks(self) -> Ranks:
        """This rank's place among all, as it is now. Raises ValueError if a sampler that splits has another one."""
        ranks = resolve_ranks(self._config)
        check_split(self.sampler, ranks)
        return ranks

    def count_rank_samples(self) -> int:
        """Samples of a whole epoch on this rank, where no sampler decides."""
        ranks = self.find_ranks()
        steps, batch = self.count_steps(), self._config.batch_size or 1
        if self._config.steps_per_epoch is not None:
            return steps * batch
        begun = max(0, steps - 1) * batch
        last = share_step(
            begun * ranks.world, self.count_samples() - begun * ranks.world, batch, ranks, self._config.tail
        )
        return begun + (last[2] if last else 0)

    def count_steps(self) -> int:
        """Steps of an epoch. Opens nothing where the arguments tell."""
        ranks = self.find_ranks()
        if self._config.steps_per_epoch is not None:
            return self._config.steps_per_epoch
        known = self._config.source.samples
        if known is not None and not self._config.listed:
            steps = count_steps(known, self._config.batch_size or 1, ranks, self._config.tail)
        else:
            steps = self.ensure_order().count_steps(ranks)
        if not steps:
            self.check_drop(ranks)
        return steps

    def find_start(self, epoch: int, number: int) -> int:
        """The cursor at which a step of an epoch begins. Raises ValueError if it is known not to have so many."""
        ranks, order = self.find_ranks(), self.ensure_order()
        try:
            steps = self.count_steps()
        except TypeError:  # a sampler without a length
            steps = number
        if number > steps:
            raise ValueError(f"skip({number}): an epoch has {steps} steps")
        return find_start(order, epoch, number, ranks)

    def check_drop(self, ranks: Ranks) -> None:
        """An epoch without any step: raises ValueError if the tail is to blame. It would train nothing, in silence."""
        if self._config.tail == "drop":
            raise ValueError(
                f"batch_size={self._config.batch_size} on {ranks.world} rank(s) is more than an epoch has samples, and "
                'tail="drop" leaves out what is no whole step: no batch is left. Use a smaller one, or tail="short"'
            )

    def check_drawn(self, epoch: int) -> None:
        """An epoch without any step, of a sampler: raises DataError. It would train nothing, in silence."""
        if self.sampler is not None:
            raise DataError(
                f"{type(self.sampler).__name__} gave nothing in epoch {epoch}, which would be an epoch without a "
                "step. An iterator is used up by the first epoch: pass what iter() begins anew, a list or a class with "
                "__iter__. To go on behind an epoch that is to be empty, call loader.set_epoch(epoch + 1)"
            )

    def ensure_order(self) -> Order:
        """The order of samples, of which the plan tells how many there are."""
        if self.order is None:
            self.order = _make_order(self._config, self._opening.open_plan().samples, self.sampler_epoch)
        return self.order

    def save_sampler(self, epoch: int, consumed: int, ranks: Ranks | None) -> dict[str, Any] | None:
        """What a state has of the choice of samples; None where all are taken."""
        indices = self._config.source.indices
        if isinstance(self.order, (SamplerOrder, BatchSamplerOrder)) and ranks is not None:
            return self.order.save_state(epoch, consumed, ranks)
        if indices is not None and self.sampler is None:
            return {"class": "Subset", "indices": digest_indices(indices)}
        return None


def resolve_ranks(config: Config) -> Ranks:
    """This process's place among the ranks."""
    return ranks_.resolve_ranks(config.rank, config.num_replicas, config.mesh)


def _run_length(config: Config, samples: int) -> int:
    """Neighbours of a Subset that stay together, 0 without shuffle. ValueError where they are the whole Subset."""
    count = checks.run_length_of(config.shuffle)
    if 1 < samples <= count:
        raise ValueError(
            f"shuffle={config.shuffle!r} leaves the {samples:,} samples of the Subset in their order, which is one "
            "block: name smaller blocks, or True"
        )
    return count


def _make_order(config: Config, samples: int, sampler_epoch: SamplerEpoch) -> Order:
    chosen, sampler = config.source.indices, config.sampler if config.batch_sampler is None else config.batch_sampler
    if sampler is not None:
        choice = (samples, "the data set") if chosen is None else (len(chosen), "the Subset")
        warn_other_length(sampler, *choice)
    if config.batch_sampler is not None:
        return BatchSamplerOrder(sampler, config.seed, samples, sampler_epoch, config.tail, chosen)
    assert config.batch_size is not None
    if sampler is not None:
        return SamplerOrder(sampler, config.batch_size, config.tail, config.seed, samples, sampler_epoch, chosen)
    if chosen is not None:
        return SubsetOrder(chosen, config.batch_size, config.tail, _run_length(config, len(chosen)), config.seed)
    return RangeOrder(samples, config.batch_size, config.tail, config.steps_per_epoch)
