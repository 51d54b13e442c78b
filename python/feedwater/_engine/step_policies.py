"""By which policy of CTAugment each step's batch is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._common.ranks import Ranks
from .._config import Config
from .._ctaugment.learning import Learning, rows_of
from .._ctaugment.policy import Weights
from .._order.cursor import Cursor
from .._order.steps import Step
from ..errors import Error
from .epoch_shape import EpochShape
from .opening import Opening

__all__ = ["StepPolicies"]


class StepPolicies:
    """Of one Loader. learning is None where the plan learns nothing."""

    def __init__(self, config: Config, opening: Opening, shape: EpochShape, cursor: Cursor) -> None:
        self.learning = Learning.for_config(config)
        self._opening, self._shape, self._cursor = opening, shape, cursor

    def step_number(self, epoch: int, consumed: int) -> int:
        """How many steps of the run lie before a place."""
        assert self.learning is not None
        return self.learning.step_number(epoch, consumed, self._shape.count_steps(), self._shape.find_ranks())

    def name_policy(self, step: Step | None) -> Step | None:
        """The step with the policy its batch is made by; None if that is not known yet."""
        if step is None or self.learning is None:
            return step
        weights = self.learning.weights_at(self.step_number(*step.key), self.step_number(*self._cursor.at.place))
        step.policy = weights
        return None if weights is None else step

    def learn_outcomes(self, indices: Any, values: Any, repeat_at: Callable[[int], int], ranks: Ranks | None) -> None:
        """What the last batch's samples teach, of all ranks."""
        if self.learning is None:
            raise Error("feedback() teaches CTAugment, which the transform has not: feedwater.transforms.CTAugment()")
        at = self._cursor.at
        if at.last is None or ranks is None:
            raise Error("feedback() is about the last batch, and there was none")
        wanted, repeats, outcomes = rows_of(at.last, indices, values, repeat_at)
        step = self.step_number(at.last.epoch, at.place[1]) - 1
        self.learning.learn_outcomes(step, at.last.epoch, (wanted, repeats), outcomes, ranks)

    def policy_at(self, begins: tuple[int, int] | None = None) -> Weights | None:
        """What a batch is made by that begins at a position of an epoch; by default the last one, or the first to come.

        None where nothing is learnt. Raises Error where it is not known.
        """
        if self.learning is None:
            return None
        self._opening.open_plan()
        if begins is not None:
            epoch, position = begins
            return self.learning.recall_weights(
                self.step_number(epoch, position + 1) - 1, self.step_number(*self._cursor.at.place)
            )
        at = self._cursor.at
        number = (
            self.step_number(*self._cursor.place)
            if at.last is None
            else self.step_number(at.last.epoch, at.place[1]) - 1
        )
        return self.learning.policy.weights_at(number)
