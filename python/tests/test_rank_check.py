"""Ranks whose orders differ: told at the second batch of a pass, by whoever comes later. Nobody waits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import feedwater
from feedwater import Loader, _rank_check
from feedwater._common.rank_store import RankStore
from feedwater.transforms import CenterCrop

torch = pytest.importorskip("torch")
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


class Ranks:
    """The Loaders of two ranks, made by the same line and joined by a store."""

    def __init__(self, fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._fake = fake
        store = torch.distributed.HashStore()
        monkeypatch.setattr(
            _rank_check, "find_store", lambda rank, mesh, ranks: RankStore(store, "") if ranks.world > 1 else None
        )

    def make(self, options: Callable[[int], dict[str, Any]], rank: int) -> Loader[Any]:
        _rank_check._made.clear()
        return self._fake.loader(**{"rank": rank, "num_replicas": 2, "batch_size": 4, "shuffle": True} | options(rank))

    def make_both(self, options: Callable[[int], dict[str, Any]] = lambda rank: {}) -> list[Loader[Any]]:
        return [self.make(options, rank) for rank in range(2)]


@pytest.fixture
def two(fake: Any, monkeypatch: pytest.MonkeyPatch) -> Ranks:
    return Ranks(fake, monkeypatch)


def take(loader: Loader[Any], batches: int = 2) -> None:
    """A pass that is broken off."""
    for _, _ in zip(range(batches), loader):
        pass


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def in_order(sampler: Any) -> dict[str, Any]:
    return {"sampler": sampler, "shuffle": False}


DIFFERENT: dict[str, tuple[Callable[[int], dict[str, Any]], str]] = {
    "seed": (lambda rank: {"seed": 17 + rank}, "seed is 17 on rank 0 and 18 on rank 1 of 2: .*One seed is right"),
    "batch_size": (lambda rank: {"batch_size": 4 + rank}, "batch_size is 4 on rank 0 and 5 on rank 1"),
    "shuffle": (lambda rank: {"shuffle": rank == 1}, "shuffle is False on rank 0 and True on rank 1"),
    "tail": (lambda rank: {"tail": ("short", "drop")[rank]}, "tail is short on rank 0 and drop on rank 1"),
    "steps": (lambda rank: {"steps_per_epoch": 5 + rank}, "steps_per_epoch is 5 on rank 0 and 6 on rank 1"),
    "on_error": (lambda rank: {"on_error": ("raise", "skip")[rank]}, "on_error is raise on rank 0 and skip on rank 1"),
    "image": (lambda rank: {"image": ("jpg", "mask")[rank]}, "image is jpg on rank 0 and mask on rank 1"),
    "transform": (
        lambda rank: {"transform": CenterCrop(8 + rank)},
        r'transform 1 is \{.*"size": \[8, 8\].* on rank 0 and \{.*"size": \[9, 9\].* on rank 1',
    ),
    "another transform": (
        lambda rank: {"transform": [CenterCrop(8), feedwater.transforms.RandomHorizontalFlip()][: 1 + rank]},
        "transform 2 is None on rank 0 and .*RandomHorizontalFlip",
    ),
    "generator": (
        lambda rank: in_order(RandomSampler(range(100), generator=seeded(rank))),
        "the seed of the sampler's generator is 0 on rank 0 and 1 on rank 1",
    ),
    "list": (lambda rank: in_order([rank, *range(1, 100)]), r"what list gave before sample 8 \(digest\) is \d+ on .*"),
    "lists": (
        lambda rank: {"batch_sampler": [[rank, 2], [3, 4]], "batch_size": None, "shuffle": False},
        "what list gave before sample 2 .*num_replicas",
    ),
    "sampler's class": (
        lambda rank: in_order((SubsetRandomSampler(range(100)), RandomSampler(range(100)))[rank]),
        "the sampler's class is SubsetRandomSampler on rank 0 and RandomSampler on rank 1",
    ),
    "sampler or none": (
        lambda rank: in_order(range(100)) if rank else {"shuffle": False},
        "the sampler's class is None on rank 0 and range on rank 1",
    ),
    "DistributedSampler": (
        lambda rank: in_order(DistributedSampler(range(100), 2, rank, seed=rank)),
        "seed of DistributedSampler is 0 on rank 0 and 1 on rank 1",
    ),
    "DistributedSampler in lists": (
        lambda rank: {
            "batch_sampler": BatchSampler(DistributedSampler(range(100), 2, rank, shuffle=rank == 0), 4, False),
            "batch_size": None,
            "shuffle": False,
        },
        "shuffle of DistributedSampler is True on rank 0 and False on rank 1",
    ),
}


@pytest.mark.parametrize("case", list(DIFFERENT))
def test_what_differs_is_named(two: Ranks, case: str) -> None:
    options, said = DIFFERENT[case]
    first, second = two.make_both(options)
    take(first)
    with pytest.raises(ValueError, match=said):
        take(second)
    take(first)
    with pytest.raises(ValueError, match=f"{said}|epoch 0, sample 0 on rank 0 and epoch 1"):
        take(second)


def test_subsets_and_data_that_differ_are_named(fake: Any, two: Ranks) -> None:
    table = feedwater.Table([f"{i}.jpg" for i in range(100)], [0] * 100, root=fake.data)

    def make(chosen: Callable[[int], Any]) -> list[Loader[Any]]:
        made = []
        for rank in range(2):
            _rank_check._made.clear()
            subset = torch.utils.data.Subset(table, chosen(rank))
            made.append(Loader(subset, CenterCrop(8), batch_size=4, rank=rank, num_replicas=2))
        return made

    for chosen, said in (
        (lambda rank: range(rank, 20), "the Subset's number of samples is 20 on rank 0 and 19 on rank 1"),
        (lambda rank: range(rank, 20 + rank), r"the Subset's indices \(digest\) is "),
    ):
        first, second = make(chosen)
        take(first)
        with pytest.raises(ValueError, match=said):
            take(second)


def test_revisions_and_fingerprints_that_differ_are_named(
    fake: Any, two: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = two.make(lambda rank: {}, 0), two.make(lambda rank: {}, 1), two.make(lambda rank: {}, 1)
    take(first)
    with monkeypatch.context() as patch:
        patch.setitem(_rank_check.UNITS, "order", 99)
        with pytest.raises(ValueError, match=r"revision of order of this package is \d+ on rank 0 and 99 on rank 1"):
            take(second)
    opened = vars(third._engine.opening.open_plan())
    opened["fingerprint"] = "f" * 64
    with pytest.raises(ValueError, match=r"the data set .fingerprint. is .* and f+ on rank 1.*num_replicas=1"):
        take(third)


SAME: dict[str, Callable[[int], dict[str, Any]]] = {
    "plain": lambda rank: {},
    "what is a rank's own": lambda rank: {
        "local_workers": 1 + rank,
        "timeout": 60 + rank,
        "fields": ("image", "index"),
    },
    "RandomSampler": lambda rank: in_order(RandomSampler(range(100))),
    "generator": lambda rank: in_order(RandomSampler(range(100), generator=seeded(3))),
    "WeightedRandomSampler": lambda rank: in_order(WeightedRandomSampler([1.0] * 100, 50, generator=seeded(3))),
    "lists": lambda rank: {
        "batch_sampler": BatchSampler(RandomSampler(range(100)), 8, False),
        "batch_size": None,
        "shuffle": False,
    },
    "split, in batches of their own": lambda rank: (
        in_order(DistributedSampler(range(100), 2, rank)) | {"batch_size": 4 + rank}
    ),
    "one step": lambda rank: {"batch_size": 60},
}


@pytest.mark.parametrize("case", list(SAME))
def test_what_is_the_same_goes_on(two: Ranks, case: str) -> None:
    loaders = two.make_both(SAME[case])
    for batches in (3, 2, 100):
        for loader in loaders:
            take(loader, batches)
    for epoch in (7, 0, 0):
        for loader in loaders:
            loader.set_epoch(epoch)
            take(loader)
    states = [loader.state_dict() for loader in loaders]
    for loader, state in zip(loaders, states, strict=True):
        take(loader)
        loader.load_state_dict(state)
        take(loader, 100)
    assert len({loader.state_dict()["epoch"] for loader in loaders}) == 1


def test_an_epoch_of_one_step_is_compared_at_its_end(two: Ranks) -> None:
    first, second = two.make_both(lambda rank: {"batch_size": 60, "seed": rank})
    take(first)
    with pytest.raises(ValueError, match="seed is 0"):
        take(second)


def test_states_that_differ_are_named(two: Ranks) -> None:
    first, second = two.make_both()
    states = []
    for batches in (2, 3):
        loader = two.make(lambda rank: {"num_replicas": 1}, 0)
        take(loader, batches)
        states.append(loader.state_dict())
    first.load_state_dict(states[0])
    second.load_state_dict(states[1])
    take(first)
    with pytest.raises(ValueError, match=r"epoch 0, sample 8 on rank 0 and epoch 0, sample 12 on rank 1.*same state"):
        take(second)
    second.load_state_dict(states[0])
    take(second)


def test_a_state_that_one_rank_did_not_load_is_named(two: Ranks) -> None:
    first, second = two.make_both()
    first.load_state_dict({**first.state_dict(), "consumed": 8})
    take(first)
    with pytest.raises(ValueError, match="epoch 0, sample 8 on rank 0 and epoch 0, sample 0 on rank 1"):
        take(second)


def test_epochs_that_differ_are_named(two: Ranks) -> None:
    first, second = two.make_both()
    take(first)
    take(second, 1)  # one batch, and the next pass is another epoch
    with pytest.raises(ValueError, match=r"epoch 0, sample 0 on rank 0 and epoch 1, sample 0 on rank 1.*peek"):
        take(second)


@pytest.mark.parametrize("look", [lambda loader: loader.peek(), lambda loader: take(loader, 1)])
def test_a_rank_that_looked_at_a_batch_alone_goes_on(two: Ranks, look: Callable[[Loader[Any]], Any]) -> None:
    looking, other = two.make_both()
    look(looking)
    for epoch in range(2):
        for loader in (looking, other):
            loader.set_epoch(epoch)
            look(loader)
            loader.set_epoch(epoch)
            take(loader)
    look(looking)
    state = looking.state_dict()
    for loader in (looking, other):
        loader.load_state_dict(state)
        take(loader)


def test_a_rank_that_went_on_after_an_error_is_no_other_order(two: Ranks) -> None:
    struck, other = two.make_both(lambda rank: in_order(RandomSampler(range(100), generator=seeded(3))))
    passing = iter(struck)
    next(passing)
    struck._cursor.note_failure()
    take(other)
    for loader in (struck, other):
        take(loader)
        take(loader)
    assert (struck.state_dict()["epoch"], other.state_dict()["epoch"]) == (1, 2)


def test_a_store_that_is_gone_is_no_error(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def compare_set(self, *told: str) -> bytes:
            raise torch.distributed.DistNetworkError("Broken pipe")

    monkeypatch.setattr(_rank_check, "find_store", lambda *told: RankStore(Gone(), ""))
    take(fake.loader(rank=0, num_replicas=2), 5)


SCRIPT = """
import sys
from pathlib import Path
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
import feedwater
from feedwater.transforms import CenterCrop

