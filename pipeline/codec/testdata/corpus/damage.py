"""Damaged files: what disks, networks and writers do to files, and what only somebody who knows the format does."""

import struct
import zlib

import gifs
from pictures import le
from pngs import END, SIGNATURE, chunk, ihdr, scanned
from webps import bitstream, canvas, riff

# Files that any damage is done to.
BASES = """png-c2b8i0-33x18 png-c6b8i1-13x11 png-c3b4i0-33x18 png-text png-text-after png-animated
webp-lossy-33x31 webp-lossless-33x31 webp-glass-33x31 webp-animated-lossy-glass webp-animated-parts0 webp-meta
gif-16-0-None gif-256-1-0 gif-part-local gif-comment gif-animated-1 gif-87a
bmp-8-17x6 bmp-24-17x6-top bmp-mask-565-17x6 bmp-rle8-17x6 bmp-rle4-17x6 bmp-rle8-jumps-17x6 bmp-os2-4-17x6""".split()


def files(pictures, whole):
    for name in BASES:
        for i, (what, data) in enumerate(anything(pictures.rng, whole[name])):
            yield f"damaged-{name}-{i}-{what}", data
    made = {
        **png(pictures),
        **far_checksums(),
        **webp(whole),
        **alphas(pictures),
        **gif(pictures),
        **far_ends(pictures),
        **bmp(whole),
    }
    for name, data in made.items():
        yield f"damaged-{name}", data


