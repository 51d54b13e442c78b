"""Hugging Face Accelerate: it is told of each pass, whether the last batch was returned and how many rows of it count.

Accelerate steps its optimizer at the end of an epoch, whatever accumulation is at, and cuts repeated rows off what it
gathers. It knows both of its own wrapper around a DataLoader, which a Loader is not. So a pass stands in its list of
loops while it runs.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from ..errors import Error

if TYPE_CHECKING:
    from .._loader import Loader

__all__ = ["JoinedLoop", "join_loops", "refuse_attribute"]

log = logging.getLogger("feedwater")

UNKNOWN = -1
"""Accelerate's word for a loop of which nobody knows how many rows of its last batch are repeats."""

_warned: list[str] = []


class JoinedLoop:
    """Keeps a pass in Accelerate's list of loops, until it is over or nobody holds this.

    Only a pass that is in such a list has a finaliser: an interrupt that strikes in one is lost.
    """

    _end: LoopEnd | None = None
    _state: Any = None

    def __init__(self, loader: Loader[Any], state: Any) -> None:
        self._end = LoopEnd(loader)
        state._add_dataloader(self._end)
        self._state = state

    def leave(self) -> None:
        """The pass is over, or is left; harmless when repeated."""
        state, self._state = self._state, None
        if state is not None:
            state._remove_dataloader(self._end)

    def __del__(self) -> None:
        self.leave()


class LoopEnd:
    """One pass as Accelerate knows it. Both properties are about the batch that was returned last."""

    def __init__(self, loader: Loader[Any]) -> None:
        self.loader = loader

    @property
    def end_of_dataloader(self) -> bool:
        """Whether it was the last of its epoch. Makes the next batch, to know it, where broken rows are left out."""
        loader = self.loader
        engine = loader._engine
        if loader._config.on_error != "skip" or engine.policies.learning is not None or not engine.cursor.at.returned:
            return engine.at_end()
        try:
            return loader._progress.peek_ready() is None
        except Error:  # the next batch raises it
            return False

    @property
    def remainder(self) -> int:
        """Rows of all ranks that hold a sample that did not come before; 0: all of them; -1: that is not known."""
        engine = self.loader._engine
        step, order, ranks = engine.cursor.at.step, engine.shape.order, engine.ranks
        if step is None or ranks is None or (getattr(order, "sharded", False) and ranks.world > 1):
            return UNKNOWN
        taken: int = step.end - step.start
        return taken if taken < step.rows * ranks.world else 0


def refuse_attribute(name: str) -> None:
    """Raises Error where Accelerate looks for an attribute of a DataLoader, to make another one that skips batches.

    It would read the data set by itself. Nothing else asks for these from there.
    """
    if sys._getframe(2).f_globals.get("__name__") == "accelerate.data_loader":
        raise Error(
            "Accelerate would make a DataLoader of the Loader to skip batches (it looks for its "
            f"{name}): call feedwater.hf.enable() once before, and it calls loader.skip(n)"
        )


def join_loops(loader: Loader[Any]) -> JoinedLoop | None:
    """Tells Accelerate that a pass begins, if a program of this process uses it."""
    module = sys.modules.get("accelerate.state")
    kind = getattr(module, "GradientState", None)
    if kind is None:
        return None
    try:
        return JoinedLoop(loader, kind()) if kind._shared_state else None
    except (AttributeError, TypeError) as error:
        if not _warned:
            _warned.append(str(error))
            log.warning(
                "this version of accelerate has no list of loops that the Loader knows (%s): it steps no optimizer at "
                "the end of an epoch by itself, and gather_for_metrics keeps repeated rows. Versions up to 1.15 do",
                error,
            )
        return None
