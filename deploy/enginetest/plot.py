"""Figures over time as an SVG: panels below one another, each with its lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

LEFT, WIDTH, PANEL, GAP = 60, 720, 130, 34
STYLE = """text{fill:#333}.grid{stroke:#ddd}path{fill:none;stroke-width:1.5}
.c0{stroke:#1769aa}.c1{stroke:#c0392b;stroke-dasharray:4 2}.c2{stroke:#2e7d32}text.c0,text.c1,text.c2{stroke:none}
text.c0{fill:#1769aa}text.c1{fill:#c0392b}text.c2{fill:#2e7d32}
@media(prefers-color-scheme:dark){text{fill:#ccc}.grid{stroke:#444}}"""

Points = Sequence[tuple[float, float]]
"""Seconds and values, in order."""


@dataclass
class Panel:
    """What is drawn above one axis of time."""

    title: str
    lines: dict[str, Points]
    """By name; each value holds until the next one."""


def draw(to: Path, panels: Sequence[Panel]) -> None:
    """Writes panels of one axis of time."""
    end = max(1.0, *(points[-1][0] for panel in panels for points in panel.lines.values() if points))
    height = len(panels) * (PANEL + GAP) + 20
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}" '
        'font-family="sans-serif" font-size="11">',
        f"<style>{STYLE}</style>",
    ]
    for number, panel in enumerate(panels):
        text += _panel(panel, number * (PANEL + GAP) + 20, end)
    for mark in range(6):
        x = LEFT + WIDTH * mark / 5
        text.append(f'<text x="{x:.1f}" y="{height - 4}" text-anchor="middle">{end * mark / 5:.0f} s</text>')
    to.write_text("\n".join([*text, "</svg>"]) + "\n")


def _panel(panel: Panel, top: float, end: float) -> list[str]:
    most = max([1.0, *(value for points in panel.lines.values() for _, value in points)])
    bottom = top + PANEL
    text = [f'<text x="{LEFT}" y="{top - 6}">{escape(panel.title)}</text>']
    for mark in range(3):
        y = bottom - PANEL * mark / 2
        text.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        text.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{most * mark / 2:.3g}</text>')
    for number, (name, points) in enumerate(panel.lines.items()):
        x = LEFT + WIDTH - 130 * (len(panel.lines) - 1 - number)
        text.append(f'<text class="c{number}" x="{x}" y="{top - 6}" text-anchor="end">{escape(name)}</text>')
        if points:
            text.append(f'<path class="c{number}" d="{_steps(points, bottom, end, most)}"/>')
    return text


def _steps(points: Points, bottom: float, end: float, most: float) -> str:
    """A line that goes up and down where the values do, without what changes nothing."""
    path, before = [], None
    for at, value in points:
        if value == before and at != points[-1][0]:
            continue
        x, y = LEFT + WIDTH * at / end, bottom - PANEL * value / most
        path.append(f"M{x:.1f} {y:.1f}" if before is None else f"H{x:.1f}V{y:.1f}")
        before = value
    return "".join(path)
