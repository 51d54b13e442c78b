"""The generators that the program gave its sampler. Where they stand decides the next epoch, so states tell of it."""

from __future__ import annotations

import base64
import zlib
from typing import Any

from .._common.torch_modes import imported_torch
from ..errors import StateMismatchError
from .sampler_epoch import parts_of

__all__ = ["Generators", "pack"]


class Generators:
    """torch's generators that a sampler draws from, and the sampler inside a batch sampler. They may be none."""

    def __init__(self, sampler: Any) -> None:
        self._parts = parts_of(sampler)

    def _all(self) -> list[Any]:
        torch = imported_torch()
        if torch is None:
            return []
        found = [getattr(part, "generator", None) for part in self._parts]
        unlike = {id(generator): generator for generator in found if isinstance(generator, torch.Generator)}
        return list(unlike.values())

    def stand(self) -> list[Any]:
        """Where they stand now."""
        return [generator.get_state() for generator in self._all()]

    def put(self, stood: list[Any]) -> None:
        """Puts them back to where they stood."""
        for generator, state in zip(self._all(), stood):
            generator.set_state(state)

    def seeds(self) -> list[int]:
        """What they were seeded with."""
        return [generator.initial_seed() for generator in self._all()]

    def seeded(self, stood: list[Any]) -> list[int]:
        """What they were seeded with when they stood there."""
        before = self.stand()
        try:
            self.put(stood)
            return self.seeds()
        finally:
            self.put(before)

    def unpack(self, packed: list[str]) -> list[Any]:
        """What pack made of where they stood. Raises StateMismatchError if these generators cannot stand there."""
        if len(packed) != len(self._all()):
            raise StateMismatchError(
                f"the state is of a sampler with {len(packed)} generator(s), this one has {len(self._all())}: "
                "pass it as it was, with a generator= or without"
            )
        torch = imported_torch()
        before = self.stand()
        try:
            stood = [
                torch.frombuffer(bytearray(zlib.decompress(base64.b64decode(text))), dtype=torch.uint8)
                for text in packed
            ]
            self.put(stood)
        except (ValueError, RuntimeError, TypeError, zlib.error) as error:
            raise StateMismatchError(f"the state of the sampler's generator does not fit: {error}") from error
        finally:
            self.put(before)
        return stood


def pack(stood: list[Any]) -> list[str]:
    """As text, some KB each."""
    return [base64.b64encode(zlib.compress(state.numpy().tobytes())).decode() for state in stood]
