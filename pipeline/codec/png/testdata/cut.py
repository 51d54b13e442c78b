"""Small PNG files, and whether Pillow takes them when bytes are missing at the end of their data. Needs Pillow and numpy.

    python3 pipeline/codec/png/testdata/cut.py > pipeline/codec/png/testdata/cut.txt

A line is: the file in base64, then, for 0 to 27 missing bytes, + where Pillow takes it and - where not: of a file that ends there, and of one whose
chunk is that much shorter, with its end behind it. Lines with one + or - alone are files that are damaged close to the end of their data.
"""

import base64
import io
import random
import struct
import warnings
import zlib

import numpy as np
import PIL
from PIL import Image, features

warnings.simplefilter("ignore")
MISSING = 28


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def lines(rng, width, height, depth):
    """Filtered rows, whose ends are flat, or repeat rows above, or neither."""
    flat, kind = rng.randrange(height + 1), rng.randrange(4)
    row = 1 + (width * depth + 7) // 8
    data = bytearray()
    for y in range(height):
        if y < flat or kind == 0:
            data += bytes([rng.randrange(5)]) + bytes(rng.randrange(1 << rng.randrange(1, 9)) for _ in range(row - 1))
        elif kind == 1:
            data += bytes(row)
        elif kind == 2:
            data += bytes([2]) + bytes(row - 1)
        else:
            data += data[-row:] if y else bytes(row)
    return bytes(data)


def file(rng):
    width, height = rng.choice([1, 2, 5, 16, 40, 64]), rng.choice([1, 2, 3, 8, 20, 40])
    depth, color, channels = rng.choice([(8, 0, 1), (8, 2, 3), (1, 0, 1), (8, 6, 4), (16, 0, 1)])
    interlaced = rng.random() < 0.2
    if interlaced:
        image = Image.fromarray(np.frombuffer(rng.randbytes(width * height), np.uint8).reshape(height, width))
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        depth, color, channels = 8, 0, 1
        grey = np.asarray(image) * (rng.random() < 0.5)
        data = b"".join(
            b"\0" + row.tobytes() for x, y, dx, dy in passes for row in grey[y::dy, x::dx] if row.size
        )
    else:
        data = lines(rng, width, height, depth * channels)
    level, strategy = rng.choice([0, 1, 6, 9]), rng.choice([zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_RLE, zlib.Z_HUFFMAN_ONLY])
    packer = zlib.compressobj(level, zlib.DEFLATED, rng.choice([9, 15]), 9, strategy)
    packed = b""
    while data:  # several blocks
        some = len(data) if rng.random() < 0.7 else rng.randrange(len(data)) + 1
        packed += packer.compress(data[:some])
        data = data[some:]
        if data:
            packed += packer.flush(rng.choice([zlib.Z_SYNC_FLUSH, zlib.Z_BLOCK if hasattr(zlib, "Z_BLOCK") else 5]))
    packed += packer.flush()
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced))
    parts = [packed]
    for _ in range(rng.choice([0, 0, 0, 1, 3])):  # several chunks, some of which end amid the last bytes
        cut = max(0, len(parts[-1]) - rng.randrange(16)) if rng.random() < 0.8 else rng.randrange(len(parts[-1]) + 1)
        parts[-1:] = [parts[-1][:cut], parts[-1][cut:]]
    return header, parts


def shortened(parts, missing):
    """Parts without the last bytes; one of which nothing is left is no part."""
    parts = list(parts)
    while missing and parts:
        n = min(missing, len(parts[-1]))
        parts[-1], missing = parts[-1][: len(parts[-1]) - n], missing - n
        if not parts[-1]:
            del parts[-1]
    return parts


def taken(data):
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.convert("RGB")
    except Exception:
        return "-"
    return "+"


def said(header, parts):
    signature = b"\x89PNG\r\n\x1a\n" + header
    whole = signature + b"".join(chunk(b"IDAT", part) for part in parts)
    ends = "".join(taken(whole[: len(whole) - 4 - missing]) for missing in range(MISSING))
    cuts = "".join(
        taken(signature + b"".join(chunk(b"IDAT", part) for part in shortened(parts, missing)) + chunk(b"IEND", b""))
        for missing in range(MISSING)
    )
    return base64.b64encode(whole).decode(), ends, cuts


def damaged(rng, header, parts):
    """A file with a bit or byte wrong, missing or too much close to the end of its data, cut into chunks elsewhere, some of them cut off."""
    data = bytearray(b"".join(parts))
    at = max(0, len(data) - 1 - int(rng.expovariate(1 / 8)))
    kind = rng.randrange(4)
    if kind == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[at] = rng.randrange(256)
    elif kind == 2:
        del data[at]
    else:
        data.insert(at, rng.randrange(256))
    if rng.random() < 0.3:
        del data[len(data) - rng.randrange(12) :]
    parts, rest = [], bytes(data)
    while rest:
        some = rng.choice([len(rest), len(rest), max(1, len(rest) - rng.randrange(12)), 1 + rng.randrange(len(rest))])
        parts.append(rest[:some])
        rest = rest[some:]
    made = b"\x89PNG\r\n\x1a\n" + header + b"".join(chunk(b"IDAT", part) for part in parts)
    made += chunk(b"IEND", b"") if rng.random() < 0.7 else b""
    return made[: len(made) - rng.randrange(20)] if rng.random() < 0.2 else made


if __name__ == "__main__":
    import sys

    count, seed = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (400, 1)
    rng = random.Random(seed)
    print(f"# Pillow {PIL.__version__}, zlib-ng {features.version('zlib_ng')}")
    made = 0
    while made < count:
        header, parts = file(rng)
        if sum(map(len, parts)) < (100 if count <= 400 else 4000):
            made += 1
            print(*said(header, parts))
            for _ in range(3):
                wrong = damaged(rng, header, parts)
                print(base64.b64encode(wrong).decode(), taken(wrong))
