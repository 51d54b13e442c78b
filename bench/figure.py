"""Figures with their limits. Run with the file that the measurements wrote theirs to, it prints them all in one table.

python bench/figure.py FILE
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One number that was measured, and what it must reach."""

    name: str
    value: float
    limit: float
    unit: str = ""
    least: bool = False
    """The limit is a lower one."""

    @property
    def ok(self) -> bool:
        """Whether the limit is kept."""
        return self.value >= self.limit if self.least else self.value <= self.limit


def table(figures: Iterable[Figure]) -> str:
    """One line per figure."""
    lines = [f"{'':62}{'measured':>10}{'limit':>12}"]
    for figure in figures:
        limit = f"{'≥' if figure.least else '≤'} {figure.limit:g}"
        verdict = "ok" if figure.ok else "MISSED"
        lines.append(f"{figure.name:62}{figure.value:10.3g}{limit:>12}  {figure.unit:8}{verdict}")
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):8.4f} ({min(values):.4f} … {max(values):.4f})"


def report(figures: list[Figure], file: str | None) -> None:
    """Prints the figures, and adds them to a file of JSON lines."""
    print("\n" + table(figures), flush=True)
    if file:
        with Path(file).open("a") as out:
            out.writelines(json.dumps(asdict(figure)) + "\n" for figure in figures)


if __name__ == "__main__":
    print(table(Figure(**json.loads(line)) for line in Path(sys.argv[1]).read_text().splitlines()))
