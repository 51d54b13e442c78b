"""Files that say how they want to be turned: in EXIF of either byte order and several types, and in XMP."""

import struct
import zlib

from pictures import le, saved
from pngs import chunk
from webps import bitstream, canvas, riff


def tiff(value, order="<", kind=3, count=1, before=(), after=()):
    """EXIF data with an orientation among other entries; kind and count are TIFF's."""
    entries = b"".join(struct.pack(order + "HHIHH", tag, 3, 1, other, 0) for tag, other in before)
    form = {1: "BBBB", 3: "HH", 4: "I", 8: "hh", 9: "i", 5: "I", 11: "f"}[kind]
    data = struct.pack(order + form, *([value] + [0] * 3)[: len(form)])
    entries += struct.pack(order + "HHI", 0x112, kind, count) + data
    entries += b"".join(struct.pack(order + "HHIHH", tag, 3, 1, other, 0) for tag, other in after)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    return (
        head
        + struct.pack(order + "H", len(before) + 1 + len(after))
        + entries
        + bytes(4)
        + struct.pack(order + "II", 6, 1)
    )


def xmp(value, form='<x tiff:Orientation="{}"/>'):
    return form.format(value).encode()


def segment(data):
    return b"\xff\xe1" + struct.pack(">H", len(data) + 2) + data


def files(pictures):
    jpeg = saved(pictures.photo(37, 25), "JPEG", quality=90)
    png = saved(pictures.photo(31, 22), "PNG")
    out = {}

    def in_jpeg(name, *parts):
        out[f"turned-jpeg-{name}"] = jpeg[:2] + b"".join(segment(part) for part in parts) + jpeg[2:]

    def in_png(name, *chunks, end=False):
        at = len(png) - 12 if end else 33
        out[f"turned-png-{name}"] = png[:at] + b"".join(chunks) + png[at:]

    def in_webp(name, flags, *chunks):
        out[f"turned-webp-{name}"] = riff(canvas(flags, 31, 22), bitstream(pictures.photo(31, 22)), *chunks)

    exif, mark = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
    for value in range(10):
        for order in "<>":
            in_jpeg(
                f"{value}{'le' if order == '<' else 'be'}",
                exif + tiff(value, order, before=[(0x10F, 5)], after=[(0x213, 1)]),
            )
        in_png(f"{value}", chunk(b"eXIf", tiff(value, ">")))
        in_webp(f"{value}", 8, (b"EXIF", tiff(value)))
        in_jpeg(f"xmp{value}", mark + xmp(value))
    for kind in (1, 4, 8, 9):
        in_jpeg(f"kind{kind}", exif + tiff(6, kind=kind))
    in_jpeg("none")
    in_jpeg("two", exif + tiff(6, after=[(0x112, 3)]))
    in_jpeg("count2", exif + tiff(6, count=2))
    in_jpeg("count9-beyond", exif + tiff(6, count=9))
    in_jpeg("count0", exif + tiff(6, count=0))
    in_jpeg("exif-and-xmp", exif + tiff(6), mark + xmp(3))
    in_jpeg("exif-zero-and-xmp", exif + tiff(0), mark + xmp(3))
    in_jpeg("split", exif + tiff(6)[:15], exif + tiff(6)[15:])
    in_jpeg("mark-twice", exif + exif + tiff(6))
    in_jpeg("cut-entries", exif + tiff(6, after=[(0x213, 1)] * 5)[:30])
    in_jpeg("xmp-element", mark + xmp(8, "<tiff:Orientation>{}</tiff:Orientation>"))
    in_jpeg(
        "xmp-far", mark + xmp(8, "<tiff:Orientation x tiff:Orientation >2< <tiff:Orientation>{}</tiff:Orientation>")
    )
    in_jpeg("xmp-none", mark + xmp("x"))
    in_png("after", chunk(b"eXIf", tiff(6)), end=True)
    in_png("twice", chunk(b"eXIf", tiff(6)), chunk(b"eXIf", tiff(3)))
    in_png("xmp", chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp(5)))
    in_png("text", chunk(b"zTXt", b"k\0\0" + zlib.compress(b"6")))
    in_webp("no-flag", 0, (b"EXIF", tiff(6)))
    in_webp("twice", 8, (b"EXIF", tiff(6)), (b"EXIF", tiff(3)))
    in_webp("xmp", 4, (b"XMP ", xmp(7)))
    in_webp("marked", 8, (b"EXIF", exif + tiff(8)))
    in_webp("odd", 8, (b"ABCD", le("H", 1) + b"x"), (b"EXIF", tiff(8)))
    return out
