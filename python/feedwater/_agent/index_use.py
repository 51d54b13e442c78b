"""What was kept of the pictures of batches; docs/image-index.md, docs/keep.md."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NO_USE", "Counts", "IndexUse"]


class IndexUse(NamedTuple):
    """Counts of pictures, in the order in which the agent tells them.

    Hits, copies, misses and kept add up to the pictures whose files were read: those of broken files, and those that
    stand in for them, too. Where no index is kept, of them kept alone is counted.
    """

    hits: int = 0
    """They were decoded with an index that is no copy."""
    copies: int = 0
    """They were decoded with a copy."""
    misses: int = 0
    """They were decoded without an index."""
    missing_copies: int = 0
    """Those of hits and misses that were decoded without a copy though files like theirs have one, for want of room."""
    missing_copy_bytes: int = 0
    """Of their files."""
    made_copies: int = 0
    """Those of hits and misses of which a copy was made on the way, which takes time once."""
    kept: int = 0
    """Their pixels were kept, so that nothing was decoded."""

    @property
    def decoded(self) -> int:
        """All pictures that had to be decoded; 0 where no index is kept, or nodes do not tell."""
        return self.hits + self.copies + self.misses

    def minus(self, other: IndexUse) -> IndexUse:
        """What came to these counts since they were others."""
        return IndexUse(*(a - b for a, b in zip(self, other)))


Counts = tuple[int, int, int, int, int, int, int]
"""The same, for each batch: named counts take calls to make."""


NO_USE = IndexUse()
