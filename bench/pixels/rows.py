"""The rows of bench/pixels/table.py: who is compared with whom, and what must be reached."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import unit
import whole
from figure import Figure
from unit import FIRST, INDEX, NO_INDEX, PIL, TENSOR, C, Run, Runs, behind, ours


@dataclass(frozen=True)
class Row:
    """How much faster one contestant is than another."""

    part: str
    name: str
    against: str
    ratios: list[float]
    """Of the clock that counts, by round."""
    other: float
    """By the other clock, median."""
    rates: tuple[float, float]
    """Images per second of both, CPU seconds on one core, medians."""
    limit: float | None = None

    @property
    def value(self) -> float:
        """The ratio."""
        return statistics.median(self.ratios)

    @property
    def verdict(self) -> str:
        """Whether the limit is kept."""
        if self.limit is None:
            return ""
        return "hold" if Figure(self.name, self.value, self.limit, "×", True).ok else "miss"

    def cells(self) -> list[str]:
        """The row as it is printed."""
        spread = f"{self.value:.2f}× ({min(self.ratios):.2f} … {max(self.ratios):.2f})"
        limit = f"≥ {self.limit:g}" if self.limit else ""
        return [
            self.name,
            self.against,
            *(f"{rate:.0f}" for rate in self.rates),
            spread,
            f"{self.other:.2f}×",
            limit,
            self.verdict,
        ]


Pair = tuple[str, str, float | None]
"""Two contestants and what the first must be faster by."""


def rows(part: str, clock: str, runs: Runs, pairs: Iterable[Pair]) -> Iterator[Row]:
    """A row for each pair that ran. The clock that counts is "cpu" or "rate"."""
    rates = {"cpu": by_cpu, "rate": by_wall}
    counts, other = rates.pop(clock), *rates.values()
    for name, against, limit in pairs:
        if runs.get(name) and runs.get(against):
            both = list(zip(runs[name], runs[against]))
            yield Row(
                part,
                name,
                against,
                ratios=[counts(mine) / counts(theirs) for mine, theirs in both],
                other=statistics.median(other(mine) / other(theirs) for mine, theirs in both),
                rates=(statistics.median(map(counts, runs[name])), statistics.median(map(counts, runs[against]))),
                limit=limit,
            )


def by_cpu(run: Run) -> float:
    """Images per CPU second."""
    return 1000 / run["cpu"]


def by_wall(run: Run) -> float:
    """Images per second."""
    return run["rate"]


def crop_pairs(levels: list[str], limits: bool) -> Iterator[Pair]:
    """Who is compared where all make crops on one core."""
    both = (NO_INDEX, INDEX)
    for against, least in ((PIL, (2.5, 3.2)), (TENSOR, (2.0, 2.6)), (C, (1.25, 1.55))):
        for index, limit in zip(both, least):
            yield ours(levels[0], index), against, limit if limits else None
    for level in levels[1:]:
        for index in both:
            yield ours(level, index), PIL, None
    for index in (INDEX, FIRST):
        yield ours(levels[0], index), ours(levels[0]), None


def encoding_pairs(levels: list[str]) -> Iterator[Pair]:
    """Who is compared where files have another encoding."""
    for index in (NO_INDEX, INDEX):
        yield ours(levels[0], index), PIL, None


ENCODED: dict[str, tuple[float, float, float | None]] = {
    "PNG": (4, 4.5, 8),
    "PNG 1920×1080": (3.7, 4, None),
    "WebP, quality 85": (1.8, 2, 8),
    "WebP, lossless": (2.5, 2.5, None),
    "progressive JPEG, quality 90": (4, 6, None),
}
"""How much faster than DataLoader the whole path must be: without an index, with one, with kept pixels."""


TRANSFORMED: dict[str, tuple[float, float]] = {
    "crop": (5.5, 7.5),
    "eval": (6.5, 8.5),
    "RandAugment": (5.7, 7.7),
    "affine": (6, 8),
    "SimCLR": (8, 10),
    "12 megapixels": (6.9, 9),
    "JPEG 64×64": (6.2, 6.2),
    "PNG 32×32": (11, 11),
}
"""The same of files through other transforms, or of other sizes: without an index, and with one."""


def dataloader_pairs(limits: Iterable[float | None]) -> Iterator[Pair]:
    """Who is compared with DataLoader on all cores: without an index, with one, with kept pixels: as many as limits."""
    names = (whole.LOCAL[NO_INDEX], whole.LOCAL[INDEX], whole.LOCAL_KEPT)
    for name, limit in zip(names, limits):
        yield name, whole.BEST, limit


def effect_pairs(levels: list[str]) -> Iterator[Pair]:
    """Who is compared where effects follow."""
    for effect in unit.EFFECTS:
        for index in (NO_INDEX, INDEX):
            yield behind(ours(levels[0], index), effect), behind(PIL, effect), 3.0


def whole_pairs(limits: bool) -> Iterator[Pair]:
    """Who is compared on all cores."""
    for against, least in ((whole.BEST, (3.4, 4.2)), (whole.TFDATA, (1.4, 1.7))):
        for index, limit in zip((NO_INDEX, INDEX), least):
            yield whole.LOCAL[index], against, limit if limits else None
    yield whole.LOCAL[NO_INDEX], whole.ALONE[NO_INDEX], None
    yield whole.LOCAL[INDEX], whole.ALONE[INDEX], 0.93 if limits else None
