"""Pictures of the page and of `feedwater top`, from a real browser and a real terminal, each looked at by machine.

    make pictures          or    python bench/pictures/main.py FOLDER [--only dead]

Three states (healthy, starving, a node dead) are staged with real nodes, agents and wants; what the trainers tell of
their steps is scripted (stage.py, rank.py). Of each the page is taken wide and as on a phone, light and dark, that of
one rank and of one node too, and the terminal with 80 and 160 columns. The command fails if a page scrolls sideways
at 375 px, has a text of less contrast than 4.5 : 1, an error in its console, its verdict below the fold or a cell cut
off, or if a word that the state has to show is nowhere. It needs Chromium with its driver, and tmux. Debian: chromium,
chromium-driver, tmux.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from browser import Browser
from stage import STATES, WORLD, Stage
from terminal import Terminal

VIEWS = (
    ("light", 1280, 900, False, 1),
    ("dark", 1280, 900, True, 1),
    ("phone-light", 375, 812, False, 2),
    ("phone-dark", 375, 812, True, 2),
)
TERMINALS = ((80, 48), (160, 48))


def pages(stage: Stage, browser: Browser, folder: Path) -> Iterator[str]:
    """Takes the page of that state; what is wrong with it."""
    for view, width, height, dark, scale in VIEWS:
        name = f"page-{stage.state.name}-{view}"
        browser.open(stage.page, width, height, dark=dark, scale=scale)
        yield from (f"{name}: {word!r} is nowhere" for word in browser.missing(stage.state.words))
        browser.picture(folder / f"{name}.png")
        yield from (f"{name}: {fault}" for fault in browser.wrong(width, height))


def details(stage: Stage, browser: Browser, folder: Path) -> Iterator[str]:
    """Takes the page of one rank and of one node, with what was before; what is wrong with it."""
    job = stage.job()
    for what in ({"rank": WORLD - 1}, {"node": stage.nodes[-1]}):
        for view, width, height, dark, scale in VIEWS:
            name = f"page-{stage.state.name}-{next(iter(what))}-{view}"
            browser.open("about:blank", width, height)  # another fragment alone loads nothing
            browser.open(f"{stage.page}#{urlencode({**job, **what})}", width, height, dark=dark, scale=scale)
            words = ["back to the job", "last ten minutes", "GPU idle for data" if "rank" in what else "wants it holds"]
            yield from (f"{name}: {word!r} is nowhere" for word in browser.missing(words))
            browser.picture(folder / f"{name}.png")
            yield from (f"{name}: {fault}" for fault in browser.wrong(width, height))


def terminals(stage: Stage, browser: Browser, folder: Path) -> Iterator[str]:
    """Takes `feedwater top` in that state, with ranks; what is wrong with it."""
    for columns, lines in TERMINALS:
        name = f"top-{stage.state.name}-{columns}"
        terminal = Terminal(columns, lines, [stage.binary, "top", *stage.nodes], stage.environment)
        try:
            terminal.missing(["rn50-a"])  # keys are taken from then on
            terminal.press("Enter")
            words = [*stage.state.words, "wants a", "GPU HOST", "agent gpu-1"]
            yield from (f"{name}: {word!r} is nowhere" for word in terminal.missing(words))
            text = terminal.text()
            terminal.picture(browser, folder / f"{name}.png")
        finally:
            terminal.close()
        yield from (f"{name}: a line of {len(line)}" for line in text.splitlines() if len(line) > columns)


def main() -> None:
    """Makes the pictures; fails if one has something wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=[state.name for state in STATES], help="of one state alone")
    args = parser.parse_args()
    for program, package in (("chromedriver", "chromium-driver"), ("tmux", "tmux")):
        if not shutil.which(program):
            raise SystemExit(f"{program} is missing (Debian: {package})")
    args.folder.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    browser = Browser()
    try:
        for state in STATES:
            if args.only in (None, state.name):
                with tempfile.TemporaryDirectory(prefix="fw") as scratch:
                    stage = Stage(state, Path(scratch))
                    try:
                        for looks in (pages, details, terminals):
                            wrong += looks(stage, browser, args.folder)
                    finally:
                        stage.close()
                print(f"{state.name}: done", flush=True)
    finally:
        browser.close()
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
