"""Pictures to encode: something like a photograph, noise, hard edges; and how Pillow encodes them."""

import io
import struct

import numpy as np
from PIL import Image


class Pictures:
    def __init__(self, rng):
        self.rng = rng
        self.np = np.random.default_rng(rng.randrange(1 << 32))

    def photo(self, w, h):
        """Smooth shades with some grain and a few edges."""
        y, x = np.mgrid[0:h, 0:w].astype(float)
        out = np.zeros((h, w, 3))
        for c in range(3):
            for _ in range(4):
                fx, fy, phase = self.np.normal(0, 0.15), self.np.normal(0, 0.15), self.np.uniform(0, 7)
                out[..., c] += np.sin(fx * x + fy * y + phase) * self.np.uniform(10, 60)
        out += 128 + self.np.normal(0, 6, (h, w, 1))
        out[: h // 3, : w // 4] *= self.np.uniform(0, 2, 3)
        return Image.fromarray(out.clip(0, 255).astype(np.uint8))

    def noise(self, w, h):
        return Image.frombytes("RGB", (w, h), self.bytes(3 * w * h))

    def edges(self, w, h):
        """Saturated colours side by side: chroma bleeds, ranges are cut."""
        colors = np.array(
            [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [0, 255, 255], [255, 0, 255], [255] * 3, [0] * 3],
            np.uint8,
        )
        y, x = np.mgrid[0:h, 0:w]
        return Image.fromarray(colors[(x // 3 + y // 2 * 3 + (x * y) % 5) % 8])

    def glass(self, w, h):
        """A photograph with transparency, some of it whole."""
        image = self.photo(w, h)
        alpha = np.asarray(self.photo(w, h).convert("L")).astype(int) * 2 - 128
        image.putalpha(Image.fromarray(alpha.clip(0, 255).astype(np.uint8)))
        return image

    def bytes(self, n):
        return self.rng.randbytes(n)

    def indices(self, n, colors):
        """Rows of indices with runs in them."""
        out = []
        while len(out) < n:
            out += [self.rng.randrange(colors)] * self.rng.choice([1, 1, 1, 2, 9])
        return out[:n]


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def le(form, *values):
    return struct.pack("<" + form, *values)
