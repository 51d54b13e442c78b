"""Tells of programs that may work on a batch of the GPU before it was copied there."""

from __future__ import annotations

import logging
from typing import Any

from .runtime import Runtime, is_look_due

__all__ = ["StreamWatch"]

log = logging.getLogger("feedwater")


class StreamWatch:
    """Looks for tensors that were made on other streams than the batches, as classes that fetch ahead make them.

    The stream that is current in next waits for the copy of a batch, and no other does.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._batches, self._told = runtime, 0, False

    def note_batch(self, stream: Any) -> None:
        """A batch was made for that stream. Says once what further ones have to wait for, if there are any."""
        self._batches += 1
        if self._told or not is_look_due(self._batches):
            return
        if self._runtime.finds_others([stream]):
            self._told = True
            log.warning(
                "the program has tensors of further streams on %s: one that works on a batch by itself, as in classes "
                "that fetch ahead, has to wait first, side.wait_stream(torch.cuda.current_stream()), or it reads the "
                "batch before it was copied; docs/device.md#classes-that-fetch-ahead",
                self._runtime.name,
            )
