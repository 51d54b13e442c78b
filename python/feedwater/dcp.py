"""torch.distributed.checkpoint, and torchtitan's checkpoints: a Loader as one entry of a checkpoint.

    import torch.distributed.checkpoint as dcp
    from feedwater.dcp import Stateful

    entries = {"model": model.state_dict(), "data": Stateful(loader)}
    dcp.save(entries, checkpoint_id=folder)
    dcp.load(entries, checkpoint_id=folder)       # goes on amid the epoch, on any number of ranks

A Loader itself is no such entry: dcp loads into what an entry's state_dict() gives before, member by member, and a new
Loader's state has fewer of them than that of one which has read.
"""

from __future__ import annotations

import json
from typing import Any

from ._loader import Loader

__all__ = ["Stateful"]

_MEMBER = "feedwater"


class Stateful:
    """A Loader's state as one text, which is the same on every rank, so that one of them writes it."""

    def __init__(self, loader: Loader[Any]) -> None:
        self.loader = loader

    def state_dict(self) -> dict[str, Any]:
        """What torch.distributed.checkpoint saves, and what it loads into."""
        return {_MEMBER: json.dumps(self.loader.state_dict())}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on where the state was saved. Raises KeyError for what is no state of this class."""
        self.loader.load_state_dict(json.loads(state_dict[_MEMBER]))
