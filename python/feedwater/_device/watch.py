"""Tells of programs that may use a batch on a stream that does not wait for it."""

from __future__ import annotations

import logging
from typing import Any

from .runtime import Host, Runtime, is_look_due

__all__ = ["StreamWatch"]

log = logging.getLogger("feedwater")


class StreamWatch:
    """Looks now and then for tensors that were made on other streams than those of batches, and warns once."""

    def __init__(self, warning: str) -> None:
        self._warning, self._batches, self._told = warning, 0, False

    def note_batch(self, gpu: Runtime | Host, streams: list[Any]) -> None:
        """One more batch, of which these streams are known."""
        self._batches += 1
        if not self._told and is_look_due(self._batches) and gpu.finds_others(streams):
            self._told = True
            log.warning("%s", self._warning)
