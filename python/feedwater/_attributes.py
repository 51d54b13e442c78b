"""What frameworks and scripts look for on a DataLoader, and find on a Loader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from ._config import Config
from ._frameworks.accelerate import refuse_attribute
from ._pass import EpochShim, Sized

if TYPE_CHECKING:
    from ._loader import Loader

__all__ = ["DataLoaderAttributes"]

MOVES = ("cpu", "cuda", "device", "to")
"""By which tensors, modules and fastai's DataLoaders are moved."""


class DataLoaderAttributes:
    """Of a Loader, which is one of these."""

    _config: Config
    _dataset: Any

    @property
    def dataset(self) -> Any:
        """The object that was passed as source; for a path something with a length, the samples of the data set."""
        return Sized(cast("Loader[Any]", self)) if self._dataset is None else self._dataset

    @property
    def sampler(self) -> Any:
        """The one that was passed; else something with this rank's samples as its length, and set_epoch.

        Lightning and others call that in place of ours.
        """
        passed = getattr(self._config.batch_sampler, "sampler", self._config.sampler)
        return EpochShim(cast("Loader[Any]", self)) if passed is None else passed

    @property
    def batch_sampler(self) -> Any:
        """The one that was passed; else None, for batches are not made here."""
        return self._config.batch_sampler

    @property
    def batch_size(self) -> int | None:
        """Samples per batch and rank; None with a batch_sampler."""
        return self._config.batch_size

    @batch_size.setter
    def batch_size(self, value: int | None) -> None:
        raise AttributeError(
            f"a Loader keeps its batch_size: go on with another by new = Loader(…, batch_size={value}); "
            "new.load_state_dict(old.state_dict())"
        )

    @property
    def drop_last(self) -> bool:
        """Whether the samples left over at the end of an epoch are dropped."""
        return self._config.tail == "drop"

    @property
    def num_workers(self) -> Literal[0]:
        """0: there are no worker processes of Python."""
        return 0

    def __getitem__(self, index: Any) -> NoReturn:
        """Not a data set."""
        raise TypeError(
            "a Loader gives whole batches and only in order: write `for batch in loader`. For code that insists on a "
            "DataLoader pass DataLoader(feedwater.RemoteDataset(loader), batch_size=None); loader.replay(index) gives "
            "one sample"
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            refuse_attribute(name)
            way_out = "; a GPU for its batches is named by device=, where it is made" if name in MOVES else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{way_out}")
