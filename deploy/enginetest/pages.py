"""The commands that documents show."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page, as docs/slurm.md, that are in one language, in order."""
    text = (ROOT / page).read_text()
    return [
        code
        for found, code in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if found == language
    ]


def replaced(text: str, names: dict[str, str]) -> str:
    """A text with other names in place of the page's. Each has to occur."""
    for name, other in names.items():
        assert name in text, f"the page does not say {name}:\n{text}"
        text = text.replace(name, other)
    return text