rank, data, store = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)

def errors_of(**options):
    said = None
    loader = feedwater.Loader(data, CenterCrop(8), batch_size=4, shuffle=True, **options)
    try:
        assert len(list(zip(range(3), loader))) == 3
    except ValueError as error:
        said = str(error)
    gathered = [None, None]
    dist.all_gather_object(gathered, said)
    return [error for error in gathered if error]

assert errors_of() == []
(said,) = errors_of(seed=17 + rank)
assert "seed is" in said and "17" in said and "18" in said, said
assert errors_of(seed=rank, rank=0, num_replicas=1) == []
assert errors_of(rank=rank, num_replicas=2) == []
(said,) = errors_of(rank=rank, num_replicas=2, seed=rank)
assert errors_of(rank=rank, num_replicas=3, seed=rank) == [], "nothing tells with whom"
both = init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "tp"))
assert errors_of(mesh=both) == []
assert len(errors_of(mesh=both, seed=rank)) == 1
each = init_device_mesh("cpu", (2, 1), mesh_dim_names=("model", "dp"))
assert errors_of(mesh=each, seed=rank) == []
if rank == 0:  # an evaluation on one rank, and a Loader that no other has
    assert len(list(feedwater.Loader(data, CenterCrop(8), batch_size=4, tail="drop", seed=99))) == 12
assert errors_of(seed=5) == []
dist.barrier()
dist.destroy_process_group()
"""


def test_ranks_of_a_process_group(fake: Any, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(file)]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(fake.data), str(tmp_path / "store")],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    told = [process.communicate()[1] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], "\n".join(told)
