"""What became of an epoch's samples, by their ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Samples:
    """How many of an epoch's samples never came, and how often samples came again."""

    lost: int
    repeated: int


def of_epoch(samples: int, *parts: Iterable[int]) -> Samples:
    """Counts over the parts in which an epoch of samples 0 to samples - 1 was read.

    Ids that are none of the epoch are an error of the measurement: ValueError.
    """
    times = Counter(one for part in parts for one in part)
    if wrong := [one for one in times if not 0 <= one < samples]:
        raise ValueError(f"ids that no sample has: {wrong[:5]}")
    return Samples(samples - len(times), sum(times.values()) - len(times))
