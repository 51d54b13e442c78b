"""The modes of torch that a program may have set around a call of ours, and that batches must not be made under.

Nothing here imports torch: where it was not imported no mode is set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

__all__ = ["current_mode", "imported_torch", "leave_inference_mode", "on_cpu"]

T = TypeVar("T")


def imported_torch() -> Any:
    """torch if the program has imported it; None too while another thread is at it, when half of it is there."""
    global _whole
    torch = sys.modules.get("torch")
    if torch is not _whole and not getattr(getattr(torch, "__spec__", None), "_initializing", False):
        _whole = torch
    return torch if torch is _whole else None


_whole: Any = None
"""What was no half when it was last looked at."""

NOTHING = nullcontext()


def leave_inference_mode() -> AbstractContextManager[Any]:
    """Tensors made inside may be saved for a backward and changed in place, also by who is in inference mode."""
    torch = imported_torch()
    if torch is None or not torch.is_inference_mode_enabled():
        return NOTHING
    return torch.inference_mode(False)  # type: ignore[no-any-return]


def on_cpu(call: Callable[[], T]) -> T:
    """Calls call. Tensors that it makes without a device are on the CPU, whatever torch.set_default_device said.

    They last, too. It is no context manager of Python's, in which a Ctrl-C between its beginning and the block's would
    leave the mode on for good.
    """
    torch = imported_torch()
    if torch is None:
        return call()
    with leave_inference_mode(), torch.device("cpu"):
        return call()


def current_mode() -> str | None:
    """The name of the mode that dispatches torch's functions now, as FakeTensorMode does; None if there is none."""
    torch = imported_torch()
    if torch is None or not torch._C._len_torch_dispatch_stack():
        return None
    return type(torch._C._get_dispatch_stack_at(torch._C._len_torch_dispatch_stack() - 1)).__name__
