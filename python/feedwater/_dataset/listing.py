"""The samples of an ImageFolder, to be compared with those that its folder has: what a Loader gives is the folder's."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import DataError

__all__ = ["ADVICE", "Listing"]


class Listing:
    """Paths and labels of an ImageFolder, read when they are compared. Pickled it is their digest alone."""

    def __init__(self, folder: Any, root: str) -> None:
        self._folder = folder
        self._root = os.path.join(root, "")
        """The folder of the class folders."""
        self._digest = b""

    def __getstate__(self) -> bytes:
        if self._folder is None:
            return self._digest
        return _digest_listing(self._encode_keys(), [label for _, label in self._folder.samples])

    def __setstate__(self, digest: bytes) -> None:
        self._folder, self._root, self._digest = None, "", digest

    def compare_listing(self, name: str, keys: bytes, counts: list[int]) -> None:
        """Raises DataError that names the first difference from a folder's listing (docs/agent.md)."""
        labels = np.repeat(np.arange(len(counts)), counts).tolist()
        if self._folder is None:
            if self._digest != _digest_listing(keys, labels):
                raise DataError(f"{name}: the ImageFolder has other samples, labels or order. {ADVICE}")
            return
        mine = [label for _, label in self._folder.samples]
        if mine == labels and self._encode_keys() == keys:
            return
        for at, (sample, found) in enumerate(zip(self._list_pairs(), zip(keys.split(b"\0"), labels))):
            if sample != found:
                here, there = _show_sample(sample), _show_sample(found)
                raise DataError(f"{name}: sample {at} of the ImageFolder is {here}, of its folder {there}. {ADVICE}")

    def _encode_keys(self) -> bytes:
        """Paths below the root, each with a zero byte behind it; one that is elsewhere as it stands."""
        paths = "\0".join(os.fspath(path) for path, _ in self._folder.samples)
        below = f"\0{paths}\0".replace("\0" + self._root, "\0")
        return os.fsencode(below[1:])

    def _list_pairs(self) -> Iterator[tuple[bytes, Any]]:
        """Each sample, however its path is spelled."""
        root, there = self._root, os.path.abspath(self._root)
        for path, label in self._folder.samples:
            plain = path.startswith(root)
            yield os.fsencode(path[len(root) :] if plain else os.path.relpath(os.path.abspath(path), there)), label


ADVICE = (
    "Batches have the folder's samples, labels and order, and what is edited in the object is not heard: pass it as it "
    "was made, change labels in batch_transform=fn(batch, rng), and choose samples or their order by "
    "torch.utils.data.Subset(folder, indices) or sampler="
)


def _digest_listing(keys: bytes, labels: list[Any]) -> bytes:
    digest = hashlib.sha256(keys)
    digest.update(",".join(map(str, labels)).encode())
    return digest.digest()


def _show_sample(sample: tuple[bytes, Any]) -> str:
    return f"{os.fsdecode(sample[0])} with label {sample[1]!r}"
