"""Ops of colour on pictures of a few pixels, and of noise, at every kernel level: edges are the rule there."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from case import Picture
from PIL import Image
from test_resample import noise, parity
from torchvision.transforms import v2

F = v2.functional
SIZES = [
    (1, 1),
    (1, 9),
    (9, 1),
    (2, 2),
    (3, 3),
    (4, 5),
    (5, 4),
    (6, 3),
    (7, 16),
    (8, 8),
    (15, 17),
    (17, 15),
    (16, 33),
    (40, 31),
]

OPS: list[tuple[dict[str, Any], Callable[[Picture, dict[str, Any]], Any]]] = [
    ({"op": "JPEG", "quality": [1, 100]}, lambda picture, draw: F.jpeg(picture, draw["quality"])),
    ({"op": "RandomAdjustSharpness", "sharpness_factor": 3, "p": 1}, lambda picture, _: F.adjust_sharpness(picture, 3)),
    ({"op": "RandomEqualize", "p": 1}, lambda picture, _: F.equalize(picture)),
    ({"op": "RandomAutocontrast", "p": 1}, lambda picture, _: F.autocontrast(picture)),
    (
        {"op": "ColorJitter", "contrast": [0, 3]},
        lambda picture, draw: F.adjust_contrast(picture, draw["contrast_factor"]),
    ),
    ({"op": "ColorJitter", "saturation": [0, 3]}, lambda p, draw: F.adjust_saturation(p, draw["saturation_factor"])),
    ({"op": "ColorJitter", "hue": 0.5}, lambda picture, draw: F.adjust_hue(picture, draw["hue_factor"])),
]


@pytest.mark.parametrize(
    ("step", "expect"), OPS, ids=lambda value: json.dumps(value) if isinstance(value, dict) else ""
)
def test_small_pictures(step: dict[str, Any], expect: Callable[[Picture, dict[str, Any]], Any]) -> None:
    torch.set_num_threads(1)
    rng = random.Random(3)
    requests = []
    for i in range(8 * len(SIZES)):
        w, h = SIZES[i % len(SIZES)]
        q = {"transforms": [step], "seed": 5, "sample": {"epoch": 0, "index": i, "repeat": 0}, "w": w, "h": h}
        requests.append((q, noise(rng, w, h)))
    answer = parity("transform", requests)
    for q, pix in requests:
        line, _, answer = answer.partition(b"\n")
        got, answer = np.frombuffer(answer[: pix.size], np.uint8).reshape(pix.shape), answer[pix.size :]
        draw = json.loads(line)["draws"][0]
        want = np.asarray(expect(Image.fromarray(pix), draw["parameters"]))
        assert np.array_equal(got, want), (q, draw)
    assert not answer
