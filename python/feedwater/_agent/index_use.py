"""What indexes the pictures of batches had; docs/image-index.md."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NO_USE", "Counts", "IndexUse"]


class IndexUse(NamedTuple):
    """Counts of pictures that had to be decoded, in the order in which the agent tells them."""

    hits: int = 0
    """They had an index that is no copy."""
    copies: int = 0
    """They had a copy."""
    misses: int = 0
    """They had no index."""
    missing_copies: int = 0
    """Those of hits and misses that were decoded without a copy though files like theirs have one, for want of room."""
    missing_copy_bytes: int = 0
    """Of their files."""
    made_copies: int = 0
    """Those of hits and misses of which a copy was made on the way, which takes time once."""

    @property
    def decoded(self) -> int:
        """All of these pictures; 0 where no index is kept, or nodes do not tell."""
        return self.hits + self.copies + self.misses

    def minus(self, other: IndexUse) -> IndexUse:
        """What came to these counts since they were others."""
        return IndexUse(*(a - b for a, b in zip(self, other)))


Counts = tuple[int, int, int, int, int, int]
"""The same, for each batch: named counts take calls to make."""


NO_USE = IndexUse()
