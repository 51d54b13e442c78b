"""What CTAugment has learnt: a rate for every bin of every level of its ops, and the weights that batches are made by.

A batch of step t is made by what was learnt up to step t - lag. So its name is known lag steps before, any node makes
it the same, and a resumed run goes on with the same policy: the state holds the rates, and what is learnt and not yet
used. A probe of outcome w changes the rate r of each bin it was drawn from to decay r + (1 - decay) w; probes of one
step count rank by rank and row by row. All of that is one product and one sum per bin, which is what is kept.
"""

from __future__ import annotations

import base64
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import StateMismatchError
from . import philox

if TYPE_CHECKING:
    from ..transforms._learnt import CTAugment

__all__ = ["OPS", "Change", "Policy", "Weights"]

OPS: tuple[tuple[str, tuple[int, ...]], ...] = (
    *((name, (17,)) for name in ("AutoContrast", "Blur", "Brightness", "Color", "Contrast", "Cutout", "Equalize")),
    *(("Identity", ()), ("Invert", (17,)), ("Posterize", (8,)), ("Rescale", (17, 6)), ("Rotate", (17,))),
    *((name, (17,)) for name in ("Sharpness", "ShearX", "ShearY", "Smooth", "Solarize", "TranslateX", "TranslateY")),
)
"""In the order of their weights: each op, and into how many bins each of its levels is divided."""
LEVELS = [(op, level, bins) for op, (_, sizes) in enumerate(OPS) for level, bins in enumerate(sizes)]
FIRST = dict(zip([(op, level) for op, level, _ in LEVELS], np.cumsum([0, *(bins for *_, bins in LEVELS)]).tolist()))
"""Where the bins of each op's levels begin."""
BINS = sum(bins for *_, bins in LEVELS)
KEPT = 256
"""Steps whose policy can still be told: as many as the cursor goes back."""
_Floats = npt.NDArray[np.float64]


class Weights(NamedTuple):
    """A policy as nodes take it, and the number of the step that it is for."""

    step: int
    encoded: bytes


class Change:
    """What some probes do to the rates: r becomes scale r + added."""

    def __init__(self, scale: _Floats | None = None, added: _Floats | None = None) -> None:
        self.scale = np.ones(BINS) if scale is None else scale
        self.added = np.zeros(BINS) if added is None else added

    def add_outcome(self, bins: list[int], outcome: float, decay: float) -> None:
        """A probe drawn from the bins came out so well."""
        for bin_ in bins:
            self.scale[bin_] *= decay
            self.added[bin_] = self.added[bin_] * decay + (1 - decay) * outcome

    def followed_by(self, later: Change) -> Change:
        """Both, one after the other."""
        return Change(self.scale * later.scale, self.added * later.scale + later.added)

    def apply_to(self, rates: _Floats) -> _Floats:
        """The rates behind it."""
        return rates * self.scale + self.added

    def to_text(self) -> str:
        changed = np.flatnonzero(self.scale != 1).astype("<u2")
        parts = changed, self.scale[changed].astype("<f8"), self.added[changed].astype("<f8")
        return base64.b64encode(b"".join(part.tobytes() for part in parts)).decode()

    @classmethod
    def from_text(cls, text: str) -> Change:
        raw = base64.b64decode(text)
        count = len(raw) // 18
        change = cls()
        changed = np.frombuffer(raw, "<u2", count)
        change.scale[changed] = np.frombuffer(raw, "<f8", count, 2 * count)
        change.added[changed] = np.frombuffer(raw, "<f8", count, 10 * count)
        return change


