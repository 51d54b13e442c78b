"""Counts backward passes: a loop without one that builds graphs lacks no_grad."""

from __future__ import annotations

from functools import wraps
from typing import Any

passes = [0]
"""Of this process."""


def patch(module: Any) -> None:
    """Of torch.autograd."""
    original = module.backward

    @wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        passes[0] += 1
        return original(*args, **kwargs)

    module.backward = backward
