"""Whether there is a slot for the next batch, or live tensors hold too many."""

from __future__ import annotations

import gc
import logging
import time

from .._agent.feed import Feed
from .._agent.session import IN_USE
from .._agent.slots import Slots

__all__ = ["SlotRoom"]

log = logging.getLogger("feedwater")

COLLECT_EVERY_S, COLLECT_IN_VAIN_S = 2.0, 60.0


class SlotRoom:
    """Of one Loader's slots."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._warned = False
        self._collect_after = 0.0

    def is_full(self, slots: Slots) -> bool:
        """Whether live batches hold so many slots that this one must go to ordinary memory; never a deadlock."""
        if slots.count_unleased() >= slots.count - IN_USE:  # needed is never more
            return False
        needed = self._feed.count_needed_slots(slots)
        if slots.count_unleased() >= needed:
            return False
        now = time.monotonic()
        if now > self._collect_after and gc.isenabled():
            # Batches in reference cycles: the collector sees no 38 MB in them and would not run by itself.
            gc.collect()
            helped = slots.count_unleased() >= needed
            self._collect_after = time.monotonic() + (COLLECT_EVERY_S if helped else COLLECT_IN_VAIN_S)
            if helped:
                return False
        if not self._warned:
            self._warned = True
            log.warning(
                "the program holds %d batches; further ones are copied to ordinary memory, which costs time. "
                "Keep fewer batches, or give more room with memory=",
                slots.count - slots.count_unleased(),
            )
        return True
