"""BMP: a writer of our own for every header, depth, mask, direction and run-length code, and Pillow's files."""

import struct

from pictures import le, saved

M565, M555 = le("III", 0xF800, 0x7E0, 0x1F), le("III", 0x7C00, 0x3E0, 0x1F)
M888, BGR = le("III", 0xFF0000, 0xFF00, 0xFF), le("III", 0xFF, 0xFF00, 0xFF0000)


def stride(w, bits):
    return -(-w * bits // 32) * 4


def bmp(w, h, bits, data, header=40, way=0, palette=b"", masks=b"", top=False, colors=0, offset=None):
    if header == 12:
        head = le("IHHHH", 12, w, h, 1, bits)
    else:
        head = struct.pack("<IiiHHIIiiII", header, w, -h if top else h, 1, bits, way, len(data), 2835, 2835, colors, 0)
        head += (masks + bytes(header - 40))[: header - 40] if header > 40 else masks
    at = 14 + len(head) + len(palette)
    return b"BM" + le("IHHI", at + len(data), 0, 0, at if offset is None else offset) + head + palette + data


def runs(pictures, w, h, four, jumps=False):
    rng, out = pictures.rng, bytearray()
    for _ in range(h):
        x = 0
        while x < w:
            n = min(w - x, rng.randrange(1, 9))
            if n < 3 or rng.random() < 0.5:
                out += bytes([n, rng.randrange(256)])
            else:
                size = (n + 1) // 2 if four else n
                out += bytes([0, n]) + rng.randbytes(size) + b"\0" * (size & 1)
            x += n
            if jumps and w - x > 3 and rng.random() < 0.3:
                out += b"\0\2\2\0"
                x += 2
        out += b"\0\0"
    return bytes(out + b"\0\1")


def files(pictures):
    out = {}
    palette = b"".join(pictures.bytes(3) + b"\0" for _ in range(256))
    for w, h in ((1, 1), (5, 7), (17, 6), (32, 9)):
        size = f"{w}x{h}"
        for bits in (1, 4, 8, 16, 24, 32):
            data = pictures.bytes(stride(w, bits) * h)
            colors = palette[: 4 << bits] if bits <= 8 else b""
            for top in (False, True):
                out[f"bmp-{bits}-{size}{'-top' if top else ''}"] = bmp(w, h, bits, data, palette=colors, top=top)
            if bits not in (16, 32):
                short = b"".join(colors[i : i + 3] for i in range(0, len(colors), 4))
                out[f"bmp-os2-{bits}-{size}"] = bmp(w, h, bits, data, header=12, palette=short)
        for name, masks, bits in (("565", M565, 16), ("555", M555, 16), ("888", M888, 32), ("24", M888, 24)):
            out[f"bmp-mask-{name}-{size}"] = bmp(w, h, bits, pictures.bytes(stride(w, bits) * h), way=3, masks=masks)
        for header in (52, 56, 64, 108, 124):
            for alpha in (0, 0xFF000000):
                data, masks = pictures.bytes(4 * w * h), M888 + le("I", alpha)
                out[f"bmp-v{header}-{alpha:x}-{size}"] = bmp(w, h, 32, data, header, 3, masks=masks)
                out[f"bmp-v{header}-plain-{alpha:x}-{size}"] = bmp(w, h, 32, data, header, 0, masks=masks)
    for w, h in ((5, 7), (17, 6), (40, 12)):
        out[f"bmp-rle8-{w}x{h}"] = bmp(w, h, 8, runs(pictures, w, h, False), way=1, palette=palette)
        out[f"bmp-rle8-jumps-{w}x{h}"] = bmp(w, h, 8, runs(pictures, w, h, False, True), way=1, palette=palette)
        out[f"bmp-rle4-{w}x{h}"] = bmp(w, h, 4, runs(pictures, w, h, True), way=2, palette=palette[:64])
        out[f"bmp-rle4-top-{w}x{h}"] = bmp(w, h, 4, runs(pictures, w, h, True), way=2, palette=palette[:64], top=True)
    out.update(odd(pictures, palette))
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        out[f"bmp-pillow-{mode}"] = saved(pictures.photo(40, 30).convert(mode), "BMP")
    return out


def odd(pictures, palette):
    greys = b"".join(bytes([i, i, i, 0]) for i in range(256))
    two = b"\0\0\0\0\xff\xff\xff\0"
    data = pictures.bytes(400)
    out = {
        "bmp-greys": bmp(17, 6, 8, data, palette=greys),
        "bmp-greys4": bmp(17, 6, 4, data, palette=greys[:64]),
        "bmp-greys4-narrow": bmp(3, 6, 4, data, palette=greys[:64]),
        "bmp-rle8-greys": bmp(17, 6, 8, runs(pictures, 17, 6, False), way=1, palette=greys),
        "bmp-rle4-greys": bmp(17, 6, 4, runs(pictures, 17, 6, True), way=2, palette=greys[:64]),
        "bmp-black-white": bmp(17, 6, 1, data, palette=two),
        "bmp-white-black": bmp(17, 6, 1, data, palette=two[4:] + two[:4]),
        "bmp-black-white8": bmp(17, 6, 8, data, palette=two, colors=2),
        "bmp-rle8-black-white": bmp(17, 6, 8, runs(pictures, 17, 6, False), way=1, palette=two, colors=2),
        "bmp-one-color": bmp(17, 6, 8, data, palette=greys[:4], colors=1),
        "bmp-colors10": bmp(17, 6, 8, bytes(v % 10 for v in data), palette=palette[:40], colors=10),
        "bmp-colors10-beyond": bmp(17, 6, 8, data, palette=palette[:40], colors=10),
        "bmp-colors300": bmp(17, 6, 8, data, palette=palette + palette[:176], colors=300),
        "bmp-colors70000": bmp(17, 6, 8, data, palette=palette, colors=70000),
        "bmp-steps": bmp(17, 6, 4, data, palette=b"".join(bytes([i * 17] * 3 + [0]) for i in range(16))),
        "bmp-trailing": bmp(5, 7, 24, pictures.bytes(16 * 7)) + b"xx",
        "bmp-offset0": bmp(5, 7, 24, data, offset=0),
        "bmp-offset0-8": bmp(5, 7, 8, data, palette=palette, offset=0),
        "bmp-offset-forgot": bmp(5, 7, 8, data, palette=palette, offset=54),
        "bmp-offset-beyond": bmp(5, 7, 8, data, palette=palette, offset=5400),
        "bmp-2bits": bmp(17, 6, 2, data, palette=palette[:16]),
        "bmp-runs24": bmp(17, 6, 24, data, way=1),
        "bmp-jpeg": bmp(17, 6, 24, data, way=4),
        "bmp-bgr": bmp(5, 7, 32, data, way=3, masks=BGR),
        "bmp-mask8": bmp(5, 7, 8, data, way=3, masks=M888, palette=palette),
    }
    shapes = [(0xFF000000, 0xFF0000, 0xFF00, 0), (0xFF000000, 0xFF00, 0xFF, 0), (0xFF000000, 0xFF0000, 0xFF00, 0xFF)]
    shapes += [(0xFF, 0xFF00, 0xFF0000, 0xFF000000), (0xFF000000, 0xFF00, 0xFF, 0xFF0000), (0, 0, 0, 0), (1, 2, 3, 4)]
    for i, masks in enumerate(shapes):
        out[f"bmp-shape{i}"] = bmp(5, 7, 32, data, 108, 3, masks=le("IIII", *masks))
    return out
