"""Whether torch computes here as where the pixels of tensors were verified: its own depend on the CPU."""

from __future__ import annotations

from functools import cache

import torch

ROWS = 1000
"""Of a product: smaller ones are not the library's."""


@cache
def is_reference() -> bool:
    """Sums of products are rounded once each, and sums of vectors have 16 lanes. Where they are not, as on AMD's CPUs
    without AVX-512, coordinates of warps and kernels of blurs over more than 8 pixels differ by an ulp, and some
    values of the pictures with them: docs/parity.md.
    """
    a = 1 + 2.0**-12
    rounded = float(torch.tensor(a) * torch.tensor(a))
    left, right = torch.tensor([-rounded, a, 0.0]), torch.tensor([1.0, a, 0.0])
    error = [row.expand(1, ROWS, 3).bmm(column.reshape(1, 3, 1).expand(1, 3, 2)) for row, column in both(left, right)]
    return any(bool(e.any()) for e in error) and torch.backends.cpu.get_cpu_capability() == "AVX512"


def both(left: torch.Tensor, right: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The order of a sum is the library's affair."""
    return [(left, right), (left.flip(0), right.flip(0))]
