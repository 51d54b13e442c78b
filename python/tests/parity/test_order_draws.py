"""Random parameters: distributed as those that torchvision's own make_params draws, and independent of each other.

`go run` builds the other side, pipeline/transform/internal/cmd/parity, in a few seconds. Seeds are fixed, so results do
not change from run to run. Most of the time goes to torchvision's draws; FEEDWATER_PARITY_DRAWS=10000 is quicker.
"""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
import struct
import subprocess
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

ROOT = Path(__file__).parents[3]
DRAWS = int(os.environ.get("FEEDWATER_PARITY_DRAWS", "100000"))
SIZES = [(500, 375), (375, 500), (224, 224), (1000, 100), (60, 900), (33, 31)]

CROP: dict[str, Any] = {"op": "RandomResizedCrop", "size": 224}
FLIP: dict[str, Any] = {"op": "RandomHorizontalFlip"}


def ours(plan: list[dict[str, Any]], w: int, h: int, count: int, **sample: int) -> np.ndarray[Any, Any]:
    """[sample, op, (applied, top, left, height, width)] of count samples."""
    request = {"transforms": plan, "seed": 17, "sample": sample, "w": w, "h": h, "count": count}
    run = subprocess.run(
        ["go", "run", "./pipeline/transform/internal/cmd/parity", "draw"],
        cwd=ROOT, input=json.dumps(request).encode() + b"\n", capture_output=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr.decode()
    return np.frombuffer(run.stdout, "<i4").reshape(count, len(plan), 5)


def draw_theirs(w: int, h: int, count: int) -> np.ndarray[Any, Any]:
    """[sample, (top, left, height, width)] by torchvision."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    crop, image = v2.RandomResizedCrop(224), [Image.new("RGB", (w, h))]
    rows = [list(crop.make_params(image).values()) for _ in range(count)]
    return np.array(rows, np.int64)


@pytest.fixture(scope="module")
def theirs() -> dict[tuple[int, int], np.ndarray[Any, Any]]:
    """torchvision's draws for each size. They are slow, so all cores draw; the slowest sizes first."""
    slowest = sorted(SIZES, key=lambda size: max(size) / min(size), reverse=True)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("fork")) as pool:
        drawn = {size: pool.submit(draw_theirs, *size, DRAWS) for size in slowest}
        return {size: made.result() for size, made in drawn.items()}


def statistics(params: np.ndarray[Any, Any], w: int, h: int) -> dict[str, np.ndarray[Any, Any]]:
    top, left, height, width = (params[:, i].astype(float) for i in range(4))
    return {
        "top": top, "left": left, "height": height, "width": width,
        "area": height * width, "ratio": width / height, "share above": top / np.maximum(h - height, 1),
    }  # fmt: skip


def kolmogorov_smirnov(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The two-sample test's asymptotic p; too large for values with ties, which errs to the safe side here."""
    both = np.sort(np.concatenate([a, b]))
    share_a, share_b = (np.searchsorted(np.sort(x), both, "right") / len(x) for x in (a, b))
    distance = np.abs(share_a - share_b).max()
    x = distance * math.sqrt(len(a) * len(b) / (len(a) + len(b)))
    return 1.0 if x < 0.3 else min(1.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 100)))


@pytest.mark.parametrize(("w", "h"), SIZES)
def test_crops_are_distributed_as_torchvisions(theirs: Any, w: int, h: int) -> None:
    a = statistics(ours([CROP], w, h, DRAWS)[:, 0, 1:], w, h)
    b = statistics(theirs[w, h], w, h)
    p = {name: kolmogorov_smirnov(a[name], b[name]) for name in a}
    assert min(p.values()) > 0.001, p


