"""A transform of albumentations as the function of python=. Nothing here imports it: who passes one has done so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["AlbumentationsFunction", "adapt_function"]


class AlbumentationsFunction:
    """Calls it on the picture of each sample, seeded for the sample alone."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform
        self.__qualname__ = f"albumentations.{type(transform).__name__}"
        """What messages call it."""

    def __call__(self, sample: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        image, masks = sample["image"], sample.get("mask")
        if not isinstance(image, list):
            return self._transform_picture(image, masks, rng)
        masks = [None] * len(image) if masks is None else masks
        made = [self._transform_picture(view, mask, rng) for view, mask in zip(image, masks)]
        return {name: [view[name] for view in made] for name in made[0]}

    def _transform_picture(self, image: Any, mask: Any, rng: np.random.Generator) -> dict[str, Any]:
        """One picture, and its mask if there is one, by numbers of their own."""
        if not isinstance(image, np.ndarray):
            raise TypeError("albumentations works on arrays: leave ToImage and what follows out of transform=")
        self.transform.set_random_seed(int(rng.integers(1 << 31)))
        given = {"image": image} if mask is None else {"image": image, "mask": mask}
        made = self.transform(**given)
        return {name: made[name] for name in given}


def adapt_function(function: Any) -> Any:
    """The function that a transform of albumentations stands for; anything else as it is.

    Raises TypeError for a version that cannot be seeded, which would draw otherwise in each process.
    """
    bases = [base for base in type(function).__mro__ if base.__module__.startswith("albumentations.core.")]
    if not bases or isinstance(function, type):
        return function
    if not hasattr(function, "set_random_seed"):
        raise TypeError("python=: this albumentations has no set_random_seed, by which samples are seeded: use 2.0")
    return AlbumentationsFunction(function)
