"""ElasticTransform. Replay tells key and counter of its noise, which is made here again as docs/plan.md says."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import torch
from case import Case, Draws, Picture
from torchvision.transforms import v2

torch.set_num_threads(1)


def philox(key: list[int], first: int, blocks: int, counter: list[int]) -> npt.NDArray[np.uint32]:
    """Words [blocks][4] of Philox4x32-10, its counters (first + i, *counter)."""
    mask = np.uint64(0xFFFFFFFF)
    c = [np.arange(first, first + blocks, dtype=np.uint64), *(np.full(blocks, x, np.uint64) for x in counter)]
    k = [np.uint64(key[0]), np.uint64(key[1])]
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(q >> np.uint64(32)) ^ c[1] ^ k[0], q & mask, (p >> np.uint64(32)) ^ c[3] ^ k[1], p & mask]
        k = [(k[0] + np.uint64(0x9E3779B9)) & mask, (k[1] + np.uint64(0xBB67AE85)) & mask]
    return np.stack(c, 1).astype(np.uint32)


def uniform(draw: dict[str, Any], field: int, height: int, width: int) -> torch.Tensor:
    """What stands for torch.rand(1, 1, height, width)."""
    words = philox(draw["key"], field << 28, -(-height * width // 4), draw["counter"]).ravel()[: height * width]
    return torch.from_numpy((words >> 8).astype(np.float32) * np.float32(2**-24)).view(1, 1, height, width)


def _case(tensor: bool, **arguments: Any) -> Case:
    """Behind a resize, as torch takes seconds to smooth noise of a photograph's size."""
    spelled = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    op = v2.ElasticTransform(**arguments)

    def expect(picture: Picture, draws: Draws) -> Any:
        picture = v2.functional.resize(picture, [96])
        image = v2.functional.to_image(picture) if tensor else picture
        noise = [uniform(draws[1], field, picture.height, picture.width) for field in (0, 1)]
        with patch("torch.rand", side_effect=noise):
            image = op(image)
        return image.permute(1, 2, 0).numpy() if tensor else image

    steps = [v2.Resize(96), *([v2.ToImage()] if tensor else []), op]
    name = f"Resize(96), {'ToImage(), ' if tensor else ''}ElasticTransform({spelled})"
    return Case(name, lambda: v2.Compose(steps), expect, "tensor" if tensor else "pil")


CASES = [
    *(_case(tensor) for tensor in (False, True)),
    _case(False, alpha=120.0, interpolation="nearest"),
    _case(True, alpha=250.0, sigma=5.0, fill=None),
    _case(False, alpha=(900.0, -300.0), sigma=(2.0, 9.5), fill=(124, 116.5, 104)),
    _case(True, alpha=40, sigma=0.5, interpolation="nearest", fill=200),
]
