"""Random numbers for code of the program that draws from the global generators: samplers and batch_transform."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .torch_modes import imported_torch

__all__ = ["RandomState"]

T = TypeVar("T")


class RandomState:
    """The global states of random, numpy and torch's CPU generator: the program's are put back after each run.

    So are those of further generators of torch, as a GPU's.
    """

    def __init__(self, seed: int, generators: Sequence[Any] = ()) -> None:
        self._mine: tuple[Any, ...] | None = None
        self._seed, self._generators = seed, generators

    def run_seeded(self, draw: Callable[[], T], who: str) -> T:
        """Calls draw under this state. It is the program's code, of what who says for messages.

        Its StopIteration is a RuntimeError, as a generator's is: a loop would take it for the end of its epoch.
        """
        theirs, device = _capture_states(), [generator.get_state() for generator in self._generators]
        try:
            if self._mine is None:
                self._start_state()
            else:
                _restore_states(self._mine)
            drawn = draw()
            self._mine = _capture_states()
            return drawn
        except StopIteration as error:
            raise RuntimeError(
                f"{who} raised StopIteration, which would end the epoch in silence: it calls next() on an iterator "
                "that is exhausted. Begin that anew, as itertools.cycle does, or call next(iterator, default)"
            ) from error
        finally:
            try:
                self._put_back(theirs, device)
            except BaseException:  # a Ctrl-C amid it
                self._put_back(theirs, device)
                raise

    def _put_back(self, theirs: tuple[Any, ...], device: list[Any]) -> None:
        _restore_states(theirs)
        for generator, state in zip(self._generators, device):
            generator.set_state(state)

    def _start_state(self) -> None:
        random.seed(self._seed)
        np.random.seed(self._seed & 0xFFFFFFFF)
        torch = imported_torch()
        if torch is not None:
            torch.default_generator.manual_seed(self._seed & 0x7FFFFFFFFFFFFFFF)
        for generator in self._generators:
            generator.manual_seed(self._seed & 0x7FFFFFFFFFFFFFFF)


def _capture_states() -> tuple[Any, ...]:
    torch = imported_torch()
    return random.getstate(), np.random.get_state(), None if torch is None else torch.get_rng_state()


def _restore_states(states: tuple[Any, ...]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])
    if states[2] is not None:
        sys.modules["torch"].set_rng_state(states[2])
