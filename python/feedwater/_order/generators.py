"""The generators that the program gave its sampler. Where they stand decides the next epoch, so states tell of it."""

from __future__ import annotations

import base64
import zlib
from typing import Any

from .._common.torch_modes import imported_torch
from ..errors import StateMismatchError
from .sampler_epoch import parts_of

__all__ = ["Generators", "pack_states"]


class Generators:
    """torch's generators that a sampler draws from, and the sampler inside a batch sampler. They may be none."""

    def __init__(self, sampler: Any) -> None:
        self._parts = parts_of(sampler)

    def _list_generators(self) -> list[Any]:
        torch = imported_torch()
        if torch is None:
            return []
        found = [getattr(part, "generator", None) for part in self._parts]
        unlike = {id(generator): generator for generator in found if isinstance(generator, torch.Generator)}
        return list(unlike.values())

    def read_states(self) -> list[Any]:
        """Where they stand now."""
        return [generator.get_state() for generator in self._list_generators()]

    def restore_states(self, stood: list[Any]) -> None:
        """Puts them back to where they stood."""
        for generator, state in zip(self._list_generators(), stood):
            generator.set_state(state)

    def read_seeds(self) -> list[int]:
        """What they were seeded with."""
        return [generator.initial_seed() for generator in self._list_generators()]

    def seeds_of(self, stood: list[Any]) -> list[int]:
        """What they were seeded with when they stood there."""
        before = self.read_states()
        try:
            self.restore_states(stood)
            return self.read_seeds()
        finally:
            self.restore_states(before)

    def unpack_states(self, packed: list[str]) -> list[Any]:
        """What pack_states made of where they stood. Raises StateMismatchError if they cannot stand there."""
        count = len(self._list_generators())
        if len(packed) != count:
            raise StateMismatchError(
                f"the state is of a sampler with {len(packed)} generator(s), this one has {count}: "
                "pass it as it was, with a generator= or without"
            )
        torch = imported_torch()
        before = self.read_states()
        try:
            stood = [
                torch.frombuffer(bytearray(zlib.decompress(base64.b64decode(text))), dtype=torch.uint8)
                for text in packed
            ]
            self.restore_states(stood)
        except (ValueError, RuntimeError, TypeError, zlib.error) as error:
            raise StateMismatchError(f"the state of the sampler's generator does not fit: {error}") from error
        finally:
            self.restore_states(before)
        return stood


def pack_states(stood: list[Any]) -> list[str]:
    """As text, some KB each."""
    return [base64.b64encode(zlib.compress(state.numpy().tobytes())).decode() for state in stood]
