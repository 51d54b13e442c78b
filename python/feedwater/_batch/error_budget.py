"""How many broken samples a run puts up with."""

from __future__ import annotations

import math
from typing import Any

from .._common.filenames import escape_name, from_json
from ..errors import DataError

__all__ = ["Budget", "name_samples"]

NAMED = 5


class Budget:
    """Counts what was skipped or substituted in an epoch on this rank. The count depends on the order alone."""

    def __init__(self, max_errors: float) -> None:
        self._max_errors = max_errors
        self._epoch = -1
        self._steps: dict[int, list[dict[str, Any]]] = {}

    def count_errors(self, epoch: int, start: int, errors: list[dict[str, Any]], samples: int) -> None:
        """Counts a step's errors, once however often it is told; raises DataError beyond the limit.

        samples is what this rank reads of the epoch, of which a limit below 1 is a share.
        """
        if epoch != self._epoch:
            self._epoch, self._steps = epoch, {}
        self._steps[start] = errors
        share = isinstance(self._max_errors, float) and self._max_errors < 1
        limit = math.ceil(self._max_errors * samples) if share else self._max_errors
        known = [error for some in self._steps.values() for error in some]
        if len(known) > limit:
            raise DataError(
                f"{len(known)} broken samples in epoch {epoch}, and max_errors={self._max_errors} allows {limit:g}. "
                f"The first: {name_samples(known)}; the last: {known[-1].get('cause')}. Repair them, or allow more"
            )

    def check_left(self, epoch: int, samples: int) -> None:
        """An epoch of so many samples is over: raises DataError if all were skipped, which nobody would notice."""
        skipped = [error for some in self._steps.values() for error in some if error.get("substitute") is None]
        if epoch == self._epoch and len(skipped) == samples:
            raise DataError(
                f'on_error="skip" leaves nothing of epoch {epoch}: none of its {samples} samples decodes. The first: '
                f"{name_samples(skipped)}; the last: {skipped[-1].get('cause')}. Repair them, or read another folder"
            )


def name_samples(errors: list[dict[str, Any]]) -> str:
    """The first few of broken samples, for messages."""
    keys = ", ".join(from_json(str(error.get("key"))) for error in errors[:NAMED])
    return escape_name(keys) + (f" and {len(errors) - NAMED} more" if len(errors) > NAMED else "")
