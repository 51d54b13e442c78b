"""The steps of an epoch: which positions of its order each rank takes. Arithmetic only.

The twin of the Go package pipeline/order. Cursor c counts the positions of the epoch that all ranks together have
consumed. With N samples, W ranks, batches of B and G = W B, a step takes n = min(G, N - c) positions; rank k takes m of
them from c + k m on, where m is ceil(n / W), or B if the shape must not change. So every rank has the same number of
steps of the same size, and another world or batch size continues the same order with nothing lost or repeated.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from .._common.ranks import Ranks
from .._ctaugment.policy import Weights

__all__ = ["Indices", "Order", "RangeOrder", "Step", "Tail", "digest_indices", "find_start", "from_end", "share_step"]

Tail = Literal["short", "valid", "drop"]
Indices = npt.NDArray[np.int64]


def from_end(indices: Indices, count: int) -> Indices:
    """The same with negative ones counted from the end of count things, as Python does; out of range they stay."""
    return np.where((indices < 0) & (indices >= -count), indices + count, indices)


def digest_indices(indices: Indices) -> str:
    """What tells one choice of samples from another, in states."""
    import hashlib

    return hashlib.sha256(indices.tobytes()).hexdigest()[:16]


class Step:
    """One step of the training loop, as this rank sees it."""

    __slots__ = ("after", "end", "epoch", "indices", "key", "place", "policy", "position", "rows", "size", "start")

    def __init__(
        self, epoch: int, start: int, take: int, position: int, size: int, rows: int, indices: Indices | None = None
    ) -> None:
        self.epoch = epoch
        self.start = start
        """Samples of the epoch before it, over all ranks: the cursor at which it begins."""
        self.end = end = start + take
        """The cursor after it; between the two lie the samples that all ranks take."""
        self.position = position
        """This rank's first position in the epoch's order."""
        self.size = size
        """Samples this rank wants; 0 when the epoch's last step leaves nothing for it (tail="valid")."""
        self.rows = rows
        """Rows of this rank's batch: more than size only with tail="valid"."""
        self.indices = indices
        """The samples, if they are not a range of the epoch's own order."""
        self.place = start
        """The same on all ranks, and larger for later steps of the epoch."""
        self.policy: Weights | None = None
        """What CTAugment draws by."""
        self.key = epoch, start
        """What names the step within this rank's run."""
        self.after = epoch, end
        """The place after it."""

    @property
    def number(self) -> int:
        """The same on all ranks, and larger for later steps of the run; 64 bits."""
        return self.epoch << 32 | min(self.place, (1 << 32) - 1)


class Order(Protocol):
    """The steps of every epoch, by their place."""

    known_ahead: bool
    """Whether a later epoch's steps may be asked for while this one runs."""

    @property
    def largest(self) -> int | None:
        """Most samples one step can want on one rank; None if only the steps tell."""

    def step_at(self, epoch: int, start: int, ranks: Ranks) -> Step | None:
        """The step that begins at cursor start; None at the epoch's end."""

    def count_steps(self, ranks: Ranks) -> int:
        """Steps of a whole epoch."""

    def count_samples(self, ranks: Ranks) -> int:
        """Samples of a whole epoch, of all ranks, as far as that is known before it is drawn; else 0."""


def share_step(start: int, left: int, batch: int, ranks: Ranks, tail: Tail) -> tuple[int, int, int, int] | None:
    """Of the step at cursor start with left samples to go: take, position, size, rows. None if there is no step.

    With "short" the last step is smaller, equal on all ranks, and repeats at most world - 1 samples; with "valid" the
    last ranks' last rows hold no sample; with "drop" it is left out.
    """
    whole = batch * ranks.world
    take = min(whole, left)
    if take <= 0 or (tail == "drop" and take < whole):
        return None
    if tail == "valid":
        position = start + ranks.rank * batch
        return take, position, max(0, min(batch, start + take - position)), batch
    each = ranks.share_evenly(take)
    return take, start + ranks.rank * each, each, each


def count_steps(samples: int, batch: int, ranks: Ranks, tail: Tail) -> int:
    """Steps of an epoch of that many samples."""
    whole = batch * ranks.world
    return samples // whole if tail == "drop" else -(-samples // whole)


def find_start(order: Order, epoch: int, number: int, ranks: Ranks) -> int:
    """The cursor at which a step of an epoch begins; its end, or beyond that, if it has so many steps or fewer."""
    if order.largest is not None:
        return number * order.largest * ranks.world
    start = 0
    for _ in range(number):
        step = order.step_at(epoch, start, ranks)
        if step is None:
            break
        start = step.end
    return start


class RangeOrder:
    """The epoch's own order: a want is a range of positions. Position p is sample order(p mod N), repeat p div N."""

    known_ahead = True

    def __init__(self, samples: int, batch: int, tail: Tail, steps_per_epoch: int | None) -> None:
        self.samples, self.batch, self.tail = samples, batch, tail
        self.fixed = steps_per_epoch
        self.largest = batch

    def step_at(self, epoch: int, start: int, ranks: Ranks) -> Step | None:
        if self.fixed is None:
            part = share_step(start, self.samples - start, self.batch, ranks, self.tail)
            return None if part is None else Step(epoch, start, *part)
        whole = self.batch * ranks.world
        if start >= self.fixed * whole:
            return None
        return Step(epoch, start, whole, start + ranks.rank * self.batch, self.batch, self.batch)

    def batch_size_at(self, position: int, ranks: Ranks) -> int:
        """Samples of a rank's batch that begins at a position; 0 if none is known to.

        Steps may begin anywhere, for a run may have been resumed there. Where the last one can be of several sizes, it
        is the one behind whole steps from the epoch's beginning.
        """
        usual = self.samples - self.samples % (self.batch * ranks.world)
        starts = {position - ranks.rank * each for each in range(1, self.batch + 1)}
        sizes = {self._size_if_at(start, position, ranks) for start in starts} - {0}
        return sizes.pop() if len(sizes) == 1 else self._size_if_at(usual, position, ranks)

    def _size_if_at(self, start: int, position: int, ranks: Ranks) -> int:
        """Of the batch of the step at cursor start, if it begins at the position."""
        step = self.step_at(0, start, ranks) if start >= 0 else None
        return step.size if step is not None and step.position == position else 0

    def count_steps(self, ranks: Ranks) -> int:
        if self.fixed is not None:
            return self.fixed
        return count_steps(self.samples, self.batch, ranks, self.tail)

    def count_samples(self, ranks: Ranks) -> int:
        return self.samples if self.fixed is None else self.fixed * self.batch * ranks.world