class Policy:
    """What is learnt, step by step. Steps are numbered from the run's beginning, through all epochs."""

    def __init__(self, op: CTAugment, seed: int) -> None:
        self.op = op
        self._key = philox.key_of(seed, "CTAugment/0")
        self._rates: _Floats = np.ones(BINS)
        self._log: deque[tuple[int, Change]] = deque()
        """What was learnt at each step and is not in the rates yet; later ones behind."""
        self._until: int | None = None
        """The last step that is; None: nothing is."""
        self._latest: tuple[int, bytes] | None = None

    def weights_at(self, step: int) -> Weights:
        """What the batch of a step is made by. All feedback up to step - lag must have been noted."""
        if self._latest is None or self._latest[0] != step:
            self._latest = step, _encode_rates(self.rates_at(step), self.op)
        return Weights(step, self._latest[1])

    def rates_at(self, step: int) -> _Floats:
        """The rates that the batch of a step is made by."""
        rates = self._rates
        for number, change in self._log:
            if number <= step - self.op.lag:
                rates = change.apply_to(rates)
        return rates

    def knows_step(self, step: int) -> bool:
        """Whether it is still known what the batch of a step was made by."""
        return self._until is None or self._until <= step - self.op.lag

    def was_taught(self) -> bool:
        """Whether anything was learnt."""
        return bool(self._log) or self._until is not None

    def find_probes(self, epoch: int, indices: Any, repeats: Any) -> npt.NDArray[np.bool_]:
        """Which samples are probes."""
        words = philox.draw_block(self._key, 2 * self.op.depth, epoch, indices, repeats)
        return philox.draw_unit(words[0]) < self.op.probe

    def make_change(self, epoch: int, indices: Any, repeats: Any, outcomes: Any) -> Change:
        """What the outcomes of samples teach, those that are probes."""
        drawn: list[list[int]] = [[] for _ in outcomes]
        for k in range(self.op.depth):
            x, y = (philox.draw_block(self._key, 2 * k + i, epoch, indices, repeats) for i in (0, 1))
            ops = philox.draw_below(x[0], len(OPS))
            for row, op in enumerate(ops):
                for level, (word, bins) in enumerate(zip((x[1, row], y[0, row]), OPS[op][1])):
                    drawn[row].append(FIRST[int(op), level] + int(philox.draw_below(word, bins)))
        change = Change()
        for bins, outcome, probe in zip(drawn, outcomes, self.find_probes(epoch, indices, repeats)):
            if probe:
                change.add_outcome(bins, float(outcome), self.op.decay)
        return change

    def note_change(self, step: int, change: Change) -> None:
        """What was learnt from the batch of a step."""
        if self._log and self._log[-1][0] == step:
            change = self._log.pop()[1].followed_by(change)
        self._log.append((step, change))
        self._latest = None
        while self._log[0][0] < step - self.op.lag - KEPT:
            self._until, change = self._log.popleft()
            self._rates = change.apply_to(self._rates)

    def save_state(self, step: int) -> dict[str, Any]:
        """What is known before a step, to go on from there."""
        pending = [[step - n, c.to_text()] for n, c in self._log if step - self.op.lag < n < step]
        rates = base64.b64encode(self.rates_at(step).astype("<f8").tobytes()).decode()
        return {"rates": rates, "pending": pending}

    def load_state(self, state: dict[str, Any] | None, step: int) -> None:
        """Goes on before a step; None: nothing is learnt."""
        self._log.clear()
        self._latest = None
        self._rates, self._until = np.ones(BINS), None
        if state is None:
            return
        raw = base64.b64decode(state["rates"])
        if len(raw) != 8 * BINS:
            raise StateMismatchError("the state's policy is of another CTAugment: it has other bins")
        self._rates, self._until = np.frombuffer(raw, "<f8").astype(np.float64), step - self.op.lag
        self._log.extend((step - age, Change.from_text(text)) for age, text in state["pending"])


def _encode_rates(rates: _Floats, op: CTAugment) -> bytes:
    """Rates as weights of 16 bits: next to the best of their level, and none below the threshold."""
    weights = np.empty(BINS)
    for number, level, bins in LEVELS:
        first = FIRST[number, level]
        share = rates[first : first + bins] + (1 - op.decay)
        share = share / share.max() if share.max() > 0 else np.ones(bins)
        weights[first : first + bins] = np.where(share < op.threshold, 0, share)
    return np.rint(weights * 65535).astype("<u2").tobytes()
