"""Samples of batches that were, or could be, made again; which of a batch's rows CTAugment probes."""

from __future__ import annotations

import base64
import dataclasses
from typing import TYPE_CHECKING, Any

from ._agent.replay import Last, Sample, check_index, replay_samples
from ._config import Config
from ._engine.engine import Engine
from ._order.cursor import Cursor
from .errors import Error

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Replays"]


class Replays:
    """Of one Loader: names samples by what its last batch was, and has them made again."""

    def __init__(self, config: Config, engine: Engine, cursor: Cursor) -> None:
        self._config, self._engine, self._cursor = config, engine, cursor

    @property
    def last(self) -> Last | None:
        """The batch that was returned last."""
        last: Last | None = self._cursor.at.last
        return last

    def find_probes(self) -> npt.NDArray[np.bool_]:
        """As Loader.probes."""
        last, learning = self.last, self._engine.policies.learning
        if last is None or learning is None:
            raise Error("probes() is about the last batch of a Loader whose transform has CTAugment")
        import numpy as np

        repeats = np.array([self.repeat_at(last.place(row)) for row in range(len(last.indices))])
        found = learning.policy.find_probes(last.epoch, last.indices, repeats)
        return found & (last.indices >= 0)

    def replay_sample(self, index: int, epoch: int | None, repeat: int | None) -> Sample:
        """As Loader.replay."""
        index, epoch = check_index("index", index, self._engine.opening.open_plan().samples), self._resolve_epoch(epoch)
        repeat = self._resolve_repeat(index, epoch) if repeat is None else check_index("repeat", repeat, 1 << 32)
        if self.last is not None and (epoch != self.last.epoch or index not in self.last.indices):
            self._check_untaught()
        params = {"epoch": epoch, "indices": [index], "repeats": [repeat], **self._policy_params()}
        sample = replay_samples(self._engine.feed.session, params)[0]
        if self._config.python is None or sample.error is not None:
            return sample
        return dataclasses.replace(sample, result=self._engine.run_python_again(index, epoch, repeat))

    def replay_batch(self, position: int, epoch: int | None) -> list[Sample]:
        """As Loader.replay_batch."""
        last = self.last
        epoch, begins = self._resolve_epoch(epoch), None
        if last is not None and (last.position, last.epoch) == (position, epoch):
            held = [(row, int(index)) for row, index in enumerate(last.indices) if index >= 0]
            repeats = [self.repeat_at(last.place(row)) for row, _ in held]
            params: dict[str, Any] = {"epoch": epoch, "indices": [i for _, i in held], "repeats": repeats}
        else:
            position = check_index("position", position, self._engine.shape.count_positions())
            if self._config.listed:
                raise Error("with a sampler only the last batch can be replayed by position; use replay(index, epoch)")
            params = {"epoch": epoch, "position": position, "count": self._engine.shape.batch_size_at(position)}
            begins = epoch, position
        return replay_samples(self._engine.feed.session, params | self._policy_params(begins))

    def _check_untaught(self) -> None:
        learning = self._engine.policies.learning
        if learning is not None and learning.policy.was_taught():
            raise Error(
                "replay: CTAugment draws by what was learnt until then, and which batch had this sample is not known: "
                "use replay_batch(position, epoch) of that one, or take a sample of the last batch"
            )

    def _policy_params(self, begins: tuple[int, int] | None = None) -> dict[str, Any]:
        """What CTAugment draws by, as the agent takes it: in the last batch, or in that which begins there."""
        policy = self._engine.policies.policy_at(begins)
        return {} if policy is None else {"policy": base64.b64encode(policy.encoded).decode()}

    def _resolve_epoch(self, epoch: int | None) -> int:
        if epoch is not None:
            return check_index("epoch", epoch, 1 << 32)
        return self.last.epoch if self.last else self._cursor.place[0]

    def _resolve_repeat(self, index: int, epoch: int) -> int:
        """That of the sample in the last batch, else of its first appearance in the epoch; Error if it is not known."""
        last = self.last
        rows = [row for row, held in enumerate(last.indices) if held == index] if last and last.epoch == epoch else []
        if last and rows:
            return self.repeat_at(last.place(rows[0]))
        place = self._engine.shape.find_position(index, epoch) if self._config.listed else 0
        if place is None:
            raise Error(
                f"replay: index={index} is not among the samples that epoch {epoch} is known to have, and its draws go "
                "by its place among them: pass repeat=, that place in the order of all ranks, which was "
                "loader.last.place(row) when it was in a batch"
            )
        return self.repeat_at(place)

    def repeat_at(self, position: int) -> int:
        """The repeat of the sample at a position of the epoch."""
        if self._config.listed:
            return position & 0xFFFFFFFF
        return position // self._engine.opening.open_plan().samples