def anything(rng, data):
    n = len(data)
    for k in (1, 2, 4, 5, 9, 13, 20, n // 4, n // 2, 3 * n // 4, n - 30, n - 12):
        if 0 < k < n:
            yield f"cut{k}", data[:-k]
    for flips in (1, 1, 1, 1, 1, 1, 2, 5):
        out = bytearray(data)
        for _ in range(flips):
            out[rng.randrange(8, n)] ^= 1 << rng.randrange(8)
        yield "flip", bytes(out)
    at, size = rng.randrange(12, n), rng.randrange(1, 20)
    yield "drop", data[:at] + data[at + size :]
    yield "insert", data[:at] + rng.randbytes(size) + data[at:]
    yield "noise", data[:at] + rng.randbytes(min(size, n - at)) + data[at + size :]
    yield "zeros", data[: n // 2] + bytes(n - n // 2)
    yield "ones", data[: 2 * n // 3] + b"\xff" * (n - 2 * n // 3)
    yield "twice", data[:at] + data[at // 2 :]
    yield "lead", b"\0" + data


def png(pictures):
    raw = scanned(pictures, 20, 10, 2, 8, kinds=(0,))
    z = zlib.compress(raw)
    idat = chunk(b"IDAT", z)
    indexed = chunk(b"IDAT", zlib.compress(scanned(pictures, 20, 10, 3, 8, kinds=(0,))))
    palette = pictures.bytes(900)
    out = {}

    def file(name, *chunks):
        out["png-" + name] = SIGNATURE + b"".join(chunks)

    def data(name, payload, *more):
        file(name, ihdr(), chunk(b"IDAT", payload), *more, END)

    def before(name, *chunks):
        file(name, ihdr(), *chunks, idat, END)

    def after(name, *chunks):
        file(name, ihdr(), idat, *chunks, END)

    file("no-end", ihdr(), idat)
    file("end-checksum", ihdr(), idat, chunk(b"IEND", b"", 1))
    file("header-checksum", chunk(b"IHDR", ihdr()[8:21], 1), idat, END)
    file("data-checksum", ihdr(), chunk(b"IDAT", z, 1), END)
    file("palette-checksum", ihdr(color=3), chunk(b"PLTE", palette[:768], 5), indexed, END)
    before("text-checksum", chunk(b"tEXt", b"a\0b", 1))
    after("text-checksum-after", chunk(b"tEXt", b"a\0b", 1))
    data("stream-cut", z[:-50])
    for k in range(1, 7):
        data(f"adler-cut{k}", z[:-k])
    data("adler-wrong", z[:-1] + bytes([z[-1] ^ 1]))
    data("adler-wrong-split", z[:-6], chunk(b"IDAT", z[-6:-1] + bytes([z[-1] ^ 1])))
    data("adler-wrong-apart", z[:-4], chunk(b"IDAT", z[-4:-1] + bytes([z[-1] ^ 1])))
    data("adler-half-apart", z[:-2], chunk(b"IDAT", z[-2:-1] + bytes([z[-1] ^ 1])))
    data("long", zlib.compress(raw + bytes(300)))
    data("long-broken", zlib.compress(raw + bytes(300))[:-8] + b"\xff" * 8)
    data("trailing", z + b"junk")
    data("rows4", zlib.compress(raw[:244]))
    data("rows4-cut", zlib.compress(raw[:244])[:-4])
    data("rows4-wrong", zlib.compress(raw[:244])[:-1] + b"\0")
    data("rows4-more", zlib.compress(raw[:244]), chunk(b"IDAT", b""))
    data("rows5-part", zlib.compress(raw[:300]))
    data("rows0", zlib.compress(b""))
    data("zlib-method", b"\0" + z[1:])
    data("zlib-check", z[:1] + bytes([z[1] ^ 1]) + z[2:])
    data("zlib-window", b"\x88\x1c" + z[2:])
    data("zlib-bits", z[:40] + bytes([z[40] ^ 255]) + z[41:])
    data("zlib-only", z[:2])
    data("filter5", zlib.compress(b"\5" + raw[1:]))
    data("filter255-last", zlib.compress(raw[:-61] + b"\xff" + raw[-60:]))
    data("split", z[:30], chunk(b"IDAT", z[30:]))
    data("split-ddat", z[:30], chunk(b"DDAT", z[30:]))
    data("split-fdat", z[:30], chunk(b"fdAT", bytes(4) + z[30:]))
    data("split-text", z[:30], chunk(b"tEXt", b"a\0b"), chunk(b"IDAT", z[30:]))
    data("split-checksum", z[:30], chunk(b"IDAT", z[30:], 9))
    data("empty-first", b"", idat)
    file("no-data", ihdr(), END)
    file("no-header", idat, END)
    file("header-late", chunk(b"tEXt", b"a\0b"), ihdr(), idat, END)
    file("header-only", ihdr())
    file("header-14", chunk(b"IHDR", ihdr()[8:21] + b"x"), idat, END)
    file("header-12", chunk(b"IHDR", ihdr()[8:20]), idat, END)
    file("header-twice", ihdr(), ihdr(), idat, END)
    file("header-other", ihdr(5, 5, 8, 6), ihdr(), idat, END)
    file("header-unknown-then", ihdr(color=5), ihdr(), idat, END)
    file("header-then-unknown", ihdr(), ihdr(color=5), idat, END)
    file("palette-other-color", ihdr(color=3), chunk(b"PLTE", palette[:9]), ihdr(), idat, END)
    for name, options in {
        "width0": {"w": 0},
        "height0": {"h": 0},
        "huge": {"w": 1 << 30, "h": 1 << 30},
        "bomb": {"w": 20000, "h": 20000},
        "large": {"w": 10000, "h": 10000},
        "taller": {"h": 11},
        "lower": {"h": 9},
        "depth3": {"depth": 3},
        "color5": {"color": 5},
        "rgb4": {"depth": 4},
        "interlace1": {"interlace": 1},
        "interlace2": {"interlace": 2},
        "compression1": {"compression": 1},
        "filter-method1": {"filters": 1},
    }.items():
        file(name, ihdr(**options), idat, END)
    before("unknown-critical", chunk(b"ABCD", b"x"))
    before("bad-name", chunk(b"a\0cd", b"x"))
    after("bad-name-after", chunk(b"a\0cd", b"x"))
    before("huge-chunk", struct.pack(">I", 1 << 31) + b"tEXt")
    after("huge-chunk-after", struct.pack(">I", 1 << 31) + b"tEXt")
    after("cut-chunk-after", chunk(b"tEXt", bytes(99))[:20])
    after("cut-unknown-after", chunk(b"abCd", bytes(99))[:20])
    for size in (0, 1, 2, 3, 766, 767, 769, 770, 771, 900):
        file(f"palette{size}", ihdr(color=3), chunk(b"PLTE", palette[:size]), indexed, END)
    file("palette-first", chunk(b"PLTE", palette[:768]), ihdr(color=3), indexed, END)
    file("palette-after", ihdr(color=3), indexed, chunk(b"PLTE", palette[:768]), END)
    file("palette-missing-trns", ihdr(color=3), chunk(b"tRNS", b"\xff\0"), indexed, END)
    file("palette-missing-trns-several", ihdr(color=3), chunk(b"tRNS", b"\x80\0"), indexed, END)
    file("palette-missing-trns-newline", ihdr(color=3), chunk(b"tRNS", b"\0\n"), indexed, END)
    file("palette-missing-trns-empty", ihdr(color=3), chunk(b"tRNS", b""), indexed, END)
    text = zlib.compress(bytes(100))
    for name, payload in {
        "gAMA": b"12",
        "cHRM": bytes(31),
        "sRGB": b"",
        "pHYs": bytes(8),
        "tRNS": bytes(5),
        "acTL": bytes(7),
        "fcTL": bytes(25),
        "fdAT": bytes(3),
        "iCCP": b"",
        "eXIf": b"",
        "tEXt": b"",
        "zTXt": b"",
        "iTXt": b"",
        "bKGD": b"",
        "sBIT": b"",
        "hIST": b"",
        "tIME": b"",
        "cICP": b"",
    }.items():
        before(f"short-{name}", chunk(name.encode(), payload))
        after(f"short-{name}-after", chunk(name.encode(), payload))
    before("profile-noise", chunk(b"iCCP", b"x\0\0noise"))
    before("profile-method", chunk(b"iCCP", b"x\0\1noise"))
    before("profile-unnamed", chunk(b"iCCP", b"\1x"))
    before("profile-no-name", chunk(b"iCCP", b"\0"))
    before("text-method", chunk(b"zTXt", b"k\0\1" + text))
    before("text-noise", chunk(b"zTXt", b"k\0\0noise"))
    before("text-international", chunk(b"iTXt", b"k\0\1\0\0\0" + text))
    animation, end = chunk(b"acTL", struct.pack(">II", 2, 0)), chunk(b"IEND", b"")

    def part(number, w=20, h=10, x=0, y=0):
        return chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, w, h, x, y, 1, 1, 0, 0))

    before("frame-number", animation, part(1))
    before("frame-beyond", animation, part(0, 21))
    before("frame-empty", animation, part(0, 0, 10, 3))
    before("frame-empty-left", animation, part(0, 0, 10, 0))
    before("frame-alone", part(0))
    before("frame-twice", animation, part(0), part(1))
    before("frame-twice-same", animation, part(0), part(0))
    before("animation-twice", animation, animation, part(0))
    before("animation-none", chunk(b"acTL", bytes(8)), part(0))
    after("piece-alone", chunk(b"fdAT", struct.pack(">I", 1) + z))
    out["png-piece-number"] = (
        SIGNATURE + ihdr() + animation + part(0) + idat + part(1) + chunk(b"fdAT", struct.pack(">I", 9) + z) + end
    )
    out["png-piece-after"] = (
        SIGNATURE
        + ihdr()
        + chunk(b"acTL", struct.pack(">II", 1, 0))
        + part(0)
        + idat
        + chunk(b"fdAT", struct.pack(">I", 9) + z)
        + end
    )
    out["png-signature"] = b"\x89PNG\r\n\x1a\r" + ihdr() + idat + END
    out["png-signature-only"] = SIGNATURE
    return out


def far_checksums():
    """Wrong checksums of the pixels, whole and not in the first 65,536 bytes of a chunk, which Pillow reads at once."""
    out = {}
    for w, h in ((2620, 25), (850, 77)):
        raw = bytes((w + 1) * h)
        stored = b"\x78\x01\x01" + le("HH", len(raw), len(raw) ^ 0xFFFF) + raw
        for name, end in (("wrong", b"1234"), ("right", struct.pack(">I", zlib.adler32(raw)))):
            out[f"png-far-{w}-{name}"] = SIGNATURE + ihdr(w, h, 8, 0) + chunk(b"IDAT", stored + end) + END
    return out


def alphas(pictures):
    """Transparency of every kind, and too little of it."""
    out = {}
    picture = bitstream(pictures.photo(16, 12))
    for kind in (0x00, 0x04, 0x02, 0x03, 0x10, 0x20, 0x30, 0x40, 0x80, 0xC0, 0x01):
        for n in (16 * 12, 16 * 12 - 1, 1, 0):
            out[f"webp-alpha-{kind:02x}-{n}"] = riff(canvas(16, 16, 12), (b"ALPH", bytes([kind]) + bytes(n)), picture)
    out["webp-alpha-empty"] = riff(canvas(16, 16, 12), (b"ALPH", b""), picture)
    out["webp-alpha-empty-no-flag"] = riff(canvas(0, 16, 12), (b"ALPH", b""), picture)
    out["webp-alpha-behind"] = riff(canvas(16, 16, 12), picture, (b"ALPH", bytes(193)))
    out["webp-alpha-behind-no-flag"] = riff(canvas(0, 16, 12), picture, (b"ALPH", bytes(193)))
    out["webp-alpha-behind-plain"] = riff(picture, (b"ALPH", bytes(193)))
    out["webp-long-header"] = riff((b"VP8X", canvas(0, 16, 12)[1] + b"\0\0"), picture)
    out["webp-alpha-twice"] = riff(canvas(16, 16, 12), (b"ALPH", bytes(193)), (b"ALPH", bytes(193)), picture)
    out["webp-alpha-alone"] = riff(canvas(16, 16, 12), (b"ALPH", bytes(193)))
    out["webp-alpha-lossless"] = riff(
        canvas(16, 16, 12), (b"ALPH", bytes(193)), bitstream(pictures.photo(16, 12), lossless=True)
    )
    out["webp-two-pictures"] = riff(canvas(0, 16, 12), picture, picture)
    out["webp-other-canvas"] = riff(canvas(0, 17, 12), picture)
    return out


def webp(whole):
    out = {}
    for kind in ("lossy-33x31", "lossless-33x31", "glass-33x31", "animated-lossy", "animated-parts0"):
        data = whole["webp-" + kind]
        n = len(data)

        def put(name, at, value, kind=kind, data=data):
            out[f"webp-{kind}-{name}"] = data[:at] + value + data[at + len(value) :]

        out[f"webp-{kind}-half-said"] = data[:4] + le("I", n // 2 - 8) + data[8 : n // 2]
        out[f"webp-{kind}-half-padded"] = data[: n // 2] + bytes(n - n // 2)
        out[f"webp-{kind}-trailing"] = data + b"junk"
        out[f"webp-{kind}-trailing-in"] = data[:4] + le("I", n) + data[8:] + b"junkjunk"
        out[f"webp-{kind}-chunk-more"] = data[:4] + le("I", n + 4) + data[8:] + b"ABCD" + le("I", 4) + b"1234"
        put("size-less", 4, le("I", n - 30))
        put("size-more", 4, le("I", n + 30))
        put("size-odd", 4, le("I", n - 9))
        put("size0", 4, bytes(4))
        put("chunk-size", 16, le("I", 1 << 20))
        put("chunk-size-less", 16, le("I", 9))
        put("chunk-name", 12, b"VP8Q")
        put("mark", 23, b"\0\0\0")
        put("sides", 26, b"\xff\x3f\xff\x3f")
        put("sides0", 26, b"\0\0\0\0")
        for flags in range(0, 256, 23):
            put(f"flags{flags}", 20, bytes([flags]))
    return out


def gif(pictures):
    out = {}
    palette = pictures.bytes(48)
    pixels = pictures.indices(437, 16)
    head, body = gifs.head(23, 19, palette), gifs.frame(0, 0, 23, 19, pixels)
    data = gifs.lzw(pixels, 4)
    place = b"," + le("HHHHB", 0, 0, 23, 19, 0)

    def file(name, *parts):
        out["gif-" + name] = b"".join(parts)

    file("no-end", head, body)
    file("no-terminator", head, body[:-1])
    file("end-early", head, place, gifs.lzw(pixels[:200], 4), b";")
    file("end-early-then", head, place, gifs.lzw(pixels[:200], 4)[:-1], gifs.lzw(pixels[200:], 4)[1:], b";")
    file("end-early-far", head, place, gifs.lzw(pixels[:200], 4), bytes(70000), gifs.lzw(pixels[200:], 4)[1:], b";")
    file("end-early-farther", head, place, gifs.lzw(pixels[:200], 4), bytes(140000), gifs.lzw(pixels, 4)[1:], b";")
    file("empty-blocks", head, place, data[:50], b";")
    file("empty-block-between", head, place, gifs.lzw(pixels, 4)[:1] + b"\0\0" + data[1:], b";")
    file("more-pixels", head, place, gifs.lzw(pixels + pixels, 4), b";")
    file("no-data", head, place, b"\4\0;")
    file("no-bits", head, place)
    file("frame-cut", head, place[:6])
    file("palette-cut", head[:30])
    file("header-cut", head[:10])
    file("header-only", head)
    file("no-frame", head, b";")
    file("no-frame-control", head, gifs.control(1), b";")
    file("local-cut", head, b"," + le("HHHHB", 0, 0, 23, 19, 0x87) + bytes(20))
    for bits in (0, 1, 2, 3, 5, 8, 9, 11, 12, 13, 255):
        file(f"bits{bits}", head, place, bytes([bits]), data[1:], b";")
    for w, h in ((0, 19), (23, 0), (0, 0), (65535, 65535), (65000, 2)):
        file(f"size{w}x{h}", head, b"," + le("HHHHB", 0, 0, w, h, 0), data, b";")
    file("canvas0", gifs.head(0, 0, palette), body)
    file("canvas-huge", gifs.head(65535, 65535, palette), body)
    file("beyond-huge", head, b"," + le("HHHHB", 65535, 65535, 23, 19, 0), data, b";")
    file("control-short", head, b"\x21\xf9\2\0\0\0", body, b";")
    file("control-short-transparent", head, b"\x21\xf9\3\1\0\0\0", body, b";")
    file("control-cut", head, b"\x21\xf9\4\0")
    file("extension-cut", head, b"\x21")
    file("comment-cut", head, b"\x21\xfe\x20abc")
    file("version", b"GIF88a" + head[6:], body, b";")
    file("code-first", head, place, b"\4", gifs.blocks(b"\x74\xff\x12"), b";")
    for i in range(20):
        file(f"noise{i}", head, place, bytes([2 + i % 7]), gifs.blocks(pictures.bytes(900), 1 + 17 * i % 255), b";")
    return out


def far_ends(pictures):
    """End codes before the last pixel. Pillow goes on behind each, if it has not yet read all of the file."""
    out = {}
    place = b"," + le("HHHHB", 0, 0, 20, 20, 0) + b"\7"
    pixels = bytes(v & 127 for v in pictures.bytes(400))
    rest = b"".join(b"\x80" + pixels[i : i + 100] for i in range(100, 400, 100))
    for ends in range(5):
        for far in (0, 60000, 70000, 140000):
            first = gifs.blocks(b"\x80" + pixels[:100] + b"\x81" * ends)
            out[f"gif-ends{ends}-{far}"] = (
                gifs.head(20, 20, pictures.bytes(48)) + place + first + bytes(far) + gifs.blocks(rest) + b";"
            )
    return out


def bmp(whole):
    out = {}
    for kind in ("8-17x6", "24-17x6", "rle8-17x6", "mask-565-17x6", "v124-0-17x6"):
        data = whole["bmp-" + kind]
        fields = {
            "size": 14,
            "width": 18,
            "height": 22,
            "planes": 26,
            "bits": 28,
            "way": 30,
            "bytes": 34,
            "colors": 46,
            "offset": 10,
        }
        for field, at in fields.items():
            for value in (0, 1, 12, 64, 255, 70000, (1 << 32) - 1):
                short = field in ("planes", "bits")
                put = le("H", value & 0xFFFF) if short else le("I", value)
                out[f"bmp-{kind}-{field}{value}"] = data[:at] + put + data[at + len(put) :]
    return out
