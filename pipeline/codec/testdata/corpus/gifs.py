"""GIF: a writer of our own for every palette, place and interlacing, and Pillow's files."""

from pictures import le, saved


def lzw(pixels, bits):
    """Compressed data in blocks, with the size of a pixel in front."""
    reset, end = 1 << bits, (1 << bits) + 1
    bitstream, filled = 0, 0
    table, width, known = {(i,): i for i in range(reset)}, bits + 1, ()

    def put(code):
        nonlocal bitstream, filled
        bitstream |= code << filled
        filled += width

    put(reset)
    for pixel in pixels:
        longer = (*known, pixel)
        if longer in table:
            known = longer
            continue
        put(table[known])
        code = len(table) + 2
        if code < 4096:
            table[longer] = code
            width += code == 1 << width and width < 12
        else:
            put(reset)
            table, width = {(i,): i for i in range(reset)}, bits + 1
        known = (pixel,)
    put(table[known])
    put(end)
    return bytes([bits]) + blocks(bitstream.to_bytes((filled + 7) // 8, "little"))


def blocks(data, size=255):
    return b"".join(bytes([len(data[i : i + size])]) + data[i : i + size] for i in range(0, len(data), size)) + b"\0"


def colors(palette):
    return max(0, (len(palette) // 3 - 1).bit_length() - 1)


def head(w, h, palette=b"", background=0, version=b"89a"):
    return b"GIF" + version + le("HHBBB", w, h, (0x80 | colors(palette)) if palette else 0, background, 0) + palette


def control(transparent=None, disposal=0):
    return b"\x21\xf9\4" + bytes([disposal << 2 | (transparent is not None), 5, 0, transparent or 0]) + b"\0"


def frame(x, y, w, h, pixels, palette=b"", interlaced=0):
    if interlaced:
        rows = [row for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for row in range(first, h, step)]
        pixels = [v for row in rows for v in pixels[row * w : (row + 1) * w]]
    flags = (0x40 if interlaced else 0) | ((0x80 | colors(palette)) if palette else 0)
    return b"," + le("HHHHB", x, y, w, h, flags) + palette + lzw(pixels, max(2, max(pixels).bit_length()))


def files(pictures):
    out = {}
    palette = pictures.bytes(768)
    greys = bytes(v for i in range(256) for v in (i, i, i))
    steps = bytes(v for i in range(16) for v in (i * 17,) * 3)

    def gif(w=23, h=19, colors=16, box=None, palette=palette[:48], local=b"", interlaced=0, lead=b"", **options):
        box = box or (0, 0, w, h)
        pixels = pictures.indices(box[2] * box[3], colors)
        return head(w, h, palette, **options) + lead + frame(*box, pixels, local, interlaced) + b";"

    for n in (2, 4, 16, 256):
        for interlaced in (0, 1):
            for transparent in (None, 0, n - 1):
                lead = control(transparent) if transparent is not None else b""
                out[f"gif-{n}-{interlaced}-{transparent}"] = gif(
                    colors=n, palette=palette[: 3 * n], interlaced=interlaced, lead=lead
                )
    for h in range(1, 10):
        out[f"gif-interlaced-{h}"] = gif(h=h, interlaced=1)
    part = (5, 4, 9, 8)
    out |= {
        "gif-1x1": gif(1, 1, 2),
        "gif-big": gif(150, 120, 256, palette=palette, interlaced=1),
        "gif-noise": head(90, 80, palette) + frame(0, 0, 90, 80, list(pictures.bytes(7200))) + b";",
        "gif-flat": head(200, 300, palette) + frame(0, 0, 200, 300, [7] * 60000) + b";",
        "gif-87a": gif(version=b"87a"),
        "gif-local": gif(local=palette[100:148]),
        "gif-local-only": gif(local=palette[100:148], palette=b""),
        "gif-local-small": gif(local=palette[100:106]),
        "gif-local-greys": gif(colors=256, local=greys),
        "gif-local-greys-part": gif(colors=256, local=greys, box=part, lead=control(3)),
        "gif-local-greys-only": gif(colors=256, local=greys, palette=b""),
        "gif-greys": gif(colors=256, palette=greys),
        "gif-greys-part": gif(colors=256, palette=greys, box=part, background=3),
        "gif-greys-transparent": gif(colors=256, palette=greys, lead=control(7)),
        "gif-greys-local": gif(palette=greys, local=palette[:48]),
        "gif-steps": gif(palette=steps),
        "gif-ramp16": gif(palette=greys[:48]),
        "gif-no-palette": gif(colors=256, palette=b""),
        "gif-beyond-palette": gif(colors=256),
        "gif-transparent-beyond": gif(lead=control(200), box=part),
        "gif-part": gif(box=part, background=3),
        "gif-part-transparent": gif(box=part, lead=control(2)),
        "gif-part-disposal": gif(box=part, lead=control(2, 2), interlaced=1),
        "gif-part-local": gif(box=part, local=palette[200:248]),
        "gif-larger": gif(10, 8, box=(0, 0, 23, 19)),
        "gif-beyond": gif(10, 8, box=part),
        "gif-zero-canvas": gif(0, 0, box=(0, 0, 9, 8)),
        "gif-trailing": gif() + b"xyz" * 9,
        "gif-comment": gif(lead=b"\x21\xfe" + blocks(b"hello, world") + b"\x21\xfe\0"),
        "gif-loop": gif(lead=b"\x21\xff\x0bNETSCAPE2.0\3\1\0\0\0" + control()),
        "gif-loop-odd": gif(lead=b"\x21\xff\x0bNETSCAPE2.0\0\0"),
        "gif-text": gif(lead=b"\x21\x01" + blocks(bytes(12)) + b"\x21\xff" + blocks(b"ICCRGBG1012" + bytes(300))),
        "gif-empty-control": gif(lead=b"\x21\xf9\0\0"),
        "gif-empty-extensions": gif(lead=b"\x21\xf9\0\3,,;\0" + b"\x21\x01\0\2,;\0"),
        "gif-stray": gif(lead=b"\0\0xyz"),
        "gif-two-controls": gif(lead=control(3) + control(), box=part),
    }
    for disposal in range(4):
        two = (
            frame(0, 0, 23, 19, pictures.indices(437, 16))
            + control(1, disposal)
            + frame(3, 3, 9, 8, pictures.indices(72, 16))
        )
        out[f"gif-animated-{disposal}"] = head(23, 19, palette[:48]) + control(1, disposal) + two + b";"
    for mode in ("1", "L", "P", "RGB"):
        out[f"gif-pillow-{mode}"] = saved(pictures.photo(40, 30).convert(mode), "GIF")
    out["gif-pillow-glass"] = saved(pictures.glass(40, 30), "GIF")
    out["gif-pillow-animated"] = saved(
        pictures.photo(40, 30), "GIF", save_all=True, append_images=[pictures.photo(40, 30)]
    )
    return out
