"""RemoteDataset: a Loader inside a stock DataLoader. Importing this imports torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from ._loader import Loader
from .errors import Error

__all__ = ["RemoteDataset"]


class RemoteDataset(IterableDataset[Any]):
    """For code that insists on a DataLoader: DataLoader(RemoteDataset(loader), batch_size=None).

    It yields whole batches. num_workers must stay 0: batches are made outside this process already, and workers would
    only copy them once more.
    """

    def __init__(self, loader: Loader[Any]) -> None:
        super().__init__()
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        if get_worker_info() is not None:
            raise Error(
                "DataLoader(RemoteDataset(…)) needs num_workers=0: batches are made outside this process already"
            )
        return iter(self.loader)

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
