"""What Pillow's ImageOps.exif_transpose makes of files. Needs Pillow and numpy.

The table of this folder, pillow.txt, was made by

    FEEDWATER_EXIF_CORPUS=/tmp/corpus go test -run TestPillow ./pipeline/codec/exif
    python3 pipeline/codec/exif/testdata/pillow.py /tmp/corpus > pipeline/codec/exif/testdata/pillow.txt
"""

import os
import sys
import warnings

import numpy as np
import PIL
from PIL import ExifTags, Image, ImageOps

warnings.simplefilter("ignore")
TURNS = [
    lambda a: a,
    lambda a: a[:, ::-1],
    lambda a: a[::-1, ::-1],
    lambda a: a[::-1],
    lambda a: a.swapaxes(0, 1),
    lambda a: a[::-1].swapaxes(0, 1),
    lambda a: a[::-1, ::-1].swapaxes(0, 1),
    lambda a: a[:, ::-1].swapaxes(0, 1),
]


def short(error):
    return f"{type(error).__name__}: {error}".replace("\n", " ").replace("\t", " ")[:60]


def said(path):
    """The orientation by which a picture is turned; behind it, whether its EXIF data cannot be written anew."""
    try:
        with Image.open(path) as image:
            stored = np.asarray(image.convert("RGB"))
            tagged = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception as error:
        return f"refused\t{short(error)}"
    try:
        with Image.open(path) as image:
            turned = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except Exception as error:
        return f"{int(tagged)}\tunwritable\t{short(error)}"
    found = [i + 1 for i, turn in enumerate(TURNS) if np.array_equal(turn(stored), turned)]
    assert len(found) == 1, path
    return str(found[0])


print(f"# Pillow {PIL.__version__}: name, orientation, or refused and why")
for name in sorted(os.listdir(sys.argv[1])):
    print(f"{name}\t{said(os.path.join(sys.argv[1], name))}")
