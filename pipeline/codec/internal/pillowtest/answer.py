"""Reads files, each behind a line with its size, and answers each with a line: "ok WIDTH HEIGHT" and the RGB bytes, "refused WHY", or
"large" if it has more pixels than the first argument says. The other arguments are the formats that are not refused.
"""

import io
import sys
import warnings

from PIL import Image

warnings.simplefilter("ignore")


def answer(file, most, formats):
    try:
        with Image.open(file) as image:
            if image.width * image.height > most:
                return b"large\n"
            if image.format not in formats:
                return f"refused of the format {image.format}\n".encode()
            return f"ok {image.width} {image.height}\n".encode() + image.convert("RGB").tobytes()
    except Image.DecompressionBombError:
        return b"large\n"
    except Exception as error:  # Pillow refuses in many ways
        return f"refused {type(error).__name__}: {error}".replace("\n", " ").encode() + b"\n"


def main(most, *formats):
    files, out = sys.stdin.buffer, sys.stdout.buffer
    while line := files.readline():
        file = io.BytesIO(files.read(int(line)))
        out.write(answer(file, int(most), formats))
        out.flush()


main(*sys.argv[1:])
