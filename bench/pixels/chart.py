"""The picture of bench/pixels/table.py: the ratios that have limits, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from rows import Row

LEFT, WIDTH, HEIGHT = 420, 330, 22
STYLE = """text{fill:#333}.grid{stroke:#ddd}.hold{fill:#1769aa}.miss{fill:#f5b041}
.range{stroke:#333}.limit{stroke:#c0392b;stroke-width:2}
@media(prefers-color-scheme:dark){text{fill:#ccc}.grid{stroke:#444}.hold{fill:#64b5f6}
.range{stroke:#eee}.limit{stroke:#ef9a9a}}"""


def svg(rows: Sequence[Row]) -> str:
    """Bars with the range of the rounds, and the limits as red lines."""
    shown = [row for row in rows if row.limit is not None]
    top = max([2.0, *(max(*row.ratios, row.limit or 0) for row in shown)])
    height = HEIGHT * len(shown) + 44
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 50} {height}" '
        'font-family="sans-serif" font-size="11">',
        f"<style>{STYLE}</style>",
    ]
    for ratio in range(int(top) + 1):
        x = LEFT + ratio / top * WIDTH
        lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{height - 36}"/>')
        lines.append(f'<text x="{x:.1f}" y="{height - 22}" text-anchor="middle">{ratio}×</text>')
    for number, row in enumerate(shown):
        lines += _bar(row, 6 + HEIGHT * number, WIDTH / top)
    words = "how much faster, medians: blue holds, yellow misses; line: range of the rounds; red: limit"
    lines.append(f'<text x="{LEFT + WIDTH + 44}" y="{height - 6}" text-anchor="end">{words}</text></svg>')
    return "\n".join(lines) + "\n"


def _bar(row: Row, y: float, scale: float) -> list[str]:
    """One row, its bar so many pixels per unit long."""
    low, high, limit = (LEFT + x * scale for x in (min(row.ratios), max(row.ratios), row.limit or 0))
    middle = y + HEIGHT / 2 - 2
    return [
        f'<text x="{LEFT - 6}" y="{middle + 4:.1f}" text-anchor="end">{escape(f"{row.name} / {row.against}")}</text>',
        f'<rect class="{row.verdict}" x="{LEFT}" y="{y}" width="{row.value * scale:.1f}" height="{HEIGHT - 6}"/>',
        f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>',
        f'<line class="limit" x1="{limit:.1f}" x2="{limit:.1f}" y1="{y - 1}" y2="{y + HEIGHT - 5}"/>',
        f'<text x="{LEFT + WIDTH + 8}" y="{middle + 4:.1f}">{row.value:.2f}×</text>',
    ]
