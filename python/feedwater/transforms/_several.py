"""Several pictures of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UnsupportedTransformError
from ._checks import is_list

__all__ = ["Views"]

MOST_VIEWS = 16


@dataclass(frozen=True)
class Views:
    """Each of the transforms applied to the same picture, as SimCLR, BYOL, SwAV and DINO do.

    Views([large] * 2 + [small] * 6)

    image is a list then, with a batch for each. Each view draws by itself, also where the same transform comes twice.
    A picture is read and decoded once. It is the whole transform: what stands before or behind belongs into each view.
    """

    transforms: Sequence[Any]

    def __post_init__(self) -> None:
        if not is_list(self.transforms):
            raise UnsupportedTransformError(f"Views({self.transforms!r:.80}): needs a list of transforms")
        if not self.transforms:
            raise UnsupportedTransformError("Views([]): needs at least one transform")
        if len(self.transforms) > MOST_VIEWS:
            raise UnsupportedTransformError(
                f"Views of {len(self.transforms)} transforms: at most {MOST_VIEWS} are there"
            )
