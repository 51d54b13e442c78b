"""What Pillow makes of JPEG files, for comparison with this package. Needs Pillow and numpy.

    pillow.py table DIR             prints a line for each file of DIR: name, verdict, size, hash of the RGB bytes
    pillow.py compare DUMP FILE...  decodes files with the program DUMP (see ../jpegtest/jpegdump) and with Pillow

The table of this folder, pillow.txt, was made by

    FEEDWATER_JPEG_CORPUS=/tmp/corpus go test -run TestPillow ./pipeline/codec/jpeg
    python3 pipeline/codec/jpeg/testdata/pillow.py table /tmp/corpus > pipeline/codec/jpeg/testdata/pillow.txt
"""
import hashlib
import os
import random
import subprocess
import sys
import warnings

import numpy as np
import PIL
from PIL import Image, features

# More pixels than this are refused from the header, by Pillow and by the users of the package under test.
warnings.simplefilter("ignore")


def decode(path):
    """The picture as an array, or what Pillow says."""
    try:
        with Image.open(path) as image:
            if image.format not in ("JPEG", "MPO"):
                return None, "not identified as JPEG"
            return np.asarray(image.convert("RGB")), ""
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        return None, f"{type(error).__name__}: {error}".replace(path, "FILE")


def table(folder):
    versions = f"Pillow {PIL.__version__}, libjpeg-turbo {features.version('libjpeg_turbo')}"
    print(f"# {versions}: name, verdict, width, height, first half of the SHA-256 of the RGB bytes, or why not")
    for name in sorted(os.listdir(folder)):
        pixels, why = decode(os.path.join(folder, name))
        if pixels is None:
            print(f"{name}\trefused\t{why[:60]}")
        else:
            height, width = pixels.shape[:2]
            print(f"{name}\tok\t{width}\t{height}\t{hashlib.sha256(pixels.tobytes()).hexdigest()[:32]}")


class Dump:
    """The program under test at one level."""

    def __init__(self, program, level):
        self.process = subprocess.Popen([program, "-level", level], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, path, box=None):
        line = path + ("\t" + " ".join(map(str, box)) if box else "")
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        verdict, *rest = self.process.stdout.readline().split()
        if verdict != b"ok":
            return None, b" ".join(rest).decode()
        width, height = map(int, rest)
        return np.frombuffer(self.process.stdout.read(3 * width * height), np.uint8).reshape(height, width, 3), ""


def compare(program, paths):
    """The whole picture and three random regions of each file, at each level."""
    dumps = [Dump(program, level) for level in ("avx512", "avx2", "scalar")]
    rng = random.Random(3)
    equal = wrong = refused = 0
    for path in paths:
        want, why = decode(path)
        if want is None:
            for dump in dumps:
                got, _ = dump(path)
                refused += got is None
                if got is not None:
                    wrong += 1
                    print(path, "accepted, Pillow:", why)
            continue
        height, width = want.shape[:2]
        for dump in dumps:
            boxes = [None]
            for _ in range(3):
                left, top = rng.randrange(width), rng.randrange(height)
                boxes.append((left, top, rng.randrange(left, width) + 1, rng.randrange(top, height) + 1))
            for box in boxes:
                got, error = dump(path, box)
                left, top, right, bottom = box or (0, 0, width, height)
                if got is not None and np.array_equal(got, want[top:bottom, left:right]):
                    equal += 1
                else:
                    wrong += 1
                    print(path, box, error or "differs")
    print(f"{equal} equal, {refused} refused by both, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    if sys.argv[1:2] == ["table"] and len(sys.argv) == 3:
        table(sys.argv[2])
    elif sys.argv[1:2] == ["compare"] and len(sys.argv) > 3:
        sys.exit(compare(sys.argv[2], sys.argv[3:]) > 0)
    else:
        sys.exit(__doc__)
