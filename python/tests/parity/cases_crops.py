"""FiveCrop and TenCrop: batches hold the crops stacked."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import Case, Draws, Picture
from torchvision.transforms import v2


def _case(tensor: bool, name: str, *arguments: Any, **named: Any) -> Case:
    op = getattr(v2, name)(*arguments, **named)

    def expect(picture: Picture, draws: Draws) -> Any:
        resized = v2.functional.resize(picture, [128])
        return np.concatenate([np.asarray(crop) for crop in op(resized)])

    text = [*map(repr, arguments), *(f"{key}={value!r}" for key, value in named.items())]
    steps = [v2.Resize(128), *([v2.ToImage()] if tensor else []), op]
    spelled = f"Resize(128), {'ToImage(), ' if tensor else ''}{name}({', '.join(text)})"
    return Case(spelled, lambda: v2.Compose(steps), expect, "tensor" if tensor else "pil")


CASES = [
    *(
        _case(tensor, name, size)
        for tensor in (False, True)
        for name in ("FiveCrop", "TenCrop")
        for size in (112, (128, 97))
    ),
    _case(False, "TenCrop", 65, vertical_flip=True),
]
