"""What the driver raises, as errors of ours that say what to do."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ..errors import DeviceError

__all__ = ["Explained", "check_capture"]


class Explained:
    """A context: what torch raises inside for want of memory, or for a GPU that is lost, is raised as DeviceError."""

    __slots__ = ("_ahead", "_kinds", "_name", "_short")

    def __init__(self, torch: Any, name: str) -> None:
        self._name, self._ahead = name, ""
        self._short = torch.cuda.OutOfMemoryError
        self._kinds = (self._short, getattr(torch, "AcceleratorError", self._short))

    def note_ahead(self, batches: int, nbytes: int, fewest: int) -> None:
        """So many batches of so many bytes may be on the GPU ahead of the loop; memory=fewest makes that one."""
        if batches > 1:
            self._ahead = f"; up to {batches} batches of {nbytes:,} bytes lie there ahead of the loop, and "
            self._ahead += f"memory={fewest} makes that one"
        else:
            self._ahead = f"; one batch of {nbytes:,} bytes lies there ahead of the loop"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None or not isinstance(error, self._kinds):
            return
        if isinstance(error, self._short):  # frameworks look for these words
            raise DeviceError(
                f"CUDA out of memory for a batch on {self._name}{self._ahead}. A smaller batch_size takes less. "
                f"Nothing is lost: the next batch is this one. {error}"
            ) from error
        if "out of memory" in str(error):  # of the host, or of the driver itself: torch has a class for its own alone
            raise DeviceError(
                f"the driver has no memory for a batch on {self._name}, or no more of the host's that it may pin: a "
                f"smaller batch_size or memory= takes less. Nothing is lost: the next batch is this one. {error}"
            ) from error
        raise DeviceError(
            f"{self._name} does not take a batch any more, for what failed there before, as a kernel of the program "
            "does whose error nobody had asked for yet, or for the GPU itself. Start the program again; with "
            f"CUDA_LAUNCH_BLOCKING=1 the call that failed raises it. The driver says: {error}"
        ) from error


def check_capture(capturing: bool) -> None:
    """Raises DeviceError if a batch is asked for while a CUDA graph is captured."""
    if capturing:
        raise DeviceError(
            "next inside the capture of a CUDA graph would make this one batch part of the graph: take the batch "
            "before, and copy it into the tensor that the graph reads"
        )
