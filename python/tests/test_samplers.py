"""Orders from the trainer's side: samplers, batch samplers, subsets."""

from __future__ import annotations

import hashlib
import json
import random
import re
import zlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from feedwater import DataError, StateMismatchError
from feedwater._common.ranks import Ranks
from feedwater._order.samplers import BatchSamplerOrder, SamplerOrder, SubsetOrder
from feedwater._order.steps import RangeOrder, Step

torch = pytest.importorskip("torch")
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

N = 100
ALONE = Ranks(0, 1)


def walk(order: Any, ranks: Ranks = ALONE, epoch: int = 0, start: int = 0) -> list[Step]:
    """All steps from a cursor on."""
    steps = []
    while (step := order.step_at(epoch, start, ranks)) is not None:
        steps.append(step)
        start = step.end
    return steps


def indices(steps: list[Step]) -> list[int]:
    return [int(i) for step in steps if step.indices is not None for i in step.indices]


class Struck:
    """Before a sampler: an interrupt at the sample of number 40, as often as strikes tells."""

    strikes = 0

    def __iter__(self) -> Iterator[int]:
        for number, index in enumerate(super().__iter__()):  # type: ignore[misc]
            if number == 40 and self.strikes:
                self.strikes -= 1
                raise KeyboardInterrupt
            yield index


class Drawing:
    """A sampler that draws from every global generator while it is iterated."""

    def __init__(self, length: int = N) -> None:
        self.length, self.begun = length, 0

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        self.begun += 1
        for _ in range(self.length):
            yield (random.randrange(N) + int(np.random.randint(N)) + int(torch.randint(N, ()))) % N


def global_states() -> tuple[Any, ...]:
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def test_a_sampler_never_touches_the_programs_random_numbers() -> None:
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    before = global_states()
    order = SamplerOrder(Drawing(), 7, "short", 0, N)
    walk(order)
    SamplerOrder(RandomSampler(range(N)), 7, "short", 0, N).step_at(0, 0, ALONE)
    assert global_states() == before


def test_an_order_depends_on_seed_and_epoch_alone() -> None:
    first = indices(walk(SamplerOrder(Drawing(), 7, "short", 5, N)))
    torch.manual_seed(99)
    assert indices(walk(SamplerOrder(Drawing(), 9, "short", 5, N))) == first
    assert indices(walk(SamplerOrder(Drawing(), 7, "short", 6, N))) != first
    order = SamplerOrder(Drawing(), 7, "short", 5, N)
    assert indices(walk(order, epoch=1)) != first
    assert indices(walk(order, epoch=0)) == first


@pytest.mark.parametrize("world", [1, 2, 3, 8])
@pytest.mark.parametrize("batch", [1, 7, 16])
def test_the_global_order_is_split_over_ranks(batch: int, world: int) -> None:
    whole = indices(walk(SamplerOrder(Drawing(), N, "short", 5, N)))
    ranks = [walk(SamplerOrder(Drawing(), batch, "short", 5, N), Ranks(rank, world)) for rank in range(world)]
    taken = []
    for step in zip(*ranks, strict=True):
        assert len({part.size for part in step}) == 1
        for part in step:
            assert part.indices is not None
            places = range(part.position, part.position + part.size)
            assert part.indices.tolist() == [whole[place % N] for place in places]
            taken += places
    assert taken == list(range(len(taken)))
    assert N <= len(taken) < N + world
    assert len(ranks[0]) == SamplerOrder(Drawing(), batch, "short", 5, N).count_steps(Ranks(0, world))


def test_the_other_tails() -> None:
    steps = [walk(SamplerOrder(SequentialSampler(range(N)), 16, "valid", 0, N), Ranks(rank, 4)) for rank in range(4)]
    assert sorted(i for rank in steps for i in indices(rank)) == list(range(N))
    assert all(step.rows == 16 for rank in steps for step in rank)
    assert len(walk(SamplerOrder(SequentialSampler(range(N)), 16, "drop", 0, N), Ranks(0, 4))) == 1


