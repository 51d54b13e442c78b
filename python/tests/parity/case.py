"""One transform against torchvision's, through the whole product: files in, batches out, replay tells the draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from feedwater import Loader

BATCH = 20
SEED = 17
Picture = Image.Image
Draws = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A transform, and what torchvision's functions make of a picture with what was drawn for it."""

    name: str
    """Op and arguments, unique."""
    transform: Callable[[], Any]
    """Makes torchvision's own object."""
    expect: Callable[[Picture, Draws], Any]
    """A picture, or an array [height, width, 3] of uint8. What is drawn but not applied is its business."""
    dialect: str = "pil"
    most: int = 0
    """The largest difference that is right: 0, but for ops whose arithmetic is known to be another."""


@dataclass
class Result:
    """What comparing found."""

    images: int = 0
    draws: int = 0
    applied: int = 0
    values: int = 0
    differing: int = 0
    largest: int = 0
    first: str = ""
    """The first picture that differs by more than the case allows."""

    def add(self, case: Case, sample: Any, image: npt.NDArray[np.uint8], expected: npt.NDArray[np.uint8]) -> None:
        """Counts one picture."""
        self.draws += 1
        self.applied += any(draw["applied"] for draw in sample.draws)
        if image.shape != expected.shape:
            self.first = self.first or f"{sample.key} {sample.draws}: {image.shape}, not {expected.shape}"
            return
        distance = np.abs(image.astype(np.int16) - expected)
        self.values += distance.size
        self.differing += int(np.count_nonzero(distance))
        self.largest = max(self.largest, int(distance.max(initial=0)))
        if not self.first and distance.max(initial=0) > case.most:
            self.first = f"{sample.key} {sample.draws}: {np.count_nonzero(distance)} values, by up to {distance.max()}"


def compare(case: Case, photos: Path, folder: Path, images: int, epochs: int) -> Result:
    """Runs a case over that many photographs, drawn anew each epoch. folder is an empty one for links to them."""
    link(photos, folder, images)
    result = Result(images=images)
    for sample, image, picture in samples(case, folder, epochs):
        expected = np.asarray(case.expect(picture, sample.draws))
        result.add(case, sample, image, expected)
    return result


def link(photos: Path, folder: Path, images: int) -> None:
    """Puts links to some photographs of all classes into folder."""
    if folder.exists():
        return
    every = sorted(path for path in photos.rglob("*.*") if path.is_file())
    for path in every[:: max(len(every) // images, 1)][:images]:
        target = folder / path.relative_to(photos)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path.resolve())


def samples(case: Case, folder: Path, epochs: int) -> Iterator[tuple[Any, npt.NDArray[np.uint8], Picture]]:
    """Every sample: what replay says of it, what the batch holds, and its picture by Pillow."""
    pictures: dict[str, Picture] = {}
    with Loader(folder, case.transform(), batch_size=BATCH, seed=SEED, drop_last=False) as loader:
        for epoch in range(epochs):
            loader.set_epoch(epoch)
            for batch, _ in loader:
                for sample, image in zip(loader.replay_batch(loader.last.position), batch, strict=True):
                    if sample.key not in pictures:
                        pictures[sample.key] = Image.open(folder / sample.key).convert("RGB")
                    yield sample, array(image), pictures[sample.key]


def array(image: Any) -> npt.NDArray[np.uint8]:
    """A picture of a batch as [height, width, 3]."""
    if image.ndim == 4:  # crops: below each other
        image = image.permute(1, 0, 2, 3).flatten(1, 2)
    if isinstance(image, np.ndarray):
        return image
    pixels: npt.NDArray[np.uint8] = image.permute(1, 2, 0).numpy() if image.shape[0] == 3 else image.numpy()
    return pixels
