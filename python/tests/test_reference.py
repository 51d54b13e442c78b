"""The stand-ins for torch's arithmetic: where torch's own is the reference, they are the same."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

torch = pytest.importorskip("torch")

import reference  # noqa: E402

ROWS = 5000
"""As many points as a small picture has."""


def test_points_are_rounded_once_for_each_sum() -> None:
    grid = torch.rand(1, ROWS, 3, generator=torch.Generator().manual_seed(1)) * 500
    theta = torch.rand(1, 3, 2, generator=torch.Generator().manual_seed(2))
    got = reference.points(grid, theta)
    for row in range(ROWS):
        for column in range(2):
            total = Fraction(0)
            for k in range(3):
                product = Fraction(float(grid[0, row, k])) * Fraction(float(theta[0, k, column]))
                total = Fraction(nearest(total + product))
            assert float(got[0, row, column]) == total


def nearest(value: Fraction) -> float:
    """The float32 next to it; of two as near, the even one."""
    exponent = max(-149, math.frexp(float(value))[1] - 24)
    return float(round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent)


@pytest.mark.parametrize(
    ("taps", "sigma", "first"),
    [
        (3, 0.5, ["0x1.b440aap-4", "0x1.92efd4p-1"]),
        (9, 2.0, ["0x1.c4b2fp-6", "0x1.0f7dfap-4", "0x1.fb36c6p-4", "0x1.70fef8p-3", "0x1.a22092p-3"]),
        (23, 1.7, ["0x1.a1e35ep-33", "0x1.ee1424p-28", "0x1.9d4b06p-23", "0x1.e92fbap-19", "0x1.99a74ap-15"]),
    ],
)
def test_softmax_is_that_of_avx512(taps: int, sigma: float, first: list[str]) -> None:
    got = reference.softmax(exponents(taps, sigma), 0)
    assert [float(value) for value in got[: len(first)]] == [float.fromhex(value) for value in first]


def test_within_torch_computes_as_the_reference() -> None:
    grid, theta = torch.rand(1, ROWS, 3) * 500, torch.rand(1, 3, 2)
    with reference.arithmetic():
        assert reference.fused()
        assert torch.equal(grid.bmm(theta), reference.points(grid, theta))
        corners, flat = torch.cat((grid[0, :4, :2], torch.ones(4, 1)), 1), theta[0].T.contiguous().T
        assert torch.equal(torch.matmul(corners, flat), reference.corners(corners, flat))
        for taps in (3, 5, 7, 9, 23, 41):
            x = exponents(taps, 0.3 * taps / 4)
            assert torch.equal(torch.softmax(x, dim=0), reference.softmax(x, 0)), taps


def exponents(taps: int, sigma: float) -> torch.Tensor:
    """Of a blur's kernel, as torchvision has them."""
    limit = (taps - 1) / (2 * math.sqrt(2))
    return torch.linspace(-limit, limit, taps).div(sigma).pow(2).neg()
