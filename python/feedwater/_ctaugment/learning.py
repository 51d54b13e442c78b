"""The policy of a run: which steps it names, what the loop teaches it, and how all ranks come to the same one."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.ranks import Ranks
from ..errors import Error, NotYetError
from .policy import Change, Policy, Weights

if TYPE_CHECKING:
    from .._config import Config

__all__ = ["Learning"]

log = logging.getLogger("feedwater")


class Learning:
    """CTAugment's side of an Engine. numbered counts steps: how many of the run begin before a place."""

    def __init__(self, config: Config, policy: Policy) -> None:
        self.policy = policy
        self._whole = config.batch_size or 1
        self._group: Any = None
        self._heard = -1
        """The last step that feedback came of."""
        self._told = False

    @classmethod
    def for_config(cls, config: Config) -> Learning | None:
        """None where the plan learns nothing. Raises for what does not go together with it."""
        compiled = [picture.compiled for picture in config.pictures]
        ops = [step for one in compiled for step in one.ops if type(step).__name__ == "CTAugment"]
        if not ops:
            return None
        if config.views:
            raise NotYetError("CTAugment in Views is not there yet: feedback() is about one picture of each sample")
        if len(ops) > 1:
            raise ValueError("CTAugment is there twice: one of them learns; say how many ops it does by depth=")
        if config.sampler is not None or config.batch_sampler is not None:
            raise NotYetError("CTAugment with a sampler is not there yet: use shuffle=True, or a Subset")
        return cls(config, Policy(ops[0], config.seed))  # type: ignore[arg-type]

    def step_number(self, epoch: int, consumed: int, steps: int, ranks: Ranks) -> int:
        """How many steps of the run lie before a place, where an epoch has so many."""
        return epoch * steps + min(steps, -(-ranks.share_evenly(consumed) // self._whole))

    def weights_at(self, step: int, now: int) -> Weights | None:
        """What the batch of a step is made by; None if that is not known yet, before step now."""
        return self.policy.weights_at(step) if step < now + self.policy.op.lag else None

    def recall_weights(self, step: int, now: int) -> Weights:
        """What the batch of a step was, or will be, made by. Raises Error where that is not known, before step now."""
        if self.policy.was_taught() and (step >= now + self.policy.op.lag or not self.policy.knows_step(step)):
            raise Error(
                "replay: CTAugment draws by what was learnt until then, which is known of the last 256 steps; pass the "
                "position and epoch of one of them to replay_batch()"
            )
        return self.policy.weights_at(step)

    def learn_outcomes(self, step: int, epoch: int, samples: tuple[Any, Any], outcomes: Any, ranks: Ranks) -> None:
        """Takes up the outcomes of samples (indices and repeats) of a step's batch; with those of all ranks."""
        change = self.policy.make_change(epoch, *samples, outcomes)
        self._heard = step
        for other in self._gather_changes(change, ranks):
            self.policy.note_change(step, other)

    def expect_feedback(self, step: int) -> None:
        """Warns, once, where a state of a program that gives feedback lacks that of its last step."""
        if self._told or self._heard >= step or not self.policy.was_taught():
            return
        self._told = True
        log.warning(
            "a state without the feedback() of its last batch, which a run that goes on from it will lack: call "
            "state_dict() behind feedback(), or state_dict(lag=1), which is without that batch, too"
        )

    def _gather_changes(self, change: Change, ranks: Ranks) -> list[Change]:
        if ranks.world == 1:
            return [change]
        torch = sys.modules.get("torch")
        distributed = torch.distributed if torch is not None else None
        if distributed is None or not distributed.is_initialized() or distributed.get_world_size() != ranks.world:
            raise Error(
                f"feedback() gathers what {ranks.world} ranks learn by torch.distributed, which must be initialised "
                "with as many"
            )
        assert torch is not None
        if self._group is None:
            self._group = distributed.new_group(backend="gloo")
        mine = torch.from_numpy(np.stack([change.scale, change.added]))
        all_ = [torch.empty_like(mine) for _ in range(ranks.world)]
        distributed.all_gather(all_, mine, group=self._group)
        return [Change(*one.numpy()) for one in all_]


def rows_of(last: Any, indices: Any, values: Any, repeat_at: Callable[[int], int]) -> tuple[Any, Any, Any]:
    """Checked: the samples' indices, their repeats and values, each of which is in the last batch."""
    wanted, outcomes = np.atleast_1d(_to_array(indices)), np.atleast_1d(_to_array(values).astype(np.float64))
    if wanted.dtype.kind not in "iu" or wanted.shape != outcomes.shape or wanted.ndim != 1:
        raise TypeError("feedback(indices, values): needs an index and a value for each sample, as many of both")
    if not ((outcomes >= 0) & (outcomes <= 1)).all():
        raise ValueError("feedback: a value is how well a sample came out, from 0 to 1")
    rows = {int(index): row for row, index in reversed(list(enumerate(last.indices))) if index >= 0}
    strange = next((int(index) for index in wanted if int(index) not in rows), None)
    if strange is not None:
        raise ValueError(f"feedback: index {strange} is not in the last batch (loader.last.indices)")
    repeats = np.array([repeat_at(last.place(rows[int(index)])) for index in wanted], np.int64)
    return wanted.astype(np.int64), repeats, outcomes


def _to_array(values: Any) -> Any:
    """Numbers as an array of numpy, of tensors too that are on a GPU or in a graph."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