@pytest.mark.parametrize(
    "sampler", [lambda: Drawing(), lambda: RandomSampler(range(N)), lambda: WeightedRandomSampler([1.0] * N, N)]
)
def test_a_resumed_order_goes_on_exactly_on_another_world(sampler: Any) -> None:
    whole = indices(walk(SamplerOrder(sampler(), N, "short", 5, N), epoch=3))
    order = SamplerOrder(sampler(), 6, "short", 5, N)
    first = order.step_at(3, 0, Ranks(0, 2))
    assert first is not None
    state = json.loads(json.dumps(order.save_state(3, first.end, Ranks(0, 2))))
    rest = SamplerOrder(sampler(), 11, "short", 5, N)
    rest.load_state(state, ALONE)
    assert indices(walk(rest, epoch=3, start=first.end)) == whole[12:]


def test_looking_back_draws_nothing_anew() -> None:
    sampler = Drawing()
    order = SamplerOrder(sampler, 7, "short", 5, N)
    steps = walk(order)
    assert [order.step_at(0, step.start, ALONE).indices.tolist() for step in steps] == [
        s.indices.tolist() for s in steps
    ]  # type: ignore[union-attr]
    assert sampler.begun == 1


def test_a_distributed_sampler_has_split_the_data_already() -> None:
    world = 3
    orders = [SamplerOrder(DistributedSampler(range(N), world, rank), 7, "short", 0, N) for rank in range(world)]
    ranks = [walk(order, Ranks(rank, world), epoch=2) for rank, order in enumerate(orders)]
    for rank, steps in enumerate(ranks):
        theirs = DistributedSampler(range(N), world, rank)
        theirs.set_epoch(2)
        assert indices(steps) == list(theirs), "set_epoch was called"
        assert len(steps) == orders[rank].count_steps(Ranks(rank, world))
    positions = [
        p for step in zip(*ranks, strict=True) for part in step for p in range(part.position, part.position + part.size)
    ]
    assert positions == list(range(len(positions))), "every appearance has draws of its own"


def test_what_is_split_already_resumes_only_on_the_same_world() -> None:
    order = SamplerOrder(DistributedSampler(range(N), 2, 0), 7, "short", 0, N)
    step = order.step_at(0, 0, Ranks(0, 2))
    assert step is not None
    state = order.save_state(0, step.end, Ranks(0, 2))
    SamplerOrder(DistributedSampler(range(N), 2, 1), 7, "short", 0, N).load_state(state, Ranks(1, 2))
    with pytest.raises(StateMismatchError, match="over 2 ranks in the state and 3 now"):
        SamplerOrder(DistributedSampler(range(N), 3, 1), 7, "short", 0, N).load_state(state, Ranks(1, 3))
    with pytest.raises(StateMismatchError, match="DistributedSampler, this Loader has RandomSampler"):
        SamplerOrder(RandomSampler(range(N)), 7, "short", 0, N).load_state(state, Ranks(0, 2))


class Stateful:
    """A sampler that keeps its place itself, and cannot be drawn again."""

    def __init__(self, salt: int) -> None:
        self.salt, self.given, self.skipped = salt, 0, 0

    def __len__(self) -> int:
        return N

    def __iter__(self) -> Iterator[int]:
        while self.given < N:
            self.given += 1
            yield (self.given * self.salt) % N

    def state_dict(self) -> dict[str, int]:
        return {"given": self.given, "salt": self.salt}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.given, self.salt = state["given"], state["salt"]


def test_a_sampler_with_a_state_of_its_own_is_resumed_by_it() -> None:
    order = SamplerOrder(Stateful(7), 10, "short", 0, N)
    steps = walk(order)[:8]  # drawn far ahead of what is consumed
    state = json.loads(json.dumps(order.save_state(0, steps[2].end, ALONE)))
    assert state["state"] == {"given": 30, "salt": 7}
    resumed = SamplerOrder(Stateful(1), 10, "short", 0, N)
    resumed.load_state(state, ALONE)
    assert indices(walk(resumed, start=30)) == indices(steps)[30:] + [(i * 7) % N for i in range(81, 101)]


def generator() -> Any:
    return torch.Generator().manual_seed(3)


