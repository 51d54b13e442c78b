"""File names as text: os.fsdecode's in this process, UTF-8 with lone surrogates for stray bytes in the agent's JSON."""

from __future__ import annotations

import os
import sys

__all__ = ["escape_name", "from_json", "to_json"]

_SAME = sys.getfilesystemencoding() == "utf-8" and sys.getfilesystemencodeerrors() == "surrogateescape"
"""Whether both are one, as everywhere but in locales of another encoding."""


def from_json(name: str) -> str:
    """The name as os.listdir gives it."""
    return name if _SAME else os.fsdecode(name.encode("utf-8", "surrogateescape"))


def to_json(name: str) -> str:
    """The name as the agent reads it. Raises ValueError for text that no file is called."""
    try:
        return os.fsencode(name).decode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(f"{name!r}: no file has such a name: {error}") from None


def escape_name(text: str) -> str:
    r"""Text that may hold names, for people: a stray byte, which no terminal or log takes, as \udc80 to \udcff."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
