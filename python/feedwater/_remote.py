"""RemoteDataset: a Loader inside a stock DataLoader. Importing this imports torch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch.utils.data import IterableDataset, default_collate, get_worker_info

from ._loader import Loader
from ._pass import Pass
from .errors import Error

__all__ = ["RemoteDataset"]


def _check_not_stacked(fetcher: Any) -> None:
    """Raises Error if who iterates is a DataLoader that would stack batches; nothing else tells a data set about that.

    fetcher is the object that DataLoader reads an IterableDataset with; anything else is no business of ours.
    """
    if getattr(fetcher, "auto_collation", False) and getattr(fetcher, "collate_fn", None) is default_collate:
        raise Error(
            "DataLoader(RemoteDataset(…)) needs batch_size=None: these are whole batches, and it would stack them"
        )


def _check_not_split(frame: FrameType | None, loader: Loader[Any]) -> None:
    """Raises Error if Accelerate would split among the ranks what this rank has its share of already."""
    ranks = loader._engine.shape.find_ranks()
    while frame is not None and ranks.world > 1:
        if frame.f_globals.get("__name__") == "accelerate.data_loader":
            raise Error(
                "Accelerate splits the batches of a DataLoader(RemoteDataset(…)) among the ranks, and the Loader has "
                f"done that already (rank {ranks.rank} of {ranks.world}): pass the Loader itself to prepare(), which "
                "leaves it as it is, and move its batches by .to(accelerator.device)"
            )
        frame = frame.f_back


class RemoteDataset(IterableDataset[Any]):
    """For code that insists on a DataLoader: DataLoader(RemoteDataset(loader), batch_size=None).

    It yields whole batches: with a batch_size the DataLoader would stack them, which is refused. num_workers must stay
    0: batches are made outside this process already, and workers would only copy them once more.
    """

    def __init__(self, loader: Loader[Any]) -> None:
        super().__init__()
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        if get_worker_info() is not None:
            raise Error(
                "DataLoader(RemoteDataset(…)) needs num_workers=0: batches are made outside this process already"
            )
        _check_not_stacked(sys._getframe(1).f_locals.get("self"))
        _check_not_split(sys._getframe(1), self.loader)
        return Pass(self.loader, tells=False)

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """As Loader.set_epoch."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """As Loader.state_dict."""
        return self.loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As Loader.load_state_dict."""
        self.loader.load_state_dict(state)
