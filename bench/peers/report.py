"""Table, picture and comparison of result files."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

Row = dict[str, Any]
MARKS = "<!-- measured -->", "<!-- end -->"
LEFT, WIDTH, HEIGHT = 250, 420, 22
STYLE = """text{fill:#333}.ours{fill:#1769aa}.peer{fill:#90a4ae}.range{stroke:#333}
@media(prefers-color-scheme:dark){text{fill:#ccc}.ours{fill:#64b5f6}.peer{fill:#607d8b}.range{stroke:#eee}}"""
HEAD = (
    "| | images/s | CPU-s per 1,000 | wait p50 ms | p99 ms | first batch s | resumed at half: first batch s "
    "| after kill -9 | converted |\n|---|--:|--:|--:|--:|--:|---|---|---|"
)


def values(row: Row, name: str) -> list[float]:
    """One measure over the rounds."""
    return [one[name] for one in row["rounds"]]


def middle(row: Row, name: str) -> float:
    """Its median."""
    return statistics.median(values(row, name))


def spread(row: Row, name: str, digits: int = 0) -> str:
    """Median, and the range of several rounds."""
    found = values(row, name)
    middle = f"{statistics.median(found):.{digits}f}"
    return middle if len(found) == 1 else f"{middle} ({min(found):.{digits}f} … {max(found):.{digits}f})"


def resumed(found: Row) -> str:
    """What came of resuming."""
    if not found:
        return "not tried"
    if "no" in found:
        return f"no: {found['no']}"
    if "error" in found:
        return f"fails: {found['error']}"
    exact = "exact" if not found["lost"] and not found["repeated"] else _counts(found)
    return f"{found['first']:.1f}, {exact}"


def killed(found: Row) -> str:
    """What came of a kill."""
    if not found:
        return "not tried"
    if "no" in found or "error" in found:
        return str(found.get("no") or found["error"])
    if "stops" in found:
        return f"stops: {found['stops']}"
    exact = "nothing lost or repeated" if not found["lost"] and not found["repeated"] else _counts(found)
    return f"goes on, {exact}; longest wait {found['longest']:.1f} s"


def _counts(found: Row) -> str:
    return f"{found['lost']} lost, {found['repeated']} repeated"


def converted(found: Row) -> str:
    """What conversion takes."""
    return f"{found['bytes'] / 1e6:.0f} MB, {found['seconds']:.0f} s" if found else "none"


def _cells(text: str) -> str:
    """Text that a cell of Markdown holds."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def table(rows: list[Row]) -> str:
    """The Markdown table, fastest first, and below it whoever could not be measured."""
    lines = [HEAD]
    measured = [row for row in rows if row.get("rounds")]
    for row in sorted(measured, key=lambda row: -middle(row, "rate")):
        waits = [f"{middle(row, name) * 1000:.1f}" for name in ("wait_p50", "wait_p99")]
        name = row["name"] + (f", {row['workers']} workers" if row["workers"] else "")
        cells = [name, spread(row, "rate"), f"{middle(row, 'cpu'):.2f}", *waits, f"{middle(row, 'first'):.2f}"]
        cells += [
            _cells(resumed(row.get("resume", {}))),
            _cells(killed(row.get("kill", {}))),
            converted(row["conversion"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    for row in rows:
        if not row.get("rounds"):
            lines.append(f"| {row['name']} | not measured: {_cells(row['absent'])} | | | | | | | |")
    return "\n".join(lines)


MEASURES: tuple[tuple[str, str, bool], ...] = (
    ("rate", "images/s", True),
    ("cpu", "CPU-s per 1,000", False),
    ("wait_p50", "median wait", False),
    ("wait_p99", "99th percentile of waits", False),
    ("first", "first batch", False),
)


def losses(rows: list[Row]) -> list[str]:
    """Where a peer's median is better than that of Feedwater on this machine."""
    measured = {row["name"]: row for row in rows if row.get("rounds")}
    ours = measured.get("Feedwater, local")
    found = []
    for name, words, more in MEASURES if ours else ():
        assert ours is not None
        for peer, row in measured.items():
            mine, theirs = middle(ours, name), middle(row, name)
            if not peer.startswith("Feedwater") and (theirs > mine if more else theirs < mine):
                found.append(f"{words}: {peer} is better, {theirs:.3g} against {mine:.3g}")
    return found


def picture(rows: list[Row]) -> str:
    """Images per second as bars with the range of the rounds, as SVG."""
    shown = sorted((row for row in rows if row.get("rounds")), key=lambda row: -middle(row, "rate"))
    scale = WIDTH / max([1.0, *(max(values(row, "rate")) for row in shown)])
    height = HEIGHT * len(shown) + 28
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 60} {height}" '
        'font-family="sans-serif" font-size="11">',
        f"<style>{STYLE}</style>",
    ]
    for number, row in enumerate(shown):
        lines += _bar(row, 6 + number * HEIGHT, scale)
    words = "images/s, median; line: range of the rounds"
    lines.append(f'<text x="{LEFT + WIDTH + 54}" y="{height - 6}" text-anchor="end">{words}</text></svg>')
    return "\n".join(lines) + "\n"


def _bar(row: Row, y: float, scale: float) -> list[str]:
    rates, centre = values(row, "rate"), y + HEIGHT / 2 - 2
    low, high, value = min(rates) * scale, max(rates) * scale, middle(row, "rate")
    kind = "ours" if row["name"].startswith("Feedwater") else "peer"
    return [
        f'<text x="{LEFT - 6}" y="{centre + 4:.1f}" text-anchor="end">{escape(row["name"])}</text>',
        f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{value * scale:.1f}" height="{HEIGHT - 6}"/>',
        f'<line class="range" x1="{LEFT + low:.1f}" x2="{LEFT + high:.1f}" y1="{centre}" y2="{centre}"/>',
        f'<text x="{LEFT + high + 6:.1f}" y="{centre + 4:.1f}">{value:.0f}</text>',
    ]


def page(results: Row) -> str:
    """What is said of a run: machine, load, table, and where Feedwater loses."""
    about = f"load average before: {results['load']:.2f}; {results['others']}; rounds: {results['rounds']}"
    if (later := results.get("load of the rest")) is not None:
        about += f"\nresuming and kills in a run of their own; load average before: {later:.2f}"
    lines = [f"```\n{results['machine']}\n{about}\n```\n", table(results["rows"])]
    if found := losses(results["rows"]):
        lines.append(
            "\nWhere Feedwater on this machine is not the best:\n\n" + "\n".join(f"- {line}" for line in found)
        )
    return "\n".join(lines) + "\n"


def document(results: Row, markdown: Path) -> None:
    """Puts table and picture between the two marks of a page."""
    text = markdown.read_text()
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    measured = f"\n![Images a second](peers.svg)\n\n{page(results)}"
    markdown.write_text(f"{before}{MARKS[0]}\n{measured}\n{MARKS[1]}{after}")
    markdown.with_suffix(".svg").write_text(picture(results["rows"]))


def compare(old: Row, new: Row) -> str:
    """New against old, per contestant; and whether the ranges of their rounds do not overlap."""
    lines = []
    if old["machine"] != new["machine"]:
        lines.append("Machines or versions differ: read no ratio as a change of code.\n")
    lines.append("| | images/s, new by old | CPU-s, new by old | |\n|---|--:|--:|---|")
    before = {row["name"]: row for row in old["rows"] if row.get("rounds")}
    for row in new["rows"]:
        if row.get("rounds") and (other := before.pop(row["name"], None)) is not None:
            rate, cpu = (middle(row, name) / middle(other, name) for name in ("rate", "cpu"))
            verdict = "ranges apart" if _apart(row, other) else "ranges overlap"
            lines.append(f"| {row['name']} | {rate:.2f} | {cpu:.2f} | {verdict} |")
        elif row.get("rounds"):
            lines.append(f"| {row['name']} | | | only in the new file |")
    lines += [f"| {name} | | | only in the old file |" for name in before]
    return "\n".join(lines)


def _apart(row: Row, other: Row) -> bool:
    mine, theirs = values(row, "rate"), values(other, "rate")
    return min(mine) > max(theirs) or max(mine) < min(theirs)
