"""The text of a table, in a file without a name that the agent is given. A Loader that is pickled takes it along."""

from __future__ import annotations

import hashlib
import os
import weakref
import zlib

from . import memory

__all__ = ["TableText"]


class TableText:
    """A text that never changes, and its SHA-256."""

    def __init__(self, text: bytes) -> None:
        self.sha256 = hashlib.sha256(text).hexdigest()
        """In hex: the table's name."""
        self.size = len(text)
        """In bytes."""
        self._file = memory.create_scratch_file("table")
        weakref.finalize(self, os.close, self._file)
        rest = memoryview(text)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def fileno(self) -> int:
        """The handle of the file, which is this object's."""
        return self._file

    def read(self) -> bytes:
        """The text."""
        parts, at = [], 0
        while at < self.size:
            parts.append(os.pread(self._file, self.size - at, at))
            at += len(parts[-1])
        return b"".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore_text, (zlib.compress(self.read(), 1),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableText) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)


def _restore_text(packed: bytes) -> TableText:
    return TableText(zlib.decompress(packed))
