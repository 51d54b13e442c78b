"""What ops of colour draw, against torchvision's make_params: the same distributions. Seeds are fixed on both sides."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from test_order_draws import kolmogorov_smirnov
from test_resample import parity
from torchvision.transforms import v2

ROOT = Path(__file__).parents[3]
DRAWS = 5000


def ours(plan: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """[sample][op] of what was drawn."""
    request = {"transforms": plan, "seed": 23, "w": 40, "h": 30, "count": DRAWS}
    run = subprocess.run(
        ["go", "run", "./pipeline/transform/internal/cmd/parity", "tell"],
        cwd=ROOT, input=json.dumps(request).encode() + b"\n", capture_output=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr.decode()
    return [json.loads(line) for line in run.stdout.splitlines()]


def theirs(transform: Any) -> list[dict[str, Any]]:
    torch.manual_seed(2)
    image = [Image.new("RGB", (40, 30))]
    return [transform.make_params(image) for _ in range(DRAWS)]


def plain(value: Any) -> Any:
    """Tensors as lists."""
    return value.tolist() if isinstance(value, torch.Tensor) else value


OPS: list[tuple[Callable[[], Any], dict[str, Any]]] = [
    (
        lambda: v2.ColorJitter(0.4, (0.2, 3), None, 0.1),
        {"op": "ColorJitter", "brightness": 0.4, "contrast": [0.2, 3], "hue": 0.1},
    ),
    (lambda: v2.RandomPhotometricDistort(), {"op": "RandomPhotometricDistort"}),
    (lambda: v2.RandomPhotometricDistort(p=0.9), {"op": "RandomPhotometricDistort", "p": 0.9}),
    (lambda: v2.RandomChannelPermutation(), {"op": "RandomChannelPermutation"}),
    (lambda: v2.GaussianBlur(5, (0.1, 5)), {"op": "GaussianBlur", "kernel_size": 5, "sigma": [0.1, 5]}),
]


@pytest.mark.parametrize(
    ("transform", "step"), OPS, ids=lambda value: value.get("op") if isinstance(value, dict) else ""
)
def test_draws_are_distributed_as_torchvisions(transform: Callable[[], Any], step: dict[str, Any]) -> None:
    a = [draws[0]["parameters"] for draws in ours([step])]
    b = [{name: plain(value) for name, value in params.items()} for params in theirs(transform())]
    assert a[0].keys() == b[0].keys()
    for name in a[0]:
        one, other = [row[name] for row in a], [row[name] for row in b]
        assert same_kind(one, other), name
        assert distance(one, other) > 0.001, name
    assert independent(a)


def same_kind(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return {type(value) for value in a} == {type(value) for value in b}


def distance(a: Sequence[Any], b: Sequence[Any]) -> float:
    """The p of the two-sample test that fits the values."""
    missing = np.array([[value is None for value in values] for values in (a, b)])
    p = chi_square(Counter(missing[0].tolist()), Counter(missing[1].tolist()))
    a, b = ([value for value in values if value is not None] for values in (a, b))
    if a and isinstance(a[0], float):
        return min(p, kolmogorov_smirnov(np.array(a), np.array(b)))
    if a and isinstance(a[0], list) and isinstance(a[0][0], float):
        return min(p, kolmogorov_smirnov(np.array(a)[:, 0], np.array(b)[:, 0]))
    return min(p, chi_square(Counter(map(str, a)), Counter(map(str, b))))


def chi_square(a: Counter[Any], b: Counter[Any]) -> float:
    """The two-sample test's p, for few kinds that each come often."""
    kinds = sorted(set(a) | set(b))
    if len(kinds) < 2:
        return 1.0
    scale = (a.total() / b.total()) ** 0.5
    x = sum((a[kind] / scale - b[kind] * scale) ** 2 / (a[kind] + b[kind]) for kind in kinds)
    return float(torch.special.gammaincc(torch.tensor((len(kinds) - 1) / 2), torch.tensor(x / 2)))


def independent(rows: list[dict[str, Any]]) -> bool:
    """Whether numbers that are drawn for one sample, and for its neighbour, are unrelated."""
    columns = [[row[name] for row in rows] for name in rows[0]]
    numbers = [np.array(column) for column in columns if all(isinstance(value, float) for value in column)]
    both = [column[:-1] for column in numbers] + [column[1:] for column in numbers]
    if not both:
        return True
    correlation = np.corrcoef(np.array(both)) - np.eye(len(both))
    return bool(np.abs(correlation).max() < 4.5 / DRAWS**0.5)


@pytest.mark.parametrize(
    ("level", "mean", "sigma"), [(128, 0.0, 0.1), (128, 0.02, 0.01), (10, 0.0, 0.1), (250, -0.1, 0.3)]
)
def test_noise_is_distributed_as_torchvisions(level: int, mean: float, sigma: float) -> None:
    """Of pictures of one grey: every value's noise, the edges of the range too."""
    flat = np.full((200, 200, 3), level, np.uint8)
    step = {"op": "GaussianNoise", "mean": mean, "sigma": sigma}
    q = {"transforms": [step], "seed": 3, "sample": {"epoch": 0, "index": 1, "repeat": 0}, "w": 200, "h": 200}
    ours = np.frombuffer(parity("transform", [(q, flat)]).split(b"\n", 1)[1], np.uint8)
    torch.manual_seed(4)
    theirs = v2.functional.gaussian_noise(torch.from_numpy(flat), mean, sigma).numpy().ravel()
    assert ours.shape == theirs.shape
    often = np.flatnonzero(np.bincount(ours, minlength=256) + np.bincount(theirs, minlength=256) > 40)
    a, b = (Counter(values[np.isin(values, often)].tolist()) for values in (ours, theirs))
    assert chi_square(a, b) > 0.001


def test_the_test_would_notice() -> None:
    """A range that is a little too wide, a probability that is a little too large, an order that is not even."""
    rng = np.random.default_rng(1)
    assert distance(list(rng.uniform(0.6, 1.4, DRAWS)), list(rng.uniform(0.6, 1.45, DRAWS))) < 0.001
    factors = [[None if u < p else 1.0 for u in rng.random(DRAWS)] for p in (0.5, 0.55)]
    assert distance(*factors) < 0.001
    orders = [[rng.permutation(4).tolist() for _ in range(DRAWS)], [rng.permutation(4).tolist() for _ in range(DRAWS)]]
    assert distance(*orders) > 0.001
    assert distance(orders[0], [order if order[0] else [1, 2, 3, 0] for order in orders[1]]) < 0.001


@pytest.mark.parametrize("p", [0.0, 0.1, 1.0])
def test_ops_of_one_effect_come_at_their_rate(p: float) -> None:
    names = ["RandomInvert", "RandomEqualize", "RandomAutocontrast", "RandomGrayscale"]
    inside = {"op": "RandomApply", "p": p, "transforms": [{"op": "RandomInvert", "p": 1}]}
    applied = np.array(
        [[draw["applied"] for draw in draws] for draws in ours([{"op": n, "p": p} for n in names] + [inside])]
    )
    assert (np.abs(applied.mean(0) - p) <= 4 * (p * (1 - p) / DRAWS) ** 0.5).all()
    if 0 < p < 1:
        assert np.abs(np.corrcoef(applied.T.astype(float)) - np.eye(5)).max() < 4 / DRAWS**0.5
