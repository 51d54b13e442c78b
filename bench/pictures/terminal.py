"""A real terminal, tmux without a screen: a program in it, keys, and what it shows as text and as a picture."""

from __future__ import annotations

import html
import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from browser import Browser

MARKS = {"1": "b", "2": "f", "7": "r"}
CELL_PX = (8.43, 18)
"""A character of the picture's font, and a line."""
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 12px 14px; background: #16181d; color: #d8dce2; width: max-content }}
pre {{ margin: 0; font: 14px/18px "DejaVu Sans Mono", monospace }}
.b {{ font-weight: 700 }} .f {{ opacity: 0.6 }} .r {{ background: #d8dce2; color: #16181d }}
.c31 {{ color: #ff7b83 }} .c32 {{ color: #5cc894 }} .c33 {{ color: #e9b14a }}
</style><pre>{}</pre>"""


class Terminal:
    """A program in a terminal of that size. Whoever makes it closes it."""

    def __init__(self, columns: int, lines: int, command: list[str], environment: dict[str, str]) -> None:
        self.columns, self.lines = columns, lines
        self._tmux = ["tmux", "-L", f"feedwater-{os.getpid()}-{columns}", "-f", "/dev/null"]
        self._environment = {**environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self._run("new-session", "-d", "-x", str(columns), "-y", str(lines), *command)

    def _run(self, *arguments: str) -> str:
        return subprocess.run(
            [*self._tmux, *arguments], check=True, env=self._environment, stdout=subprocess.PIPE, text=True
        ).stdout

    def press(self, *keys: str) -> None:
        """Presses keys, by tmux's names."""
        self._run("send-keys", *keys)

    def text(self) -> str:
        """What can be read."""
        return self._run("capture-pane", "-p")

    def missing(self, words: Iterable[str]) -> list[str]:
        """Which of the words, in whatever case, cannot be read within a minute. A line that is broken is one."""
        end = time.monotonic() + 60
        while True:
            text = " ".join(self.text().split()).lower()
            missing = [word for word in words if word.lower() not in text]
            if not missing or time.monotonic() > end:
                return missing
            time.sleep(0.1)

    def picture(self, browser: Browser, file: Path) -> None:
        """What it shows as a PNG."""
        page = file.with_suffix(".html")
        page.write_text(PAGE.format("".join(spans(self._run("capture-pane", "-p", "-e", "-N")))))
        size = (int(self.columns * CELL_PX[0]) + 29, self.lines * CELL_PX[1] + 24)
        browser.open(page.resolve().as_uri(), *size)
        browser.picture(file)
        page.unlink()

    def close(self) -> None:
        """Ends the program and the terminal."""
        self._run("kill-server")


def spans(text: str) -> Iterator[str]:
    """Text with a terminal's colours as HTML: those that `feedwater top` uses."""
    on: set[str] = set()
    pieces = re.split(r"\x1b\[([\d;]*)m", text)
    for plain, codes in zip(pieces[::2], [*pieces[1::2], ""]):
        if plain:
            yield f'<span class="{" ".join(sorted(on))}">{html.escape(plain)}</span>'
        for code in codes.split(";"):
            if code in ("", "0"):
                on = set()
            elif code in MARKS:
                on.add(MARKS[code])
            else:  # a colour, or 39 for none
                on = {one for one in on if not one.startswith("c")} | {f"c{code}"}