def test_the_test_would_notice(theirs: Any) -> None:
    """A scale of 0.11 instead of 0.08 is seen."""
    w, h = SIZES[0]
    a = statistics(ours([{**CROP, "scale": [0.11, 1]}], w, h, DRAWS)[:, 0, 1:], w, h)
    b = statistics(theirs[w, h], w, h)
    assert kolmogorov_smirnov(a["area"], b["area"]) < 1e-5


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_flips_come_at_their_rate(p: float) -> None:
    plan = [{**FLIP, "p": p}, {"op": "RandomVerticalFlip", "p": p}, {**FLIP, "p": p}]
    applied = ours(plan, 8, 8, DRAWS)[:, :, 0]
    for column in applied.T:
        assert abs(column.mean() - p) <= 4 * math.sqrt(p * (1 - p) / DRAWS)
    if 0 < p < 1:
        correlation = np.corrcoef(applied.T)
        assert np.abs(correlation - np.eye(3)).max() < 4 / math.sqrt(DRAWS)


def test_neighbours_and_epochs_are_unrelated() -> None:
    """Neighbouring samples, epochs, repeats, occurrences of an op, and different ops."""
    w, h = SIZES[0]
    plan = [CROP, FLIP, {**CROP, "size": [375, 500]}]
    # The second crop works on 224 x 224 pixels; its areas have another distribution, which does not matter here.
    runs = [ours(plan, w, h, DRAWS, **s).astype(float) for s in ({}, {"epoch": 1}, {"repeat": 1}, {"index": 1})]
    columns = []
    for run in runs:
        columns += [run[:, 0, 1], run[:, 0, 2], run[:, 0, 3] * run[:, 0, 4], run[:, 0, 4] / run[:, 0, 3], run[:, 1, 0]]
    columns.append(runs[0][:, 2, 3] * runs[0][:, 2, 4])
    assert np.array_equal(runs[0][1:], runs[3][:-1])  # index 1 is the second sample of index 0
    correlation = np.corrcoef(np.array(columns))
    per = len(columns) // 4
    for i in range(4):  # within one draw top, left, area and ratio are tied by the picture's edges
        correlation[i * per : (i + 1) * per, i * per : (i + 1) * per] = 0
    np.fill_diagonal(correlation, 0)
    assert np.abs(correlation).max() < 4.5 / math.sqrt(DRAWS)


M = 0xFFFFFFFF


def philox(counter: tuple[int, ...], key: tuple[int, int]) -> list[int]:
    """Philox4x32-10."""
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k0, q & M, (p >> 32) ^ c[3] ^ k1, p & M]
        k0, k1 = (k0 + 0x9E3779B9) & M, (k1 + 0xBB67AE85) & M
    return c


def expected(w: int, h: int, epoch: int, index: int) -> list[int]:
    """The documented recipe, written down once more; in float64, where a rounding hardly ever moves a size."""
    digest = hashlib.sha256(b"feedwater draw 1\0" + struct.pack("<Q", 17) + b"RandomResizedCrop/0").digest()
    key = struct.unpack("<II", digest[:8])
    for block in range(10):
        x = philox((block, epoch, index, 0), key)
        unit = [(v >> 8) * 2.0**-24 for v in x]
        area = w * h * float(np.float32(np.float32(0.08) + np.float32(0.92) * unit[0]))
        ratio = math.exp(float(np.float32(math.log(0.75) + (math.log(4 / 3) - math.log(0.75)) * unit[1])))
        cw, ch = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < cw <= w and 0 < ch <= h:
            return [x[2] * (h - ch + 1) >> 32, x[3] * (w - cw + 1) >> 32, ch, cw]
    raise AssertionError("needs the fallback")


def test_crops_follow_the_recipe() -> None:
    w, h, n = 500, 375, 300
    got = ours([FLIP, CROP], w, h, n, epoch=5, index=1000)[:, 1, 1:]
    want = [expected(w, h, 5, 1000 + i) for i in range(n)]
    # An ulp of a float32 can move a size by one where it falls on a half: about once in 10,000.
    assert sum(row.tolist() != other for row, other in zip(got, want)) <= 1
