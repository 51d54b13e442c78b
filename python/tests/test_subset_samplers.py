"""A sampler over a Subset: its indices are places in the Subset, as a DataLoader has it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import SIZE

import feedwater
from feedwater import Loader, StateMismatchError, transforms

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("torchvision.datasets")
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

CHOSEN = [7, 90, 33, 12, 12, 51, 64, 3, 28, 77, 45, 19, 80, 5, 66, 38, 94, 21]


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(5)


SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "RandomSampler": lambda subset: RandomSampler(subset, generator=seeded()),
    "WeightedRandomSampler": lambda subset: WeightedRandomSampler([1.0, 3.0] * 9, 30, generator=seeded()),
    "SubsetRandomSampler": lambda subset: SubsetRandomSampler([1, 8, 17, 4], generator=seeded()),
    "DistributedSampler": lambda subset: DistributedSampler(subset, 2, 1),
    "list": lambda subset: [17, 0, -1, -18, 3],
}


def make_loader(subset: Any, **options: Any) -> Loader[Any]:
    return Loader(subset, transforms.CenterCrop(SIZE), **options)


def batches_of(sampler: Any, lists: bool, size: int = 4) -> dict[str, Any]:
    """The arguments by which batches of four come from a sampler."""
    if lists:
        return {"batch_sampler": BatchSampler(sampler, size, drop_last=False)}
    return {"sampler": sampler, "batch_size": size}


def read_pass(loader: Loader[Any]) -> list[list[int]]:
    """The samples of each batch of a pass."""
    return [loader.last.indices.tolist() for _ in loader]  # type: ignore[union-attr]


@pytest.mark.parametrize("nested", [False, True])
def test_batches_have_the_samples_of_a_dataloader(folder: Any, nested: bool) -> None:
    def choose(whole: Any) -> Any:
        return Subset(Subset(whole, [*range(99, -1, -1)]), CHOSEN) if nested else Subset(whole, CHOSEN)

    for kind, make_sampler in SAMPLERS.items():
        for lists in (False, True):
            ours, theirs = make_sampler(choose(folder)), make_sampler(choose(range(100)))
            ranks = {"rank": 1, "num_replicas": 2} if kind == "DistributedSampler" else {}
            loader = make_loader(choose(folder), **batches_of(ours, lists), **ranks)
            expected = DataLoader(choose(range(100)), **batches_of(theirs, lists))
            for epoch in range(2):
                if ranks:
                    theirs.set_epoch(epoch)
                assert read_pass(loader) == [batch.tolist() for batch in expected], (kind, lists, epoch)


@pytest.mark.parametrize("world", [1, 3])
def test_ranks_share_what_a_sampler_of_the_subset_draws(folder: Any, world: int) -> None:
    subset = Subset(folder, range(18, 36))
    drawn: list[int] = []
    for rank in range(world):
        sampler = RandomSampler(subset, generator=seeded())
        loader = make_loader(subset, sampler=sampler, batch_size=2, rank=rank, num_replicas=world)
        drawn += [index for batch in read_pass(loader) for index in batch]
    assert sorted(drawn) == [*range(18, 36)]


@pytest.mark.parametrize("lists", [False, True])
def test_a_resumed_run_goes_on_in_the_subset(folder: Any, lists: bool) -> None:
    def make(chosen: Any, size: int = 4) -> Loader[Any]:
        return make_loader(Subset(folder, chosen), **batches_of(RandomSampler(range(18)), lists, size))

    whole = [index for batch in read_pass(make(CHOSEN)) for index in batch]
    loader = make(CHOSEN)
    passing = iter(loader)
    next(passing), next(passing)
    state = json.loads(json.dumps(loader.state_dict()))
    resumed = make(CHOSEN, 4 if lists else 5)
    resumed.load_state_dict(state)
    assert [index for batch in read_pass(resumed) for index in batch] == whole[8:]
    others = make([*CHOSEN[:-1], 22]), make_loader(folder, sampler=RandomSampler(range(18)), batch_size=4)
    for other in (*others, make_loader(Subset(folder, CHOSEN), batch_size=4)):
        with pytest.raises(StateMismatchError, match=r"sampler|choice of samples"):
            other.load_state_dict(state)
            next(iter(other))
    plain = make_loader(folder, sampler=RandomSampler(range(100)), batch_size=4)
    next(iter(plain))
    loader = make_loader(Subset(folder, range(100)), sampler=RandomSampler(range(100)), batch_size=4)
    loader.load_state_dict(plain.state_dict())
    with pytest.raises(StateMismatchError, match="another Subset under the sampler"):
        next(iter(loader))  # of samplers it is found out when they draw


def test_a_state_of_before_the_first_batch_tells_of_the_subset(folder: Any) -> None:
    loader = make_loader(Subset(folder, CHOSEN), sampler=range(18), batch_size=4)
    before = loader.state_dict()
    next(iter(loader))
    loader.load_state_dict(before)
    assert read_pass(loader)[0] == CHOSEN[:4]


def test_positions_of_the_subsets_samples_are_found(folder: Any) -> None:
    loader = make_loader(Subset(folder, CHOSEN), sampler=[0, 5, 3, 4, 1], batch_size=5)
    next(iter(loader))
    engine = loader._engine
    assert [engine.shape.find_position(index, 0) for index in (7, 51, 12, 90, 33)] == [0, 1, 2, 4, None]


def test_an_index_beyond_the_subset_is_told(folder: Any) -> None:
    loader = make_loader(Subset(folder, CHOSEN), sampler=CHOSEN, batch_size=4)
    with pytest.raises(feedwater.DataError, match=r"gave index 90, but the Subset has places 0 to 17, .* places in it"):
        next(iter(loader))


@pytest.mark.parametrize(
    ("sampler", "said"),
    [
        (lambda: RandomSampler(range(18)), "RandomSampler was made for 18 samples (its data_source)"),
        (lambda: SequentialSampler(np.arange(18)), "SequentialSampler was made for 18 samples (its data_source)"),
        (lambda: DistributedSampler(range(18), 1, 0), "DistributedSampler was made for 18 samples (its dataset)"),
        (lambda: WeightedRandomSampler([1.0] * 18, 9), "WeightedRandomSampler was made for 18 samples (its weights)"),
        (lambda: RandomSampler(range(100)), None),
        (lambda: RandomSampler(range(100), num_samples=18), None),
        (lambda: SubsetRandomSampler(range(18)), None),
        (lambda: range(18), None),
    ],
)
def test_a_sampler_that_was_made_for_another_data_set_is_told(
    folder: Any, caplog: pytest.LogCaptureFixture, sampler: Callable[[], Any], said: str | None
) -> None:
    for lists in (False, True):
        loader = make_loader(folder, **batches_of(sampler(), lists))
        for _ in range(2):
            next(iter(loader))
    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 2 * (said is not None), "once each"
    assert all(message.startswith(f"{said}, and the data set has 100.") for message in told)


def test_a_sampler_of_the_whole_over_a_subset_is_told(folder: Any, caplog: pytest.LogCaptureFixture) -> None:
    next(iter(make_loader(Subset(folder, CHOSEN), sampler=SequentialSampler(folder), batch_size=4)))
    assert "made for 100 samples (its data_source), and the Subset has 18" in caplog.text
