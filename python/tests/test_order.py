"""The steps of epochs against rules written out the long way."""

from __future__ import annotations

from itertools import product

import pytest

from feedwater._common.ranks import Ranks
from feedwater._order.steps import RangeOrder, Step, Tail

SAMPLES = 500
SHAPES = [*product((1, 7, 16, 33, 64, 499, 500, 501), (1, 2, 3, 7, 8, 64))]


def epoch(order: RangeOrder, world: int, start: int = 0) -> list[list[Step]]:
    """All steps from a cursor on, each as seen by every rank."""
    steps = []
    while True:
        seen = [order.step_at(3, start, Ranks(rank, world)) for rank in range(world)]
        if seen[0] is None:
            assert seen == [None] * world
            return steps
        steps.append(seen)
        assert {step.end for step in seen} == {seen[0].end}
        start = seen[0].end


@pytest.mark.parametrize(("batch", "world"), SHAPES)
def test_short_takes_each_sample_once_and_repeats_at_most_world_minus_one(batch: int, world: int) -> None:
    order = RangeOrder(SAMPLES, batch, "short", None)
    steps = epoch(order, world)
    assert len(steps) == order.count_steps(Ranks(0, world)) == -(-SAMPLES // (batch * world))
    taken = []
    for step in steps:
        assert len({part.size for part in step}) == 1, "all ranks have batches of one size"
        assert all(part.rows == part.size <= batch for part in step)
        taken += [p for part in step for p in range(part.position, part.position + part.size)]
    assert taken == list(range(len(taken))), "ranks lie side by side, steps behind each other"
    assert 0 <= len(taken) - SAMPLES <= world - 1


@pytest.mark.parametrize(("batch", "world"), SHAPES)
def test_valid_keeps_the_shape_and_counts_each_sample_once(batch: int, world: int) -> None:
    order = RangeOrder(SAMPLES, batch, "valid", None)
    steps = epoch(order, world)
    assert len(steps) == order.count_steps(Ranks(0, world)) == -(-SAMPLES // (batch * world))
    assert all(part.rows == batch for step in steps for part in step)
    held = [p for step in steps for part in step for p in range(part.position, part.position + part.size)]
    assert held == list(range(SAMPLES))


@pytest.mark.parametrize(("batch", "world"), SHAPES)
def test_drop_leaves_out_what_is_no_whole_step(batch: int, world: int) -> None:
    order = RangeOrder(SAMPLES, batch, "drop", None)
    steps = epoch(order, world)
    whole = batch * world
    assert len(steps) == order.count_steps(Ranks(0, world)) == SAMPLES // whole
    held = [p for step in steps for part in step for p in range(part.position, part.position + part.size)]
    assert held == list(range(SAMPLES // whole * whole))


def test_the_last_step_of_500_samples_on_3_ranks_written_out() -> None:
    # 500 = 5 x 96 + 20: ceil(20 / 3) = 7 each, the last one is position 500, which is a repeat.
    at = [RangeOrder(500, 32, "short", None).step_at(0, 480, Ranks(rank, 3)) for rank in range(3)]
    assert [(s.position, s.size, s.rows, s.end) for s in at] == [(480, 7, 7, 500), (487, 7, 7, 500), (494, 7, 7, 500)]
    # With a fixed shape rank 0 is filled first: 20 rows; the others hold nothing.
    at = [RangeOrder(500, 32, "valid", None).step_at(0, 480, Ranks(rank, 3)) for rank in range(3)]
    assert [(s.position, s.size, s.rows, s.end) for s in at] == [
        (480, 20, 32, 500),
        (512, 0, 32, 500),
        (544, 0, 32, 500),
    ]
    assert RangeOrder(500, 32, "drop", None).step_at(0, 480, Ranks(0, 3)) is None


def test_another_world_and_batch_size_continue_the_same_order() -> None:
    held, start = [], 0
    for batch, world, count in ((16, 2, 5), (7, 8, 3), (64, 1, 1), (5, 3, 10_000)):
        order = RangeOrder(SAMPLES, batch, "valid", None)
        for step in epoch(order, world, start)[:count]:
            held += [p for part in step for p in range(part.position, part.position + part.size)]
            start = step[0].end
    assert held == list(range(SAMPLES))


@pytest.mark.parametrize(("batch", "world", "fixed"), [(16, 2, 5), (16, 2, 100), (7, 3, 1)])
def test_steps_per_epoch_runs_over_the_data_set(batch: int, world: int, fixed: int) -> None:
    order = RangeOrder(SAMPLES, batch, "short", fixed)
    steps = epoch(order, world)
    assert len(steps) == order.count_steps(Ranks(0, world)) == fixed
    held = [p for step in steps for part in step for p in range(part.position, part.position + part.size)]
    assert held == list(range(fixed * batch * world))


@pytest.mark.parametrize("tail", ["short", "valid", "drop"])
@pytest.mark.parametrize(("batch", "world"), SHAPES)
def test_a_batch_has_its_size_by_where_it_begins(batch: int, world: int, tail: Tail) -> None:
    order = RangeOrder(SAMPLES, batch, tail, None)
    for step in epoch(order, world):
        assert [order.batch_size_at(part.position, Ranks(rank, world)) for rank, part in enumerate(step)] == [
            part.size for part in step
        ]


def test_a_batch_of_a_resumed_run_has_its_size_where_only_one_is_possible() -> None:
    order = RangeOrder(SAMPLES, 7, "short", None)
    assert [order.batch_size_at(position, Ranks(0, 1)) for position in (3, 493, 494, 499)] == [7, 7, 6, 1]
    # On 2 ranks the second one's last batch begins at 497 if 6 or 7 samples are left; from 0 on, 10 are.
    assert [order.batch_size_at(position, Ranks(1, 2)) for position in (3, 497, 495)] == [0, 0, 5]
