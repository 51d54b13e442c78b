"""Runs things."""

from typing import TYPE_CHECKING

from . import _a

if TYPE_CHECKING:
    from . import _c

__all__ = ["one", "two"]
