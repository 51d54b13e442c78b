"""One pass over an epoch, and the small objects that frameworks look for on a loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ._common.torch_modes import imported_torch
from ._frameworks.accelerate import JoinedLoop, join_loops
from .errors import Error

if TYPE_CHECKING:
    from ._loader import Loader

__all__ = ["EpochShim", "Pass", "Sized"]

PROFILER_LABEL = "enumerate(DataLoader)#feedwater.Loader.__next__"
"""Profilers count a span as data loading if its name looks like PyTorch's own."""

NOT_BEGUN = -1

B = TypeVar("B")


class Pass(Iterator[B]):
    """One pass over an epoch. Begins with its first next."""

    __slots__ = ("_ended", "_loader", "_loop", "_number", "_tells", "_untold")

    def __init__(self, loader: Loader[B], tells: bool = True) -> None:
        self._loader = loader
        self._number = NOT_BEGUN
        self._ended = False
        self._tells = self._untold = tells
        """Whether frameworks are told of it, and do not know of it yet.

        Not of one that a DataLoader reads, of which they are told already.
        """
        self._loop: JoinedLoop | None = None

    def __next__(self) -> B:
        loader, progress = self._loader, self._loader._progress
        progress.claim_thread()
        try:
            if self._ended:
                raise StopIteration
            if progress.passes != self._number or progress.cursor.moved:  # must_begin, without a call
                self._begin_pass()
            if self._untold:
                self._loop, self._untold = join_loops(loader), False
            profiler = find_profiler()
            if profiler is None:
                batch: B = progress.next_batch()
            else:
                with profiler.record_function(PROFILER_LABEL):
                    batch = progress.next_batch()
        except BaseException as error:
            self._ended = self._ended or isinstance(error, StopIteration)
            self._leave_loops()
            progress.user.clear()
            raise
        del progress.user["thread"]  # no call: a Ctrl-C between here and the loop would lose the batch
        return batch

    def _leave_loops(self) -> None:
        loop, self._loop, self._untold = self._loop, None, self._tells
        if loop is not None:
            loop.leave()

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        known = {name: getattr(self, name) for name in self.__slots__}
        return None, {**known, "_loop": None, "_untold": self._tells}

    def _begin_pass(self) -> None:
        progress = self._loader._progress
        if self._number != NOT_BEGUN and not progress.is_latest(self._number):
            raise Error("this iterator was left behind by a newer iter() of the same Loader: use that one, or peek()")
        self._number = progress.begin_pass()


class Sized:
    """The data set, or the part of it that was chosen, as far as frameworks and scripts ask: its length and classes."""

    def __init__(self, loader: Loader[Any]) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return self._loader._engine.shape.count_samples()

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError(
            f"single samples are not here, their pictures are elsewhere: loader.replay({index!r}) gives one as a batch "
            "has it; pass an ImageFolder to have its items"
        )

    def __repr__(self) -> str:
        return f"<the data set of {self._loader!r}>"

    @property
    def classes(self) -> list[str]:
        """As Loader.classes."""
        return self._loader.classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """As Loader.class_to_idx."""
        return self._loader.class_to_idx

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"the data set has no {name!r} here, its pictures are elsewhere: single samples come from "
            "loader.replay(index), classes from loader.classes; pass an ImageFolder to have its attributes"
        )


class EpochShim:
    """In place of a sampler: this rank's samples per epoch as its length, and set_epoch handed on."""

    def __init__(self, loader: Loader[Any]) -> None:
        self._loader = loader

    def __len__(self) -> int:
        if self._loader._config.batch_sampler is not None:
            raise TypeError("the batch_sampler decides how many samples an epoch has")
        return self._loader._engine.shape.count_rank_samples()

    def set_epoch(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)


def find_profiler() -> Any:
    """The profiler module of torch if a profile is being taken."""
    torch = imported_torch()
    return torch.autograd.profiler if torch is not None and torch.autograd._profiler_enabled() else None