KINDS = {
    "RandomSampler": lambda: RandomSampler(range(N), generator=generator()),
    "with replacement": lambda: RandomSampler(range(N), True, N, generator()),
    "WeightedRandomSampler": lambda: WeightedRandomSampler([1.0, 2.0] * (N // 2), N, generator=generator()),
    "SubsetRandomSampler": lambda: SubsetRandomSampler(range(N), generator()),
    "BatchSampler": lambda: BatchSampler(RandomSampler(range(N), generator=generator()), 12, drop_last=False),
}


def ordered(sampler: Any, batch: int = 6) -> Any:
    return BatchSamplerOrder(sampler, 5, N) if is_lists(sampler) else SamplerOrder(sampler, batch, "short", 5, N)


def is_lists(sampler: Any) -> bool:
    return isinstance(sampler, BatchSampler)


def flat(sampler: Any) -> list[int]:
    return [i for items in sampler for i in (items if is_lists(sampler) else [items])]


def together(orders: list[Any], epoch: int, start: int = 0, steps: int | None = None) -> tuple[list[int], int]:
    """What all ranks take together, repeats of the last step left out, and the cursor after it."""
    taken: list[int] = []
    while steps is None or steps:
        parts = [order.step_at(epoch, start, Ranks(rank, len(orders))) for rank, order in enumerate(orders)]
        if parts[0] is None:
            break
        taken += indices(parts)[: parts[0].end - start]
        start, steps = parts[0].end, None if steps is None else steps - 1
    return taken, start


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_samplers_generator_is_put_where_it_stood(kind: str, before: int, after: int) -> None:
    theirs = KINDS[kind]()
    expected = [flat(theirs) for _ in range(4)]
    assert len(set(map(tuple, expected))) == 4, "each epoch is another one"
    orders = [ordered(KINDS[kind]()) for _ in range(before)]
    assert [together(orders, epoch)[0] for epoch in range(2)] == expected[:2]
    first, start = together(orders, 2, steps=4)
    states = [json.loads(json.dumps(order.save_state(2, start, Ranks(r, before)))) for r, order in enumerate(orders)]
    assert states == [states[0]] * before, "any rank's state is every rank's"
    assert len(json.dumps(states[0])) < 5000
    resumed = [ordered(KINDS[kind](), batch=11) for _ in range(after)]
    for rank, order in enumerate(resumed):
        order.load_state(states[0], Ranks(rank, after))
        assert order.save_state(2, start, Ranks(rank, after)) == states[0], "nothing was drawn since"
    assert first + together(resumed, 2, start)[0] == expected[2]
    assert together(resumed, 3)[0] == together(orders, 3)[0] == expected[3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_between_epochs_has_where_the_generator_stands(kind: str) -> None:
    order = ordered(KINDS[kind]())
    together([order], 0)
    state = order.save_state(1, 0, ALONE)
    resumed = ordered(KINDS[kind]())
    resumed.load_state(state, ALONE)
    assert together([resumed], 1) == together([order], 1)


@pytest.mark.parametrize("kind", KINDS)
def test_how_far_was_looked_ahead_does_not_tell_in_the_epoch_after_a_break(kind: str) -> None:
    little, much = ordered(KINDS[kind]()), ordered(KINDS[kind]())
    for order, steps in ((little, 1), (much, 8)):
        together([order], 0, steps=steps)
    assert little.save_state(1, 0, ALONE) == much.save_state(1, 0, ALONE)
    assert together([little], 1) == together([much], 1)


def test_a_state_is_taken_up_though_its_epochs_beginning_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    order = ordered(KINDS["RandomSampler"]())
    together([order], 0)
    whole, _ = together([order], 1)
    resumed = ordered(KINDS["RandomSampler"]())
    resumed.load_state(order.save_state(1, 30, ALONE), ALONE)
    with monkeypatch.context() as patch:
        patch.setattr("feedwater._order.samplers.Pull", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            resumed.step_at(1, 30, ALONE)
    assert together([resumed], 1, 30)[0] == whole[30:]


def test_a_state_of_an_epoch_before_has_where_the_generator_stood_then() -> None:
    order = ordered(KINDS["RandomSampler"]())
    whole, _ = together([order], 0)
    together([order], 1, steps=1)
    resumed = ordered(KINDS["RandomSampler"]())
    together([resumed], 0)
    resumed.load_state(order.save_state(0, 90, ALONE), ALONE)  # a lag over the epoch's end
    assert together([resumed], 0, 90)[0] == whole[90:]


def test_a_generator_that_is_not_there_any_more_is_told() -> None:
    order = ordered(KINDS["RandomSampler"]())
    order.step_at(0, 0, ALONE)
    state = order.save_state(0, 6, ALONE)
    with pytest.raises(StateMismatchError, match=r"with 1 generator\(s\), this one has 0"):
        ordered(RandomSampler(range(N))).load_state(state, ALONE)
    with pytest.raises(StateMismatchError, match="generator does not fit"):
        ordered(KINDS["RandomSampler"]()).load_state({**state, "generators": ["AAAA"]}, ALONE)


def test_an_interrupted_draw_begins_where_the_generator_stood() -> None:
    class Interrupted(Struck, SubsetRandomSampler):
        strikes = 2

    order = SamplerOrder(Interrupted(range(N), generator()), 50, "short", 5, N)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            order.step_at(0, 0, ALONE)
    assert indices(walk(order)) == flat(KINDS["SubsetRandomSampler"]())


class Remembers:
    """A sampler that keeps something from one epoch to the next, and tells nobody."""

    def __init__(self, rank: int | None = None) -> None:
        self.epochs = 0
        if rank is not None:
            self.num_replicas, self.rank = 2, rank

    def __len__(self) -> int:
        return N

    def __iter__(self) -> Iterator[int]:
        self.epochs += 1
        return iter([(i * 7 + self.epochs) % N for i in range(N)])


@pytest.mark.parametrize("world", [1, 3])
def test_a_sampler_that_draws_otherwise_is_told(world: int) -> None:
    def made() -> list[Any]:
        return [SamplerOrder(Remembers(), 5, "short", 0, N) for _ in range(2)]

    orders = made()
    together(orders, 0)
    _, start = together(orders, 1, steps=2)
    state = orders[0].save_state(1, start, Ranks(0, 2))
    resumed = SamplerOrder(Remembers(), 11, "short", 0, N)
    resumed.load_state(state, Ranks(0, world))
    for _ in range(2):  # and again if it is asked again
        with pytest.raises(StateMismatchError, match=r"Remembers draws epoch 1 otherwise .* first 20 .*set_epoch"):
            resumed.step_at(1, start, Ranks(0, world))
    again = SamplerOrder(Remembers(), 11, "short", 0, N)
    again.load_state({"class": state["class"]}, Ranks(0, world))  # of an earlier version
    assert again.step_at(1, start, Ranks(0, world)) is not None
    fresh = made()
    _, start = together(fresh, 0, steps=2)
    again = SamplerOrder(Remembers(), 11, "short", 0, N)
    again.load_state(fresh[1].save_state(0, start, Ranks(1, 2)), Ranks(0, world))
    assert indices(walk(again, epoch=0, start=start)) == [(i * 7 + 1) % N for i in range(20, N)]


def test_a_sampler_that_gives_less_than_was_consumed_is_told() -> None:
    order = SamplerOrder([*range(N)], 10, "short", 0, N)
    walk(order)
    resumed = SamplerOrder([*range(20)], 10, "short", 0, N)
    resumed.load_state(order.save_state(0, 30, ALONE), ALONE)
    with pytest.raises(StateMismatchError, match="its first 30 samples"):
        resumed.step_at(0, 30, ALONE)


def test_a_split_sampler_that_draws_otherwise_is_told_on_the_rank_that_saved() -> None:
    order = SamplerOrder(Remembers(rank=1), 5, "short", 0, N)
    walk(order, Ranks(1, 2), epoch=0)
    step = order.step_at(1, 0, Ranks(1, 2))
    assert step is not None
    state = order.save_state(1, step.end, Ranks(1, 2))
    for rank in range(2):
        resumed = SamplerOrder(Remembers(rank), 5, "short", 0, N)
        resumed.load_state(state, Ranks(rank, 2))
        if rank == 1:
            with pytest.raises(StateMismatchError, match="its first 5 samples"):
                resumed.step_at(1, step.end, Ranks(rank, 2))
        else:
            resumed.step_at(1, step.end, Ranks(rank, 2))


def test_ranks_whose_split_samplers_have_generators_of_their_own_need_states_of_their_own() -> None:
    class Split(SubsetRandomSampler):
        def __init__(self, rank: int, seed: int) -> None:
            super().__init__(range(N), torch.Generator().manual_seed(seed))
            self.num_replicas, self.rank = 2, rank

    order = SamplerOrder(Split(0, 3), 5, "short", 0, N)
    order.step_at(0, 0, Ranks(0, 2))
    state = order.save_state(0, 10, Ranks(0, 2))
    SamplerOrder(Split(1, 3), 5, "short", 0, N).load_state(state, Ranks(1, 2))
    with pytest.raises(StateMismatchError, match="save and load a state on each rank"):
        SamplerOrder(Split(1, 4), 5, "short", 0, N).load_state(state, Ranks(1, 2))


def test_the_digest_is_of_the_indices_alone() -> None:
    order = SamplerOrder(SequentialSampler(range(N)), 7, "short", 0, N)
    walk(order)
    digests = [order.save_state(0, consumed, ALONE).get("digest") for consumed in (0, 7, 21, 7, 100, 101)]
    assert digests == [zlib.crc32(np.arange(n).tobytes()) for n in (0, 7, 21, 7, 100)] + [None]
    lists = BatchSamplerOrder(BatchSampler(SequentialSampler(range(N)), 9, drop_last=False), 0, N)
    walk(lists)
    assert lists.save_state(0, 36, ALONE)["digest"] == zlib.crc32(np.arange(36).tobytes())


def test_a_sampler_with_a_state_of_its_own_goes_on_with_the_digest() -> None:
    order = SamplerOrder(Stateful(7), 10, "short", 0, N)
    walk(order)
    resumed = SamplerOrder(Stateful(1), 10, "short", 0, N)
    resumed.load_state(order.save_state(0, 30, ALONE), ALONE)
    walk(resumed, start=30)
    assert resumed.save_state(0, 60, ALONE) == order.save_state(0, 60, ALONE)


def test_lists_of_other_lengths_go_on_amid_a_list() -> None:
    before = BatchSampler(SequentialSampler(range(N)), 10, drop_last=False)
    order = BatchSamplerOrder(before, 0, N)
    walk(order)
    for size in (3, 4, 64):
        resumed = BatchSamplerOrder(BatchSampler(SequentialSampler(range(N)), size, drop_last=False), 0, N)
        resumed.load_state(order.save_state(0, 10, ALONE), ALONE)
        assert indices(walk(resumed, start=10)) == [*range(10, N)]


def test_a_batch_samplers_list_is_the_batch_of_a_step_over_all_ranks() -> None:
    sampler = BatchSampler(SequentialSampler(range(N)), 9, drop_last=False)
    whole = walk(BatchSamplerOrder(sampler, 0, N))
    assert [s.indices.tolist() for s in whole] == list(sampler)  # type: ignore[union-attr]
    assert BatchSamplerOrder(sampler, 0, N).count_steps(ALONE) == len(whole) == 12
    ranks = [walk(BatchSamplerOrder(sampler, 0, N), Ranks(rank, 2)) for rank in range(2)]
    for step, (left, right) in zip(whole, zip(*ranks, strict=True)):
        assert step.indices is not None
        assert left.size == right.size == -(-step.size // 2)
        both = indices([left, right])
        assert both[: step.size] == step.indices.tolist()
        assert both[step.size :] == step.indices.tolist()[: len(both) - step.size]
        assert left.end == right.end == step.end


LISTS = [[1], [2, 3], [4, 5, 6], [7, 8, 9, 10], [11, 12, 13, 14, 15]]


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_with_valid_a_list_is_split_without_repeats(world: int) -> None:
    ranks = [walk(BatchSamplerOrder(LISTS, 0, N, tail="valid"), Ranks(rank, world)) for rank in range(world)]
    for items, step in zip(LISTS, zip(*ranks, strict=True), strict=True):
        assert indices([*step]) == items
        assert {part.rows for part in step} == {-(-len(items) // world)}, "all ranks have as many rows"
        assert [part.size for part in step] == [len(part.indices) for part in step if part.indices is not None]
        assert {part.end - part.start for part in step} == {len(items)}


@pytest.mark.parametrize(
    ("lists", "world", "tail", "told"),
    [
        (LISTS, 2, "short", "a list of length 1, .* over 2 ranks: 1 rows are repeats"),
        (LISTS[2:], 8, "short", "a list of length 3, .* over 8 ranks: 5 rows are repeats"),
        (LISTS, 2, "valid", ""),
        (LISTS, 1, "short", ""),
        ([LISTS[1], LISTS[3]], 2, "short", ""),
    ],
)
def test_lists_that_do_not_divide_among_ranks_are_told_once(
    caplog: pytest.LogCaptureFixture, lists: Any, world: int, tail: Any, told: str
) -> None:
    order = BatchSamplerOrder(lists, 0, N, tail=tail)
    for epoch in range(2):
        walk(order, Ranks(0, world), epoch)
    assert len(caplog.messages) == bool(told)
    assert re.search(told, caplog.text)


def test_lists_of_any_length_and_empty_ones() -> None:
    lists = [[1], [], [2, 3, 4], [5, 6], []]
    order = BatchSamplerOrder(lists, 0, N)
    assert [s.indices.tolist() for s in walk(order)] == [[1], [2, 3, 4], [5, 6]]  # type: ignore[union-attr]
    assert [s.indices.tolist() for s in walk(BatchSamplerOrder(lists, 0, N), start=4)] == [[5, 6]]  # type: ignore[union-attr]


def test_a_batch_sampler_over_a_distributed_sampler_is_split_already() -> None:
    lists = [
        BatchSampler(DistributedSampler(range(N), 2, rank, shuffle=False), 8, drop_last=False) for rank in range(2)
    ]
    ranks = [walk(BatchSamplerOrder(lists[rank], 0, N), Ranks(rank, 2)) for rank in range(2)]
    assert [[s.indices.tolist() for s in steps] for steps in ranks] == [list(some) for some in lists]  # type: ignore[union-attr]
    assert [s.start for s in ranks[0]] == [16 * i for i in range(7)]
    positions = [
        p for step in zip(*ranks, strict=True) for part in step for p in range(part.position, part.position + part.size)
    ]
    assert positions == list(range(len(positions)))


def test_a_steps_place_is_the_same_on_all_ranks_though_lists_are_of_other_lengths() -> None:
    class Buckets:
        def __init__(self, rank: int) -> None:
            self.num_replicas, self.rank = 2, rank

        def __iter__(self) -> Iterator[list[int]]:
            for length in (3, 5, 2, 7):
                yield [*range(length + self.rank)]

    ranks = [walk(BatchSamplerOrder(Buckets(rank), 0, N), Ranks(rank, 2)) for rank in range(2)]
    assert [step.start for step in ranks[0]] != [step.start for step in ranks[1]]
    assert [[step.place for step in steps] for steps in ranks] == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize("bad", [-N - 1, N])
def test_indices_outside_of_the_data_set(bad: int) -> None:
    with pytest.raises(DataError, match=f"list gave index {bad}, but the data set has samples 0 to 99"):
        SamplerOrder([0, bad], 2, "short", 0, N).step_at(0, 0, ALONE)


def test_indices_may_be_tensors_and_numpy_numbers() -> None:
    order = SamplerOrder([torch.tensor(3), np.int64(4), 5], 3, "short", 0, N)
    assert indices(walk(order)) == [3, 4, 5]


def test_a_sampler_that_is_interrupted_is_begun_anew_and_skipped() -> None:
    class Interrupted(Struck, Drawing):
        strikes = 3

    whole = indices(walk(SamplerOrder(Drawing(), N, "short", 5, N)))
    before = global_states()
    order, start, taken = SamplerOrder(Interrupted(), 7, "short", 5, N), 0, []
    while True:
        try:
            step = order.step_at(0, start, ALONE)
        except KeyboardInterrupt:
            assert global_states() == before
            continue
        if step is None:
            break
        taken.append(step)
        start = step.end
    assert indices(taken) == whole


def test_a_batch_sampler_that_is_interrupted_within_a_list_is_begun_anew() -> None:
    class Interrupted:
        strikes = 2

        def __iter__(self) -> Iterator[Iterator[int]]:
            for first in range(0, N, 10):
                yield self.items(first)

        def items(self, first: int) -> Iterator[int]:
            for index in range(first, first + 10):
                if index == 25 and self.strikes:
                    self.strikes -= 1
                    raise KeyboardInterrupt
                yield index

    order = BatchSamplerOrder(Interrupted(), 0, N)
    order.step_at(0, 10, ALONE)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            order.step_at(0, 20, ALONE)
    assert indices(walk(order)) == [*range(N)]


def test_a_batch_sampler_without_a_length_may_have_a_generator() -> None:
    class Endless:
        def __init__(self) -> None:
            self.generator = generator()

        def __iter__(self) -> Iterator[int]:
            while True:
                yield int(torch.randint(N, (), generator=self.generator))

    order = BatchSamplerOrder(BatchSampler(Endless(), 10, drop_last=False), 0, N)  # type: ignore[arg-type]
    for epoch in range(2):
        assert order.step_at(epoch, 0, ALONE) is not None


def test_orders_tell_how_much_an_epoch_reads() -> None:
    class Endless:
        def __iter__(self) -> Iterator[int]:
            return iter(range(N))

    two, split = Ranks(0, 2), DistributedSampler(range(40), 2, 0)
    for order, alone, shared in (
        (RangeOrder(N, 8, "short", None), N, N),
        (RangeOrder(N, 8, "short", 3), 24, 48),
        (SubsetOrder(np.arange(30), 8, "short", True, 0), 30, 30),
        (SamplerOrder(range(30), 8, "short", 0, N), 30, 30),
        (SamplerOrder(Endless(), 8, "short", 0, N), 0, 0),
        (SamplerOrder(split, 8, "short", 0, N), 20, 40),
        (BatchSamplerOrder(LISTS, 0, N), sum(map(len, LISTS)), sum(map(len, LISTS))),
        (BatchSamplerOrder(BatchSampler(range(30), 8, False), 0, N), 30, 30),  # type: ignore[arg-type]
        (BatchSamplerOrder(BatchSampler(split, 8, False), 0, N), 20, 40),
        (BatchSamplerOrder(Endless(), 0, N), 0, 0),
    ):
        assert (order.count_samples(ALONE), order.count_samples(two)) == (alone, shared)  # type: ignore[attr-defined]


def test_a_subset_is_shuffled_anew_every_epoch_and_splits_like_any_order() -> None:
    chosen = np.arange(0, N, 3)
    plain = SubsetOrder(chosen, 8, "short", False, 0)
    assert indices(walk(plain)) == indices(walk(plain, epoch=1)) == chosen.tolist()
    shuffled = SubsetOrder(chosen, 8, "short", True, 7)
    first, second = indices(walk(shuffled)), indices(walk(shuffled, epoch=1))
    assert sorted(first) == sorted(second) == chosen.tolist()
    assert first != second
    assert indices(walk(SubsetOrder(chosen, 8, "short", True, 7))) == first
    assert indices(walk(SubsetOrder(chosen, 8, "short", True, 8))) != first
    ranks = [walk(shuffled, Ranks(rank, 3)) for rank in range(3)]
    held = [p for step in zip(*ranks, strict=True) for part in step for p in indices([part])]
    assert held[: len(first)] == first
    assert held[len(first) :] == first[: len(held) - len(first)]


def test_the_shuffle_of_a_subset_is_pinned() -> None:
    # The order of a run must not change with a release: written out once more, in whole numbers of Python.
    key = int.from_bytes(hashlib.sha256(b"feedwater sampler 17 0").digest()[:8], "little")

    def splitmix(x: int) -> int:
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
        return x ^ (x >> 31)

    expected = sorted(range(1000), key=lambda i: splitmix((i + key) & MASK))
    assert indices(walk(SubsetOrder(np.arange(1000), 8, "short", True, 17))) == expected
    assert expected[:4] == [432, 7, 885, 448]


MASK = (1 << 64) - 1
