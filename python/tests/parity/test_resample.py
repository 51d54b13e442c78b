"""Resizing and whole transforms, against the installed Pillow and torchvision: every byte must be equal.

`go run` builds the other side, pipeline/transform/internal/cmd/parity, in a few seconds; it makes every picture at
every kernel level. FEEDWATER_PARITY_SHAPES and FEEDWATER_PARITY_PHOTOS say how many pictures.
"""

from __future__ import annotations

import functools
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

ROOT = Path(__file__).parents[3]
SHAPES = int(os.environ.get("FEEDWATER_PARITY_SHAPES", "600"))
PHOTOS = int(os.environ.get("FEEDWATER_PARITY_PHOTOS", "24"))

Array = np.ndarray[Any, np.dtype[np.uint8]]


def parity(mode: str, requests: list[tuple[dict[str, Any], Array]]) -> bytes:
    """What the Go side answers to all requests."""
    stdin = b"".join(json.dumps(q).encode() + b"\n" + pix.tobytes() for q, pix in requests)
    run = subprocess.run(
        ["go", "run", "./pipeline/transform/internal/cmd/parity", mode],
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout


def noise(rng: random.Random, w: int, h: int) -> Array:
    """Random samples, a quarter of them black or white."""
    g = np.random.default_rng(rng.getrandbits(32))
    pix = g.integers(0, 256, (h, w, 3), np.uint8)
    return np.where(g.random((h, w, 3)) < 0.25, np.where(pix < 128, 0, 255), pix).astype(np.uint8)


def flipped(pix: Array, flips: tuple[bool, bool]) -> Array:
    pix = pix[:, ::-1] if flips[0] else pix
    return pix[::-1] if flips[1] else pix


def side(rng: random.Random) -> int:
    return rng.choice([1, rng.randint(1, 9), rng.randint(1, 120), rng.randint(1, 120), rng.randint(1, 400)])


def extreme(rng: random.Random) -> tuple[int, int, int, int]:
    """Sizes from and to, very long on one side."""
    long, short = rng.choice([3000, 20000, 65500]), rng.randint(1, 3)
    a, b = rng.choice([(long, rng.randint(1, 50)), (rng.randint(1, 50), long)])
    return rng.choice([(a, short, b, rng.randint(1, 4)), (short, a, rng.randint(1, 4), b)])


def shape(rng: random.Random, i: int) -> dict[str, Any]:
    w, h, to_w, to_h = extreme(rng) if i % 25 == 0 else (side(rng), side(rng), side(rng), side(rng))
    to_w, to_h = (w if rng.random() < 0.15 else to_w), (h if rng.random() < 0.15 else to_h)
    x0, y0, x1, y1 = 0, 0, to_w, to_h
    if rng.random() < 0.6:
        x0, y0 = rng.randrange(to_w), rng.randrange(to_h)
        x1, y1 = rng.randint(x0 + 1, to_w), rng.randint(y0 + 1, to_h)
    return {
        "from": {"x": w, "y": h},
        "to": {"x": to_w, "y": to_h},
        "rect": {"min": {"x": x0, "y": y0}, "max": {"x": x1, "y": y1}},
        "mirror": {"x": rng.random() < 0.3, "y": rng.random() < 0.3},
        "flip": {"x": rng.random() < 0.3, "y": rng.random() < 0.3},
        "reference": rng.choice(["pillow-13", "pillow-13", "pillow-12"]),
        "rows": rng.choice([1, 3, 8, 16, 16, 0]),
    }


def pillow(q: dict[str, Any], pix: Array) -> Array:
    """The same by Pillow: mirror, resize, cut, flip. Before Pillow 13 the horizontal pass always came first."""
    image = Image.fromarray(np.ascontiguousarray(flipped(pix, (q["mirror"]["x"], q["mirror"]["y"]))))
    to = (q["to"]["x"], q["to"]["y"])
    if q["reference"] == "pillow-12":
        image = image.resize((to[0], image.height), Image.Resampling.BILINEAR)
    low, high = q["rect"]["min"], q["rect"]["max"]
    out = np.asarray(image.resize(to, Image.Resampling.BILINEAR))[low["y"] : high["y"], low["x"] : high["x"]]
    return flipped(out, (q["flip"]["x"], q["flip"]["y"]))


def test_resampler_is_pillow() -> None:
    rng = random.Random(1)
    requests = []
    for i in range(SHAPES):
        q = shape(rng, i)
        requests.append((q, noise(rng, q["from"]["x"], q["from"]["y"])))
    vertical_first = 0
    answer = memoryview(parity("resample", requests))
    for q, pix in requests:
        want = pillow(q, pix)
        got = np.frombuffer(answer[: want.size], np.uint8).reshape(want.shape)
        answer = answer[want.size :]
        assert np.array_equal(got, want), (q, int(np.abs(got.astype(int) - want).max()))
        shrinks = q["from"]["y"] - q["to"]["y"]
        vertical_first += shrinks > max(0, 2 * (q["from"]["x"] - q["to"]["x"])) and q["reference"] == "pillow-13"
    assert not answer
    assert vertical_first > SHAPES // 20


@functools.cache
def photos() -> list[Array]:
    """Photographs decoded by Pillow, or generated pictures where there are none."""
    folder = os.environ.get("FEEDWATER_PHOTOS") or str(ROOT.parent / "shared" / "data" / "photos")
    files = sorted(Path(folder).glob("*/*"))
    if files:
        chosen = files[:: max(1, len(files) // PHOTOS)][:PHOTOS]
        return [np.asarray(Image.open(f).convert("RGB")) for f in chosen]
    rng = random.Random(2)
    return [noise(rng, rng.randint(30, 500), rng.randint(30, 500)) for _ in range(PHOTOS)]


CROP: dict[str, Any] = {"op": "RandomResizedCrop", "size": 224}
RESIZE: dict[str, Any] = {"op": "Resize", "size": 256}
PLANS: dict[str, list[dict[str, Any]]] = {
    "train": [CROP, {"op": "RandomHorizontalFlip"}],
    "flips first": [{"op": "RandomVerticalFlip"}, {"op": "RandomHorizontalFlip"}, CROP],
    "evaluate": [RESIZE, {"op": "CenterCrop", "size": 224}],
    "resize": [{"op": "Resize", "size": 200, "max_size": 260}],
    "padded": [
        {"op": "CenterCrop", "size": [420, 520]},
        {"op": "Resize", "size": [150, 170]},
        {"op": "RandomVerticalFlip"},
    ],
    "long side": [{"op": "Resize", "size": None, "max_size": 180}],
    "two resizes": [RESIZE, CROP, {"op": "RandomHorizontalFlip", "p": 1}],
}


def torchvision(step: dict[str, Any], draw: dict[str, Any], image: Image.Image) -> Image.Image:
    """One step by torchvision, with the parameters that were drawn."""
    arguments = {k: v for k, v in step.items() if k != "op"}
    transform = getattr(v2, step["op"])(**arguments)
    assert draw["op"] == step["op"]
    return transform.transform(image, draw["parameters"]) if draw["applied"] else image


@pytest.mark.parametrize("name", PLANS)
def test_transforms_are_torchvision(name: str) -> None:
    torch.set_num_threads(1)
    plan, pictures = PLANS[name], photos()
    requests = []
    for i, pix in enumerate(pictures):
        q = {"transforms": plan, "seed": 17, "sample": {"epoch": i % 3, "index": i, "repeat": 0}}
        requests.append(({**q, "w": pix.shape[1], "h": pix.shape[0]}, pix))
    answer = memoryview(parity("transform", requests))
    applied = {True: 0, False: 0}
    for q, pix in requests:
        end = bytes(answer[:4096]).index(b"\n")
        head = json.loads(bytes(answer[:end]))
        size = head["w"] * head["h"] * 3
        got = np.frombuffer(answer[end + 1 : end + 1 + size], np.uint8).reshape(head["h"], head["w"], 3)
        answer = answer[end + 1 + size :]
        image = Image.fromarray(pix)
        for step, draw in zip(plan, head["draws"]):
            image = torchvision(step, draw, image)
            applied[draw["applied"]] += 1
        want = np.asarray(image)
        assert got.shape == want.shape and np.array_equal(got, want), (name, q["sample"], head["draws"])
    assert not answer
    assert applied[True] > 0
