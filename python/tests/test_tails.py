"""500 samples at odd batch and world sizes: what each rank gets in the end, against numbers written out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from expect import order

from feedwater._common.ranks import Ranks
from feedwater._order.steps import count_steps

SAMPLES = 500

# Per (batch, world) the last step, as (first position, samples) of each rank. How they come about:
#   G = batch x world; 500 = whole x G + rest.
#   short: each rank has ceil(rest / world) of them, side by side; positions from 500 on are repeats.
#   valid: the first ranks are full, the last have fewer or none; nothing is repeated, every batch has `batch` rows.
#   drop:  the last step is the last whole one, with batch samples on each rank.
LAST: dict[tuple[int, int], dict[str, Any]] = {
    # 500 = 71 x 7 + 3
    (7, 1): {
        "steps": {"short": 72, "valid": 72, "drop": 71},
        "short": [(497, 3)],
        "valid": [(497, 3)],
        "drop": [(490, 7)],
    },
    # 500 = 166 x 3 + 2: ceil(2 / 3) = 1, of which position 500 is a repeat
    (1, 3): {
        "steps": {"short": 167, "valid": 167, "drop": 166},
        "short": [(498, 1), (499, 1), (500, 1)],
        "valid": [(498, 1), (499, 1), (500, 0)],
        "drop": [(495, 1), (496, 1), (497, 1)],
    },
    # 500 = 23 x 21 + 17: ceil(17 / 3) = 6, 18 in all, one repeat
    (7, 3): {
        "steps": {"short": 24, "valid": 24, "drop": 23},
        "short": [(483, 6), (489, 6), (495, 6)],
        "valid": [(483, 7), (490, 7), (497, 3)],
        "drop": [(462, 7), (469, 7), (476, 7)],
    },
    # 500 = 7 x 65 + 45: 45 / 5 = 9 exactly, no repeat
    (13, 5): {
        "steps": {"short": 8, "valid": 8, "drop": 7},
        "short": [(455, 9), (464, 9), (473, 9), (482, 9), (491, 9)],
        "valid": [(455, 13), (468, 13), (481, 13), (494, 6), (507, 0)],
        "drop": [(390, 13), (403, 13), (416, 13), (429, 13), (442, 13)],
    },
    # 500 = 2 x 231 + 38: ceil(38 / 7) = 6, 42 in all, four repeats
    (33, 7): {
        "steps": {"short": 3, "valid": 3, "drop": 2},
        "short": [(462, 6), (468, 6), (474, 6), (480, 6), (486, 6), (492, 6), (498, 6)],
        "valid": [(462, 33), (495, 5), (528, 0), (561, 0), (594, 0), (627, 0), (660, 0)],
        "drop": [(231, 33), (264, 33), (297, 33), (330, 33), (363, 33), (396, 33), (429, 33)],
    },
    # 500 < 512, so the first step is the last: ceil(500 / 8) = 63, 504 in all, four repeats; none is whole
    (64, 8): {
        "steps": {"short": 1, "valid": 1, "drop": 0},
        "short": [(0, 63), (63, 63), (126, 63), (189, 63), (252, 63), (315, 63), (378, 63), (441, 63)],
        "valid": [(0, 64), (64, 64), (128, 64), (192, 64), (256, 64), (320, 64), (384, 64), (448, 52)],
        "drop": [],
    },
    (501, 1): {
        "steps": {"short": 1, "valid": 1, "drop": 0},
        "short": [(0, 500)],
        "valid": [(0, 500)],
        "drop": [],
    },
}


def naive(batch: int, world: int, tail: str) -> list[list[list[int]]]:
    """[step][rank] -> positions, with lists and slices."""
    left, steps = list(range(SAMPLES)), []
    while left:
        taken, left = left[: batch * world], left[batch * world :]
        if tail == "short":
            while len(taken) % world:
                taken.append(taken[-1] + 1)
            each = len(taken) // world
        else:
            each = batch
        if tail == "drop" and len(taken) < batch * world:
            break
        steps.append([taken[rank * each : (rank + 1) * each] for rank in range(world)])
    return steps


@pytest.mark.parametrize("tail", ["short", "valid", "drop"])
@pytest.mark.parametrize(("batch", "world"), LAST)
def test_every_rank_gets_what_is_written_out(fake: Any, batch: int, world: int, tail: str) -> None:
    fake.set(samples=SAMPLES)
    expected, written = naive(batch, world, tail), LAST[batch, world]
    assert len(expected) == written["steps"][tail] == count_steps(SAMPLES, batch, Ranks(0, world), tail)
    indices = order(samples=SAMPLES)
    for rank in range(world):
        loader = fake.loader(
            batch_size=batch,
            shuffle=True,
            tail=tail,
            rank=rank,
            num_replicas=world,
            fields=("index", "valid"),
        )
        if not expected:
            for use in (len, lambda loader: next(iter(loader))):
                with pytest.raises(ValueError, match=rf"batch_size={batch} on {world} rank.*no batch is left"):
                    use(loader)
            continue
        assert len(loader) == len(expected)
        seen = []
        for step, (index, valid) in enumerate(loader):
            held = expected[step][rank]
            assert valid.tolist() == [True] * len(held) + [False] * (len(valid) - len(held))
            assert index[valid].tolist() == [indices[position % SAMPLES] for position in held]
            assert len(index) == (len(held) if tail == "short" else batch)
            seen.append((loader.last.position, len(held)))
        assert len(seen) == len(expected)
        assert seen[-1] == written[tail][rank]


def test_what_is_written_out_is_whole() -> None:
    for (batch, world), written in LAST.items():
        for tail in ("short", "valid"):
            held = [p for start, count in written[tail] for p in range(start, start + count)]
            rest = range(SAMPLES - SAMPLES % (batch * world), SAMPLES)
            assert held[: len(rest)] == list(rest)
            assert len(held) - len(rest) <= (world - 1 if tail == "short" else 0)
