"""What a refused transform is cut into, as the refusal says: what python= does."""

from __future__ import annotations

from typing import Any

import PIL.Image
import PIL.ImageOps
import torch
from torchvision.transforms import v2


def invert(picture: PIL.Image.Image) -> PIL.Image.Image:
    """For PIL images alone."""
    return PIL.ImageOps.invert(picture)


REST = v2.Compose([invert, v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


def fn(sample: Any, rng: Any) -> Any:
    """As the refusal has it."""
    return {**sample, "image": REST(PIL.Image.fromarray(sample["image"]))}
