"""An extension of griffe: parameters that docstrings list in columns become a list of the page."""

from __future__ import annotations

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^(\w[\w.]*(?:, \w+)*)(?: {2,}(\S.*))?$")
"""Names in the first column, and what is said of them in the second, or in the lines below."""


class ListParameters(griffe.Extension):
    """Rewrites the docstrings of all that is documented."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Does so for an object that was loaded."""
        if obj.docstring is not None:
            obj.docstring.value = list_parameters(obj.docstring.value)


def list_parameters(text: str) -> str:
    """The text with lists in place of columns, whose lines begin 4 characters from the left or more."""
    return "\n\n".join(_list_block(block) for block in text.split("\n\n"))


def _list_block(block: str) -> str:
    lines = block.splitlines()
    entries: list[tuple[str, list[str]]] = []
    for number, line in enumerate(lines):
        match = ENTRY.match(line)
        follows = lines[number + 1] if number + 1 < len(lines) else ""
        if match and (match[2] or follows.startswith("    ")):
            entries.append((match[1], [match[2]] if match[2] else []))
        elif entries and line.startswith("    "):
            entries[-1][1].append(line.strip())
        else:
            return block
    names = (", ".join(f"`{name}`" for name in names.split(", ")) for names, _ in entries)
    return "\n".join(f"- {name}: {' '.join(said)}" for name, (_, said) in zip(names, entries, strict=True))
