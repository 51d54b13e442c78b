"""Warps and policies draw as torchvision does: the same magnitudes, equally often.

FEEDWATER_PARITY_DRAWS says how many draws are compared; seeds are fixed, so results do not change from run to run.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from test_order_draws import ROOT, kolmogorov_smirnov
from torchvision.transforms import v2

from feedwater._plan.compiler import compile_transform

DRAWS = min(int(os.environ.get("FEEDWATER_PARITY_DRAWS", "40000")), 40000)
SIZE = (331, 250)


def ours(transform: Any, count: int) -> list[dict[str, Any]]:
    """What is drawn for so many samples: names and values of torchvision's make_params."""
    plan = [op.plan() for op in compile_transform(transform).ops]
    request = {"transforms": plan, "seed": 17, "w": SIZE[0], "h": SIZE[1], "count": count}
    run = subprocess.run(
        ["go", "run", "./pipeline/transform/internal/cmd/parity", "tell"],
        cwd=ROOT, input=json.dumps(request).encode() + b"\n", capture_output=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr.decode()
    return [json.loads(line)[0]["parameters"] for line in run.stdout.splitlines()]


def flat(parameters: dict[str, Any]) -> dict[str, float]:
    """Every number by a name of its own."""
    numbers = {}
    for name, value in parameters.items():
        for i, number in enumerate(value if isinstance(value, (list, tuple)) else [value]):
            numbers[f"{name}{i}"] = float(number)
    return numbers


@pytest.mark.parametrize(
    "transform",
    [
        v2.RandomRotation(30),
        v2.RandomRotation((-400, 1000)),
        v2.RandomAffine(30),
        v2.RandomAffine((10, 50), (0.1, 0.3), (0.5, 1.7), 20),
        v2.RandomAffine(0, (1, 0), None, (-20, 20, 5, 30)),
        v2.RandomPerspective(p=1),
        v2.RandomPerspective(0.1, p=1),
    ],
    ids=str,
)
def test_parameters_are_distributed_as_torchvisions(transform: Any) -> None:
    torch.manual_seed(1)
    image = [Image.new("RGB", SIZE)]
    count = min(DRAWS, 20000)
    theirs = [flat(transform.make_params(image)) for _ in range(count)]
    drawn = [flat(parameters) for parameters in ours(transform, count)]
    assert drawn[0].keys() == theirs[0].keys()
    columns, bounded = [], not isinstance(transform, v2.RandomPerspective)  # whose coefficients depend on each other
    for name in drawn[0]:  # rounded, as least squares leave 1e-15 of 0
        a, b = (np.array([row[name] for row in rows]).round(9) for rows in (drawn, theirs))
        if bounded:
            assert a.min() >= b.min() - np.ptp(b) / 500 and a.max() <= b.max() + np.ptp(b) / 500
        assert kolmogorov_smirnov(a, b) > 0.001, name
        if np.ptp(a):
            columns.append(a)
    if len(columns) > 1 and bounded:  # the parameters of one sample are unrelated
        assert np.abs(np.corrcoef(columns) - np.eye(len(columns))).max() < 4.5 / math.sqrt(count)


def recorded(policy: Any, count: int) -> list[list[tuple[str, float]]]:
    """What torchvision's policy applies."""
    torch.manual_seed(1)
    image, all_applied = Image.new("RGB", SIZE), []

    def note(picture: Any, name: str, magnitude: float, **_: Any) -> Any:
        all_applied[-1].append((name, magnitude))
        return picture

    policy._apply_image_or_video_transform = note
    for _ in range(count):
        all_applied.append([])
        policy(image)
    del policy._apply_image_or_video_transform
    return all_applied


def deviation(a: Counter[Any], b: Counter[Any]) -> float:
    """Of two samples' counts, in standard deviations of chi-square; rare outcomes count as one."""
    outcomes = {key if a[key] + b[key] >= 20 else "rare" for key in a.keys() | b.keys()}
    na, nb, chi = sum(a.values()), sum(b.values()), 0.0
    for key in outcomes - {"rare"}:
        chi += (a[key] * math.sqrt(nb / na) - b[key] * math.sqrt(na / nb)) ** 2 / (a[key] + b[key])
    degrees = len(outcomes) - 1
    return (chi - degrees) / math.sqrt(2 * degrees)


@pytest.mark.parametrize(
    "policy",
    [
        v2.RandAugment(),
        v2.RandAugment(3, 4, 10),
        v2.TrivialAugmentWide(),
        v2.TrivialAugmentWide(8),
        *map(v2.AutoAugment, v2.AutoAugmentPolicy),
    ],
    ids=lambda policy: f"{type(policy).__name__} {getattr(policy, 'policy', '')}",
)
def test_policies_apply_the_same_as_often(policy: Any) -> None:
    theirs = recorded(policy, DRAWS)
    drawn = [[(op["name"], op["magnitude"]) for op in parameters["ops"]] for parameters in ours(policy, DRAWS)]
    singles = [Counter(op for ops in rows for op in ops) for rows in (drawn, theirs)]
    assert singles[0].keys() == singles[1].keys()  # every magnitude, to the bit
    assert deviation(*singles) < 3.1
    names = [Counter(tuple(name for name, _ in ops) for ops in rows) for rows in (drawn, theirs)]
    assert deviation(*names) < 3.1
    shifted = Counter({key: count + 0.3 * count * (index % 2) for index, (key, count) in enumerate(singles[0].items())})
    assert deviation(shifted, singles[1]) > 3.1  # and the test would notice


@pytest.mark.parametrize(
    ("width", "alpha", "all_ops"), [(3, 1.0, True), (5, 0.3, False), (2, 8.0, True)], ids=lambda value: str(value)
)
def test_augmix_mixes_as_torchvision_does(width: int, alpha: float, all_ops: bool) -> None:
    policy, count = v2.AugMix(10, width, alpha=alpha, all_ops=all_ops), DRAWS // 4
    drawn = ours(policy, count)
    torch.manual_seed(1)
    pairs, parts = (torch._sample_dirichlet(torch.full((count, n), alpha)).numpy() for n in (2, width))
    assert kolmogorov_smirnov(np.array([row["weight"] for row in drawn]), pairs[:, 0]) > 0.001
    for i in range(width):
        weights = np.array([row["chains"][i]["weight"] for row in drawn])
        assert kolmogorov_smirnov(weights, parts[:, i] * pairs[:, 1]) > 0.001
    depths = Counter(len(chain["ops"]) for row in drawn for chain in row["chains"])
    assert deviation(depths, Counter(dict.fromkeys((1, 2, 3), count * width // 3))) < 3.1
    space = policy._AUGMENTATION_SPACE if all_ops else policy._PARTIAL_AUGMENTATION_SPACE
    theirs: Counter[Any] = Counter()  # as often as should be, in many draws
    for name, (magnitudes, signed) in space.items():
        table = magnitudes(10, SIZE[1], SIZE[0])
        for m in [0.0] * 10 if table is None else map(float, table):
            for sign in (1, -1) if signed else (1, 1):
                theirs[name, sign * m] += 10**6
    assert (mine := Counter((op["name"], op["magnitude"]) for row in drawn for c in row["chains"] for op in c["ops"]))
    assert mine.keys() == theirs.keys()
    assert deviation(mine, theirs) < 3.1
