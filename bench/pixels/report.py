"""How bench/pixels/table.py shows its rows: as text, and in docs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import machine
from rows import Row

HEAD = ["", "against", "images/s", "theirs", "ratio", "other clock", "limit", ""]
SPEED = machine.ROOT / "docs" / "speed.md"


def text(rows: Iterable[Row]) -> Iterator[str]:
    """Lines for people."""
    for part, of_part in groupby(rows, lambda row: row.part):
        yield "\n" + part
        for name, against, mine, theirs, ratio, other, limit, verdict in [HEAD, *(row.cells() for row in of_part)]:
            yield f"  {name:42}{against:42}{mine:>9}{theirs:>8}{ratio:>25}{other:>13}{limit:>8}  {verdict}".rstrip()


def markdown(rows: Iterable[Row], about: str, notes: Iterable[str]) -> str:
    """What docs/speed.md shows: where it was measured, the tables, what else was found."""
    lines = ["```", about, "```", ""]
    for part, of_part in groupby(rows, lambda row: row.part):
        lines += [f"**{part}**", "", f"| {' | '.join(HEAD)} |", "|---|---|--:|--:|--:|--:|--:|---|"]
        lines += [f"| {' | '.join(row.cells())} |" for row in of_part] + [""]
    return "\n".join([*lines, *(f"- {note}" for note in notes)]) + "\n"


def document(table: str, picture: str) -> None:
    """Puts table and picture into docs/speed.md, in place of those that are there."""
    SPEED.with_suffix(".svg").write_text(picture)
    begin, end = "<!-- measured -->\n", "<!-- end -->"
    before, _, rest = SPEED.read_text().partition(begin)
    image = "![How much faster, and the limits](speed.svg)"
    SPEED.write_text(f"{before}{begin}\n{image}\n\n{table}\n{end}{rest.partition(end)[2]}")
