"""Hugging Face: what transformers' Trainer and Accelerate do to a DataLoader in the middle of a run, for Loaders.

    import feedwater.hf

    feedwater.hf.enable()     # once, anywhere before trainer.train(resume_from_checkpoint=True)

It needs accelerate, and changes nothing about DataLoaders.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from ._loader import Loader

__all__ = ["enable"]

NAME = "skip_first_batches"
MODULES = ("accelerate.data_loader", "accelerate.accelerator", "accelerate", "transformers.trainer")
"""Those that have the function under its name. One that is not there yet imports it from accelerate later."""


def enable() -> None:
    """Gives skip_first_batches of Accelerate and transformers a meaning for a Loader: loader.skip(n), and the Loader.

    Of everything else they do what they did. Harmless when repeated. Raises ImportError if accelerate is not there or
    has no such function.
    """
    import accelerate.data_loader

    kept = getattr(accelerate.data_loader, NAME, None)
    if kept is None:
        raise ImportError(
            f"accelerate {accelerate.__version__} has no {NAME} that could be given a meaning for Loaders"
        )
    skip = _for_loaders(kept)
    for name in MODULES:
        if hasattr(module := sys.modules.get(name), NAME):
            setattr(module, NAME, skip)


def _for_loaders(kept: Callable[..., Any]) -> Callable[..., Any]:
    """The same function for all but Loaders."""
    if hasattr(kept, "is_for_loaders"):
        return kept

    @functools.wraps(kept)
    def skip_first_batches(dataloader: Any, num_batches: int = 0) -> Any:
        if not isinstance(dataloader, Loader):
            return kept(dataloader, num_batches)
        dataloader.skip(num_batches)
        return dataloader

    skip_first_batches.is_for_loaders = True  # type: ignore[attr-defined]
    return skip_first_batches
