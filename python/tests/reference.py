"""The arithmetic of torch that pixels of tensors are verified by, put in place of torch's own where that is another.

torch's products of matrices and its softmax depend on the CPU: with AVX-512 on Intel's, products are fused into sums
and softmax adds in 16 lanes; on Intel's with AVX2 and on AMD's products are not fused, and without AVX-512 softmax adds
otherwise. Coordinates of warps and kernels of blurs over more than 8 pixels then differ by an ulp, and some values of
the pictures with them: docs/parity.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import torch

LANES = 16
LEAST_PRODUCTS = 400
"""Smaller products of batches of matrices are not the library's."""
EXP = (0.00139304355252534151, 0.00833336077630519867, 0.0416664853692054749, 0.166666671633720398, 0.5)
"""Of the polynomial, behind the first."""

Floats = npt.NDArray[np.float32]


@contextmanager
def arithmetic() -> Iterator[None]:
    """Products of matrices, and softmax, as the reference has them."""
    with ExitStack() as stack:
        if not fused():
            stack.enter_context(patch.object(torch.Tensor, "bmm", _bmm(torch.Tensor.bmm)))
            stack.enter_context(patch.object(torch, "matmul", _matmul(torch.matmul)))
        if torch.backends.cpu.get_cpu_capability() != "AVX512":
            stack.enter_context(patch.object(torch, "softmax", softmax))
        yield


def fused() -> bool:
    """Whether torch rounds each sum of products once."""
    a = 1 + 2.0**-12
    rounded = float(torch.tensor(a) * torch.tensor(a))
    grid = torch.tensor([-rounded, a, 0.0]).expand(1, LEAST_PRODUCTS, 3)
    theta = torch.tensor([1.0, a, 0.0]).reshape(1, 3, 1).expand(1, 3, 2)
    return bool(grid.bmm(theta).any())


def _bmm(own: Any) -> Any:
    def bmm(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        if self.shape[-1] != 3 or self.dtype != torch.float32 or self.shape[-2] * 3 * other.shape[-1] < LEAST_PRODUCTS:
            result: torch.Tensor = own(self, other)
            return result
        return points(self, other)

    return bmm


def _matmul(own: Any) -> Any:
    def matmul(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        if left.shape != (4, 3) or right.shape != (3, 2) or right.is_contiguous():
            result: torch.Tensor = own(left, right)
            return result
        return corners(left, right)

    return matmul


def corners(points: torch.Tensor, theta: torch.Tensor) -> torch.Tensor:
    """[4, 3] by a transposed [3, 2]: x·t₀ + t₂ + y·t₁, from the left, for points whose last number is 1."""
    x, y, _ = points.split(1, dim=1)
    return x * theta[0] + theta[2] + y * theta[1]


def points(grid: torch.Tensor, theta: torch.Tensor) -> torch.Tensor:
    """[n, p, 3] by [n, 3, q]: x·t₀, then fused with y·t₁ and with t₂, from the left."""
    a, t = grid.numpy().astype(np.longdouble), theta.numpy().astype(np.longdouble)
    total = np.zeros((), np.longdouble)
    for k in range(3):
        total = (a[:, :, k, None] * t[:, None, k, :] + total).astype(np.float32).astype(np.longdouble)
    return torch.from_numpy(total.astype(np.float32))


def softmax(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Of one dimension: e to the x by SLEEF's polynomial, from 16 numbers on added in 16 lanes that are halved."""
    assert x.ndim == 1 and dim == 0
    e = exp((x - x.max()).numpy())
    return torch.from_numpy(e * (np.float32(1) / _sum(e)))


def _sum(e: Floats) -> np.float32:
    lanes = np.zeros(LANES if len(e) >= LANES else 1, np.float32)
    for i, value in enumerate(e):
        lanes[i % len(lanes)] += value
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]


def exp(x: Floats) -> Floats:
    """expf with one unit of error (Shibata, Petrogalli: SLEEF, 2020), for x ≤ 0."""
    q = np.rint(x * np.float32(1.442695040888963407359924681))
    s = _fma(q, -0.693145751953125, x)
    s = _fma(q, -1.428606765330187045e-06, s)
    u = np.full_like(x, 0.000198527617612853646278381)
    for coefficient in EXP:
        u = _fma(u, s, coefficient)
    e = np.ldexp(1 + _fma(s * s, u, s), q.astype(np.int32))
    return np.where(x < -104, np.float32(0), e).astype(np.float32)


def _fma(a: Floats, b: Any, c: Any) -> Floats:
    x, y, z = (np.asarray(v, np.float32).astype(np.longdouble) for v in (a, b, c))
    return (x * y + z).astype(np.float32)
