"""PNG: every colour type, depth, interlacing and filter by a writer of our own; Pillow's files; odd chunks."""

import struct
import zlib

from pictures import saved
from PIL import Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(name, data, crc=None):
    return (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data) if crc is None else crc)
    )


def ihdr(w=20, h=10, depth=8, color=2, compression=0, filters=0, interlace=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, compression, filters, interlace))


END = chunk(b"IEND", b"")


def filtered(rows, size, kinds):
    """Rows with filters; size is the bytes of a pixel."""
    out, above = bytearray(), None
    for i, row in enumerate(rows):
        kind, above = kinds[i % len(kinds)], above or bytes(len(row))
        out.append(kind)
        for j, value in enumerate(row):
            left, up, corner = (row[j - size] if j >= size else 0), above[j], (above[j - size] if j >= size else 0)
            guess = left + up - corner
            near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            out.append((value - (0, left, up, (left + up) // 2, near)[kind]) & 255)
        above = row
    return bytes(out)


def scanned(pictures, w, h, color, depth, interlace=0, kinds=(0, 1, 2, 3, 4)):
    """Random pixels, uncompressed."""
    bits = CHANNELS[color] * depth
    raw = b""
    for x, y, dx, dy in PASSES if interlace else [(0, 0, 1, 1)]:
        columns, rows = len(range(x, w, dx)), len(range(y, h, dy))
        if not columns:
            continue
        lines = []
        for _ in range(rows):
            line = bytearray(pictures.bytes((columns * bits + 7) // 8))
            if depth == 16:  # samples below 256 too
                line[::2] = bytes(v * (v > 200) for v in line[::2])
            lines.append(bytes(line))
        raw += filtered(lines, max(1, bits // 8), kinds)
    return raw


def png(pictures, w, h, color, depth, interlace=0, before=b"", after=b"", kinds=(0, 1, 2, 3, 4), parts=1, level=6):
    data = zlib.compress(scanned(pictures, w, h, color, depth, interlace, kinds), level)
    n = -(-len(data) // parts)
    idat = b"".join(chunk(b"IDAT", data[i : i + n]) for i in range(0, len(data), n))
    return SIGNATURE + ihdr(w, h, depth, color, interlace=interlace) + before + idat + after + END


def files(pictures):
    out = {}
    palette = pictures.bytes(768)
    for color, depths in DEPTHS.items():
        for depth in depths:
            plte = chunk(b"PLTE", palette[: 3 << depth]) if color == 3 else b""
            most = (1 << depth) - 1
            for interlace in (0, 1):
                for w, h in ((1, 1), (13, 11), (33, 18)):
                    name = f"png-c{color}b{depth}i{interlace}-{w}x{h}"
                    out[name] = png(pictures, w, h, color, depth, interlace, plte, parts=1 + w % 3)
            gamma = chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(
                b"sBIT", bytes([5] * (3 if color == 3 else CHANNELS[color]))
            )
            out[f"png-gamma-c{color}b{depth}"] = png(pictures, 17, 9, color, depth, 0, gamma + plte)
            for name, value in transparencies(color, most).items():
                out[f"png-trns-{name}-c{color}b{depth}"] = png(
                    pictures, 17, 9, color, depth, 1, plte + chunk(b"tRNS", value)
                )
    for kind in range(5):
        out[f"png-filter{kind}"] = png(pictures, 20, 20, 6, 8, 0, kinds=(kind,))
        out[f"png-filter{kind}-16"] = png(pictures, 20, 20, 2, 16, 1, kinds=(kind,))
    for level in (0, 1, 9):
        out[f"png-level{level}"] = png(pictures, 50, 40, 2, 8, level=level, parts=7)
    out.update(odd(pictures, palette))
    out.update(written(pictures))
    return out


def transparencies(color, most):
    match color:
        case 0:
            return {"mid": struct.pack(">H", most // 2), "most": b"\xff\xff"}
        case 2:
            return {"some": struct.pack(">HHH", 5, most, 0), "most": b"\xff\xff\x00\x01\x12\x34"}
        case 3:
            return {"one": bytes([255, 0]), "several": bytes([0, 128][: most + 1]), "all": bytes([7] * (most + 1))}
    return {}


def odd(pictures, palette):
    def indexed(depth, *chunks):
        return png(pictures, 17, 9, 3, depth, 0, b"".join(chunks))

    def plain(before=b"", after=b"", **options):
        return png(pictures, 17, 9, 2, 8, 0, before, after, **options)

    text = (
        chunk(b"tEXt", b"k\0v") + chunk(b"zTXt", b"k\0\0" + zlib.compress(b"v" * 99)) + chunk(b"iTXt", b"k\0\0\0\0\0v")
    )
    return {
        "png-short-palette": indexed(8, chunk(b"PLTE", palette[:30])),
        "png-short-palette4": indexed(4, chunk(b"PLTE", palette[:9])),
        "png-no-palette": indexed(8),
        "png-long-palette": indexed(4, chunk(b"PLTE", palette)),
        "png-two-palettes": indexed(4, chunk(b"PLTE", palette[:48]), chunk(b"PLTE", palette[48:96])),
        "png-trns-long": indexed(4, chunk(b"PLTE", palette[:48]), chunk(b"tRNS", bytes(range(40)))),
        "png-trns-first": indexed(4, chunk(b"tRNS", b"\0"), chunk(b"PLTE", palette[:48])),
        "png-trns-rgba": png(pictures, 17, 9, 6, 8, 0, chunk(b"tRNS", b"\0\1\0\2\0\3")),
        "png-rgb-palette": plain(chunk(b"PLTE", palette)),
        "png-unknown": plain(chunk(b"abCd", b"123") + chunk(b"ABCD", b"123")),
        "png-text": plain(text, text),
        "png-text-after": plain(after=text),
        "png-bytewise": plain(parts=400),
        "png-trailing": plain() + b"garbage" * 9,
        "png-huge-crc-run": plain(chunk(b"abCd", bytes(70000))),
    }


def written(pictures):
    """Pillow's own, and animations."""
    out = {}
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        image = pictures.photo(40, 30)
        if mode == "I;16":
            image = Image.fromarray(pictures.np.integers(0, 1024, (30, 40), "uint16"))
        else:
            image = image.convert(mode)
        out[f"png-pillow-{mode.replace(';', '')}"] = saved(image, "PNG")
    out["png-pillow-big"] = saved(pictures.photo(120, 90), "PNG", optimize=True)
    out["png-pillow-icc"] = saved(pictures.photo(20, 20), "PNG", icc_profile=b"abc" * 99)
    frames = {"save_all": True, "append_images": [pictures.photo(20, 20), pictures.photo(20, 20)]}
    out["png-animated"] = saved(pictures.photo(20, 20), "PNG", **frames)
    out["png-animated-default"] = saved(pictures.photo(20, 20), "PNG", default_image=True, **frames)
    exif = Image.Exif()
    for turn in range(1, 9):
        exif[0x112] = turn
        out[f"png-exif{turn}"] = saved(pictures.photo(20, 30), "PNG", exif=exif)
    part = chunk(b"acTL", struct.pack(">II", 1, 0)) + chunk(
        b"fcTL", struct.pack(">IIIIIHHBB", 0, 20, 10, 5, 7, 1, 1, 0, 0)
    )
    for color in (2, 3):
        plte = chunk(b"PLTE", pictures.bytes(768)) if color == 3 else b""
        data = chunk(b"IDAT", zlib.compress(scanned(pictures, 20, 10, color, 8)))
        out[f"png-animated-part-c{color}"] = SIGNATURE + ihdr(40, 30, 8, color) + plte + part + data + END
    return out
