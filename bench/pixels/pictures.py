"""The data sets of bench/pixels/table.py: some of a folder's photographs, and the same in another encoding."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image


def prepare(folder: str, most: int, photographs: Path, subsampled: Path) -> int:
    """Copies at most so many JPEG files that all contestants can read, and saves them anew as 4:2:0 of quality 90.

    That many files are spread over the whole folder. Those that are broken, CMYK or no JPEG are left out. Both copies
    are in the page cache then. Returns how many there are.
    """
    files = sorted(jpegs(folder))
    count = 0
    for file in files[:: max(1, len(files) // most)][:most]:
        name = file.relative_to(folder)
        if len(name.parts) < 2:
            raise SystemExit(f"{folder} must hold a folder for each class")
        try:
            with Image.open(file) as image:
                if image.format != "JPEG" or image.mode not in ("RGB", "L"):
                    continue
                pixels = image.convert("RGB")
        except OSError:
            continue
        for target in (photographs / name, subsampled / name):
            target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, photographs / name)
        pixels.save(subsampled / name, "JPEG", quality=90, subsampling="4:2:0")
        count += 1
    if not count:
        raise SystemExit(f"{folder} has no JPEG files of photographs in folders of classes")
    return count


ENCODINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "PNG": (".png", {}),
    "PNG 1920×1080": (".png", {"size": (1920, 1080)}),
    "WebP, quality 85": (".webp", {"quality": 85}),
    "WebP, lossless": (".webp", {"lossless": True}),
    "progressive JPEG, quality 90": (".jpg", {"quality": 90, "progressive": True}),
}
"""Other encodings that the photographs are saved in: by name the suffix of the files, and what is given to Pillow."""


SMALL_AND_LARGE: dict[str, tuple[str, dict[str, Any]]] = {
    "12 megapixels": (".jpg", {"quality": 90, "size": (4000, 3000)}),
    "JPEG 64×64": (".jpg", {"quality": 90, "size": (64, 64)}),
    "PNG 32×32": (".png", {"size": (32, 32)}),
}
"""Other sizes, as ENCODINGS."""


def encode(photographs: Path, folder: Path, encoding: str, most: int) -> int:
    """Saves at most so many of the photographs, spread over all, as ENCODINGS or SMALL_AND_LARGE say.

    Returns how many there are.
    """
    suffix, options = (ENCODINGS | SMALL_AND_LARGE)[encoding]
    files = sorted(jpegs(str(photographs)))
    chosen = files[:: max(1, len(files) // most)][:most]
    for file in chosen:
        target = (folder / file.relative_to(photographs)).with_suffix(suffix)
        target.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(file) as image:
            pixels = image.convert("RGB")
        if "size" in options:
            pixels = pixels.resize(options["size"])
        pixels.save(target, **{name: value for name, value in options.items() if name != "size"})
    return len(chosen)


def jpegs(folder: str) -> Iterator[Path]:
    """The files that are JPEG by their names."""
    for place, _, names in os.walk(folder, followlinks=True):
        yield from (Path(place) / name for name in names if name.lower().endswith((".jpg", ".jpeg")))


def size(folder: Path) -> int:
    """Bytes of all files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
