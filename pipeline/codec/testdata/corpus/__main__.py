"""A corpus of PNG, WebP, GIF and BMP files, whole and damaged, and what Pillow makes of each. Needs Pillow and numpy.

    python3 corpus make DIR SEED   writes the files; another seed, other pictures and other damage
    python3 corpus table DIR       prints name, verdict, width, height and hash of the RGB bytes of each
    python3 corpus zip FILE SEED   writes files and table to an archive

pipeline/codec/testdata/corpus.zip was made by `python3 corpus zip corpus.zip 1`.
"""

import hashlib
import os
import random
import sys
import tempfile
import warnings
import zipfile

import bmps
import damage
import gifs
import PIL
import pngs
import turned
import webps
from pictures import Pictures
from PIL import Image, ImageOps, features

warnings.simplefilter("ignore")


def files(seed):
    """All files, with their names; those of the damaged ones begin with "damaged-"."""
    pictures = Pictures(random.Random(seed))
    whole = {}
    for module in (pngs, webps, gifs, bmps):
        whole.update(module.files(pictures))
    yield from whole.items()
    yield from turned.files(pictures).items()
    yield from damage.files(pictures, whole)


def verdict(path):
    """What torchvision's loader sees: an open file, converted to RGB, and turned if it is about that."""
    try:
        with open(path, "rb") as file:
            image = Image.open(file)
            if os.path.basename(path).startswith("turned-"):
                image = ImageOps.exif_transpose(image)
            image = image.convert("RGB")
    except Exception as error:  # Pillow refuses in many ways
        return f"refused\t{type(error).__name__}: {error}".replace(path, "FILE").replace("\n", " ")[:90]
    return f"ok\t{image.width}\t{image.height}\t{hashlib.sha256(image.tobytes()).hexdigest()[:32]}"


def table(folder):
    versions = f"Pillow {PIL.__version__}, libwebp {features.version('webp')}"
    yield f"# {versions}: name, verdict, width, height, half the SHA-256"
    for name in sorted(os.listdir(folder)):
        yield f"{name}\t{verdict(os.path.join(folder, name))}"


def make(folder, seed):
    for name, data in files(seed):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)


def archive(path, seed):
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out,
    ):
        make(folder, seed)
        add(out, "table.txt", "\n".join(table(folder)).encode() + b"\n")
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as file:
                add(out, name, file.read())


def add(out, name, data):
    """An entry without a date, so that the archive depends on the files alone."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    out.writestr(entry, data)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", folder, seed]:
            make(folder, int(seed))
        case ["table", folder]:
            print("\n".join(table(folder)))
        case ["zip", path, seed]:
            archive(path, int(seed))
        case _:
            sys.exit(__doc__)
