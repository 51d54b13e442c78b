"""Batches as numpy views of shared memory, given to JAX by jax.device_put and jnp.array, as docs/device.md has it.

    python bench/jax/check.py FOLDER

It holds what JAX has got against copies that were made before, while slots are used again and again, and ends with 1
where they differ. JAX's own device is used, whatever it is: a CPU is enough.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import feedwater
import jax.numpy as jnp
import numpy as np

import jax

BATCHES = 20


def batches_of(folder: str) -> Any:
    """A Loader of arrays; torch is not imported."""
    transform = feedwater.transforms.RandomResizedCrop(64)
    return feedwater.Loader(folder, transform, batch_size=8, shuffle=True, memory=16 << 20)


def count_held(folder: str, put: Callable[[Any], Any]) -> int:
    """How many batches of those that JAX has got keep their slot; raises AssertionError where JAX has other values."""
    got: list[Any] = []
    wanted: list[Any] = []
    with batches_of(folder) as loader:
        for (images, labels), _ in zip(loader, range(BATCHES)):
            wanted.append((images.copy(), labels.copy()))
            got.append(jax.block_until_ready((put(images), put(labels))))
            del images, labels
        slots = loader._engine.feed.session.slots
        held = slots.count - slots.count_unleased()
    for ours, theirs in zip(got, wanted, strict=True):
        assert all(np.array_equal(np.asarray(a), b) for a, b in zip(ours, theirs, strict=True))
    return held


def main() -> None:
    """Checks and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="photographs in class folders")
    args = parser.parse_args()
    platform = jax.devices()[0].platform
    held = {
        name: count_held(args.folder, put) for name, put in (("jnp.array", jnp.array), ("device_put", jax.device_put))
    }
    print(f"jax {jax.__version__} on {platform}: {BATCHES} batches are equal; of their slots are held {held}")
    assert held["jnp.array"] <= 1, "a copy holds its batch"
    assert platform == "cpu" or held["device_put"] <= 1, "what was copied to a device holds its batch"


if __name__ == "__main__":
    main()
