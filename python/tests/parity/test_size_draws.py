"""Drawn crops, canvases and sizes: distributed as those that torchvision's own make_params draws.

Seeds are fixed, so results do not change from run to run.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from test_order_draws import kolmogorov_smirnov
from torchvision.transforms import v2

from feedwater._plan.compiler import compile_transform

ROOT = Path(__file__).parents[3]
DRAWS = 20_000
Numbers = np.ndarray[Any, Any]


def ours(transform: Any, w: int, h: int) -> list[dict[str, Any]]:
    """The parameters of each sample for which it is applied."""
    steps = [v2.ToImage(), transform] if isinstance(transform, v2.RandomErasing) else transform
    plan = compile_transform(steps).plan_ops()
    request = {"transforms": plan, "seed": 17, "sample": {}, "w": w, "h": h, "count": DRAWS}
    run = subprocess.run(
        ["go", "run", "./pipeline/transform/internal/cmd/parity", "tell"],
        cwd=ROOT, input=json.dumps(request).encode() + b"\n", capture_output=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr.decode()
    told = [json.loads(line)[0] for line in run.stdout.splitlines()]
    return [draw["parameters"] for draw in told if draw["applied"]]


def theirs(transform: Any, w: int, h: int) -> list[dict[str, Any]]:
    torch.manual_seed(1)
    image = [Image.new("RGB", (w, h))]
    return [transform.make_params(image) for _ in range(DRAWS)]


CASES = {
    "RandomCrop": (lambda: v2.RandomCrop((200, 224), padding=(10, 20)), lambda p: (p["top"], p["left"])),
    "RandomCrop, one row": (lambda: v2.RandomCrop((375, 8)), lambda p: (p["top"], p["left"])),
    "RandomZoomOut": (lambda: v2.RandomZoomOut(), lambda p: (*p["padding"], p["padding"][0] + p["padding"][2])),
    "RandomZoomOut, more": (lambda: v2.RandomZoomOut(side_range=(1.5, 1.75), p=1), lambda p: tuple(p["padding"])),
    "RandomResize": (lambda: v2.RandomResize(100, 107), lambda p: tuple(p["size"])),
    "RandomShortestSize": (lambda: v2.RandomShortestSize([90, 80, 100, 80], 120), lambda p: tuple(p["size"])),
    "RandomErasing": (lambda: v2.RandomErasing(p=1), lambda p: (p["i"], p["j"], p["h"], p["w"])),
    "RandomErasing, large": (
        lambda: v2.RandomErasing(1, (0.6, 1.0), (0.1, 10)),
        lambda p: (p["i"], p["j"], p["h"], p["w"], p["v"] is None),
    ),
    "ScaleJitter": (lambda: v2.ScaleJitter((200, 300)), lambda p: tuple(p["size"])),
}


@pytest.mark.parametrize("name", CASES)
def test_parameters_are_distributed_as_torchvisions(name: str) -> None:
    make, numbers = CASES[name]
    w, h = 500, 375
    a, b = (np.array([numbers(p) for p in drawn(make(), w, h)], np.float64) for drawn in (ours, theirs))
    p = [kolmogorov_smirnov(x, y) for x, y in zip(a.T, b.T, strict=True)]
    assert min(p) > 0.001, p
    # Few values: each comes as often.
    for x, y in zip(a.T, b.T, strict=True):
        values = np.unique(np.concatenate([x, y]))
        if len(values) <= 30:
            counts = np.array([[np.count_nonzero(z == v) / len(z) for v in values] for z in (x, y)])
            assert np.abs(counts[0] - counts[1]).max() < 0.02


def test_the_test_would_notice() -> None:
    a = np.array([p["size"][0] for p in ours(v2.ScaleJitter((200, 300), (0.15, 2.0)), 500, 375)], np.float64)
    b = np.array([p["size"][0] for p in theirs(v2.ScaleJitter((200, 300)), 500, 375)], np.float64)
    assert kolmogorov_smirnov(a, b) < 1e-5
