"""One want and its answer."""

from __future__ import annotations

import struct
from typing import Any

from .._order.steps import Step
from .index_use import Counts
from .slots import Slots

__all__ = ["Done", "Failed", "Want"]

LISTED = 1
REPEATS = 1 << 32
_PACKET = struct.Struct("<cQQIIIIQQQ")


class Want:
    """A batch that was asked for."""

    __slots__ = ("answer", "ident", "sent", "slot", "slots", "step")

    def __init__(self, ident: int, step: Step, slots: Slots, slot: int) -> None:
        self.ident, self.step, self.slots, self.slot = ident, step, slots, slot
        self.sent: list[int] = []
        """Not empty when it is on its way; see Link.send."""
        self.answer: Done | Failed | None = None

    def encode_packet(self, ahead: int, world: int) -> bytes:
        """As the agent takes it; the loop takes ahead batches before this one, on that many ranks together."""
        step = self.step
        listed = step.indices is not None
        position = step.position % REPEATS if listed else step.position
        return _PACKET.pack(
            b"W",
            self.ident,
            position,
            step.epoch,
            step.size,
            self.slot,
            LISTED * listed,
            ahead,
            step.policy.step + 1 if step.policy is not None else 0,
            step.number if world > 1 else 0,
        )


class Done:
    """The answer to a want: the batch is in its slot."""

    __slots__ = ("errors", "index", "ragged", "slot", "slots", "step")

    def __init__(self, want: Want, details: dict[str, Any] | None, index: Counts) -> None:
        self.step, self.slots, self.slot, self.index = want.step, want.slots, want.slot, index
        self.errors: list[dict[str, Any]] = []
        self.ragged: dict[str, Any] = {}
        if details is not None:
            self.errors = details.get("errors") or []
            self.ragged = details.get("ragged") or {}

    @property
    def substitutes(self) -> dict[int, int]:
        """The sample that took the place of a broken one, by row."""
        return {e["offset"]: e["substitute"] for e in self.errors if e.get("substitute") is not None}

    @property
    def holes(self) -> list[int]:
        """The rows whose sample is broken and has no substitute."""
        return [e["offset"] for e in self.errors if e.get("substitute") is None]


class Failed:
    """The answer to a want: an error object, or None if it was cancelled; and in which take of the feed it came."""

    __slots__ = ("error", "take")

    def __init__(self, error: dict[str, Any] | None, take: int) -> None:
        self.error, self.take = error, take
