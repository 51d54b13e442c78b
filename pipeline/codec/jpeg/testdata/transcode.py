"""Photographs in other kinds of JPEG and what Pillow makes of each. Needs Pillow alone.

    transcode.py FILE...

writes for each file and kind a line "KIND WIDTH HEIGHT BYTES", the JPEG file of so many bytes, and the RGB pixels.
"""
import io
import sys
import warnings

from PIL import Image, ImageFile

warnings.simplefilter("ignore")
ImageFile.MAXBLOCK = 1 << 24  # the buffer that a progressive file has to fit in


def encoded(image, mode, **options):
    out = io.BytesIO()
    image.convert(mode).save(out, "JPEG", **options)
    return out.getvalue()


def kinds(original, number):
    """The file as it is, and transcodings whose sampling and restart intervals vary from file to file."""
    image = Image.open(io.BytesIO(original))
    image.load()
    some = number % 3
    every = {"restart_marker_blocks": 1 + number % 60}
    yield "as-it-is", original
    yield "420", encoded(image, "RGB", quality=90, subsampling=2)
    yield "progressive", encoded(image, "RGB", quality=90, subsampling=some, progressive=True)
    yield "restarts", encoded(image, "RGB", quality=85, subsampling=some, **every)
    yield "progressive-restarts", encoded(image, "RGB", quality=70, subsampling=some, progressive=True, **every)
    yield "grey", encoded(image, "L", quality=85, progressive=number % 2 == 1)
    yield "cmyk", encoded(image, "CMYK", quality=85, progressive=number % 2 == 1)


for number, path in enumerate(sys.argv[1:]):
    with open(path, "rb") as file:
        data = file.read()
    for kind, jpeg in kinds(data, number):
        rgb = Image.open(io.BytesIO(jpeg)).convert("RGB")
        sys.stdout.buffer.write(f"{kind} {rgb.width} {rgb.height} {len(jpeg)}\n".encode() + jpeg + rgb.tobytes())
