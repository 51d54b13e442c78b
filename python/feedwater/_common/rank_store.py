"""What ranks of one process group tell each other without waiting: the first one's word, which later ones read."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from types import FrameType
from typing import Any

from .ranks import Ranks, chosen_dimensions
from .torch_modes import imported_torch

__all__ = ["RankStore", "find_store", "identify_caller"]

log = logging.getLogger("feedwater")

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
PREFIX = "feedwater/"


class RankStore:
    """The key-value store of torch.distributed's default process group, of those ranks that share an epoch."""

    def __init__(self, store: Any, members: str) -> None:
        self._store, self._members = store, members

    def exchange(self, key: str, word: str) -> str | None:
        """The word of the rank that came first with this key, or ours; None if the store cannot be asked.

        One request, which waits for no other rank: some of them may never come.
        """
        name = hashlib.sha256(f"{self._members} {key}".encode()).hexdigest()[:32]
        try:
            said = self._store.compare_set(PREFIX + name, "", word)
        except (RuntimeError, NotImplementedError) as error:  # the process that has the store is gone
            log.debug("ranks cannot be compared: %s", error)
            return None
        return bytes(said).decode()


def find_store(rank: int | None, mesh: Any, ranks: Ranks) -> RankStore | None:
    """The store of those who share an epoch; None if torch.distributed does not join just these.

    rank is the argument, if one was passed, and ranks is what was found by it.
    """
    torch = imported_torch()
    distributed = getattr(torch, "distributed", None)
    if ranks.world == 1 or distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    if rank is not None and ranks != (distributed.get_rank(), distributed.get_world_size()):
        return None  # of a part of the group, and which that is nothing tells
    find_default = getattr(distributed.distributed_c10d, "_get_default_store", None)
    try:
        members = "all" if mesh is None or rank is not None else _list_members(mesh)
        return None if find_default is None else RankStore(find_default(), members)
    except (AttributeError, RuntimeError, TypeError, ValueError):  # a group without a store, another kind of mesh
        return None


def _list_members(mesh: Any) -> str:
    """The ranks of the default group that share an epoch with this one by the mesh."""
    here = mesh.get_coordinate()
    chosen = chosen_dimensions(mesh)
    place = tuple(slice(None) if dim in chosen else at for dim, at in enumerate(here))
    return " ".join(map(str, mesh.mesh[place].flatten().tolist()))


def identify_caller() -> str:
    """Which lines of the program call the package now: the same on ranks that run one program."""
    lines = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            lines.append(f"{os.path.basename(code.co_filename)}:{code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
