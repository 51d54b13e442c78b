"""WebP: Pillow's lossy, lossless and animated files with many options, and containers of our own."""

import struct

from pictures import le, saved
from PIL import Image


def riff(*chunks):
    body = b"WEBP" + b"".join(name + le("I", len(data)) + data + b"\0" * (len(data) & 1) for name, data in chunks)
    return b"RIFF" + le("I", len(body)) + body


def bitstream(image, **options):
    """The one chunk of a plain file."""
    data = saved(image, "WEBP", **options)
    return data[12:16], data[20 : 20 + struct.unpack("<I", data[16:20])[0]]


def canvas(flags, w, h):
    return b"VP8X", bytes([flags, 0, 0, 0]) + le("I", w - 1)[:3] + le("I", h - 1)[:3]


def frame(image, x, y, flags=0, **options):
    name, data = bitstream(image, **options)
    head = le("I", x // 2)[:3] + le("I", y // 2)[:3] + le("I", image.width - 1)[:3] + le("I", image.height - 1)[:3]
    return b"ANMF", head + b"\x64\0\0" + bytes([flags]) + name + le("I", len(data)) + data + b"\0" * (len(data) & 1)


ANIM = (b"ANIM", b"\x10\x80\xf0\xff\0\0")


def files(pictures):
    out = {}
    sizes = [(1, 1), (2, 2), (3, 3), (1, 9), (9, 1), (15, 17), (16, 16), (17, 15), (33, 31), (64, 48), (101, 67)]
    for w, h in sizes:
        size = f"{w}x{h}"
        out[f"webp-lossy-{size}"] = saved(pictures.photo(w, h), "WEBP", quality=80)
        out[f"webp-lossless-{size}"] = saved(pictures.photo(w, h), "WEBP", lossless=True)
        out[f"webp-glass-{size}"] = saved(pictures.glass(w, h), "WEBP", quality=70)
        out[f"webp-lossless-glass-{size}"] = saved(pictures.glass(w, h), "WEBP", lossless=True, exact=w % 2 == 0)
    for quality in (0, 20, 50, 90, 100):
        for method in (0, 3, 6):
            options = {"quality": quality, "method": method}
            out[f"webp-lossy-q{quality}m{method}"] = saved(pictures.photo(70, 45), "WEBP", **options)
            out[f"webp-lossless-q{quality}m{method}"] = saved(pictures.photo(70, 45), "WEBP", lossless=True, **options)
        out[f"webp-alpha-q{quality}"] = saved(pictures.glass(61, 45), "WEBP", alpha_quality=quality)
    for kind in ("edges", "noise"):
        image = getattr(pictures, kind)(45, 39)
        out[f"webp-lossy-{kind}"] = saved(image, "WEBP", quality=75)
        out[f"webp-lossy-sharp-{kind}"] = saved(image, "WEBP", quality=75, use_sharp_yuv=True)
        out[f"webp-lossless-{kind}"] = saved(image, "WEBP", lossless=True)
    for colors in (2, 4, 16, 200):
        image = pictures.photo(45, 39).quantize(colors).convert("RGB")
        out[f"webp-lossless-colors{colors}"] = saved(image, "WEBP", lossless=True)
    out["webp-lossless-grey"] = saved(pictures.photo(45, 39).convert("L").convert("RGB"), "WEBP", lossless=True)
    out.update(contained(pictures))
    return out


def contained(pictures):
    exif = Image.Exif()
    exif[0x112] = 6
    out = {
        "webp-meta": saved(pictures.photo(30, 20), "WEBP", icc_profile=b"x" * 200, exif=exif),
        "webp-xmp": saved(pictures.glass(30, 20), "WEBP", xmp=b"<x/>"),
        "webp-trailing": saved(pictures.photo(30, 20), "WEBP") + b"trailing",
        "webp-plain-canvas": riff(canvas(0, 16, 12), bitstream(pictures.photo(16, 12))),
    }
    for name, options in {
        "lossy": {},
        "lossless": {"lossless": True},
        "back": {"background": (9, 99, 199, 255)},
        "mixed": {"allow_mixed": True},
    }.items():
        more = {"save_all": True, **options}
        out[f"webp-animated-{name}"] = saved(
            pictures.photo(40, 30), "WEBP", append_images=[pictures.photo(40, 30)], **more
        )
        out[f"webp-animated-{name}-glass"] = saved(
            pictures.glass(40, 30), "WEBP", append_images=[pictures.glass(40, 30)], **more
        )
    for flags in range(4):
        first = frame(pictures.photo(16, 12), 8, 6, flags, quality=80)
        out[f"webp-animated-part{flags}"] = riff(canvas(2, 40, 30), ANIM, first)
        second = frame(pictures.photo(10, 10), 30, 20, flags, lossless=True)
        out[f"webp-animated-parts{flags}"] = riff(canvas(2, 40, 30), ANIM, second, first)
    return out
