"""How long this process has waited, as far as it ran: what timeouts go by."""

from __future__ import annotations

from time import monotonic

__all__ = ["Waited"]


class Waited:
    """A wait in turns, each of turn_s at most.

    A turn that took much longer was none of waiting: this process was stopped, by a signal, a freezer, a debugger or a
    machine that slept, and nothing could have come. Only turn_s and slack_s of it count, for a turn may be late on a
    busy machine.
    """

    def __init__(self, turn_s: float, slack_s: float = 1.0) -> None:
        self.began = self._last = monotonic()
        self._most_s = turn_s + slack_s
        self.seconds = 0.0
        """Counted so far."""
        self.stopped_s = 0.0
        """Left out."""

    def end_turn(self) -> float:
        """A turn is over. The seconds so far."""
        now = monotonic()
        passed, self._last = now - self._last, now
        counted = min(passed, self._most_s)
        self.seconds += counted
        self.stopped_s += passed - counted
        return self.seconds

    def skip_turn(self) -> None:
        """What came since the last turn was no waiting, but something that has a limit of its own."""
        self._last = monotonic()
