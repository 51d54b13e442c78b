"""shuffle="blocks:N": runs of N neighbours stay together, in an order that this file computes by itself."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from torch.utils.data import Subset

from feedwater import Loader
from feedwater._ctaugment import philox
from feedwater.errors import PlanError, StateMismatchError
from feedwater.transforms import RandomResizedCrop

VECTORS = json.loads((Path(__file__).parents[2] / "pipeline/order/testdata/vectors.json").read_text())
SAMPLES, SIZE, SEED = 50, 8, 3
MASK = 2**64 - 1


def round_value(x: int, key: int, n: int) -> int:
    x ^= key
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return (x ^ x >> 31) * n >> 64


class Permutation:
    """The twin of NewPermutation of package order."""

    def __init__(self, n: int, seed: int, epoch: int) -> None:
        self.n, self.key, self.epoch = n, philox.key_of(seed, "order"), epoch
        self.table = self.shuffled() if n <= 1024 else None
        words = [self.words(number, 0) for number in range(12)]
        self.keys = [word[0] | word[1] << 32 for word in words]
        self.a = max(math.isqrt(n - 1) + 1, 2)
        self.b = max(-(-n // self.a), 2)

    def words(self, number: int, repeat: int) -> list[int]:
        drawn = philox.draw_block(self.key, number, self.epoch, np.array([0]), np.array([repeat]))
        return [int(word) for word in drawn[:, 0]]

    def shuffled(self) -> list[int]:
        table, words = list(range(self.n)), []
        for used, i in enumerate(range(self.n - 1, 0, -1)):
            words = self.words(used // 4, 1) if used % 4 == 0 else words
            j = words[used % 4] * (i + 1) >> 32
            table[i], table[j] = table[j], table[i]
        return table

    def __getitem__(self, x: int) -> int:
        if self.table is not None:
            return self.table[x]
        while True:
            left, right = x % self.a, x // self.a
            for number, key in enumerate(self.keys):
                if number % 2 == 0:
                    left = (left + round_value(right, key, self.a)) % self.a
                else:
                    right = (right + round_value(left, key, self.b)) % self.b
            x = right * self.a + left
            if x < self.n:
                return x


def in_blocks(samples: int, size: int, seed: int, epoch: int) -> list[int]:
    """The order of an epoch, block by block."""
    count = -(-samples // size)
    blocks = Permutation(count, seed, epoch)
    return [i for at in range(count) for i in range(blocks[at] * size, min(samples, (blocks[at] + 1) * size))]


@pytest.mark.parametrize("kind", ["permutations", "blocks"])
def test_both_languages_have_one_order(kind: str) -> None:
    for vector in VECTORS[kind]:
        samples, size = vector["samples"], vector.get("size", 1)
        if size > 1 and samples > 60_000:
            continue  # too many to list; these are made of the permutations that are compared anyhow
        order: Any = Permutation(samples, vector["seed"], vector["epoch"])
        if size > 1:
            order = in_blocks(samples, size, vector["seed"], vector["epoch"])
            assert sorted(order) == list(range(samples))
        assert [order[at] for at in range(len(vector["first"]))] == vector["first"], vector
        assert order[samples - 1] == vector["last"], vector


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blocks")
    for i in range(SAMPLES):
        (folder / f"class{i // 25}").mkdir(exist_ok=True)
        Image.new("RGB", (SIZE, SIZE), (i, 0, 0)).save(folder / f"class{i // 25}" / f"{i:02}.png")
    return folder


def make(source: Any, shuffle: Any = "blocks:7", **options: Any) -> Loader[Any]:
    return Loader(source, None, **{"batch_size": 8, "seed": SEED, "fields": ("index",), "shuffle": shuffle, **options})


def read(loader: Loader[Any]) -> list[int]:
    return [index for (batch,) in loader for index in np.asarray(batch).tolist()]


@pytest.mark.parametrize("size", [2, 7, 8, 25, 49])
def test_epochs_are_in_the_order_of_their_blocks(data: Path, size: int) -> None:
    with make(data, f"blocks:{size}") as loader:
        for epoch in range(2):
            assert read(loader) == in_blocks(SAMPLES, size, SEED, epoch)
        assert f"order     runs of {size} neighbours stay together" in loader.explain()
        assert f"shuffle='blocks:{size}'" in repr(loader)


def test_two_loaders_and_other_spellings_have_one_order(data: Path) -> None:
    with make(data, "blocks:07") as one, make(data, "blocks:7", batch_size=5) as other:
        assert read(one) == read(other)
        assert one.state_dict()["order"] == other.state_dict()["order"]


@pytest.mark.parametrize("tail", ["short", "valid", "drop"])
def test_ranks_share_the_order_and_another_world_goes_on(data: Path, tail: Any) -> None:
    whole = in_blocks(SAMPLES, 7, SEED, 0)
    fields = ("index", "valid") if tail == "valid" else ("index",)

    def batches(loader: Loader[Any], most: int | None = None) -> list[list[int]]:
        taken: list[list[int]] = []
        for _ in loader:
            taken.append(loader.last.indices.tolist())
            if len(taken) == most:
                break
        return taken

    def join(parts: list[list[list[int]]]) -> list[int]:
        return [index for step in zip(*parts) for batch in step for index in batch]

    taken, states = [], []
    for rank in range(2):
        with make(data, tail=tail, fields=fields, batch_size=4, rank=rank, num_replicas=2) as loader:
            taken.append(batches(loader, 2))
            states.append(json.loads(json.dumps(loader.state_dict())))
    assert join(taken) == whole[:16]
    parts = []
    for rank in range(3):
        with make(data, tail=tail, fields=fields, batch_size=3, rank=rank, num_replicas=3) as loader:
            loader.load_state_dict(states[0])
            parts.append(batches(loader))
    end = 16 + 34 // 9 * 9 if tail == "drop" else SAMPLES
    assert join(parts)[: end - 16] == whole[16:end]


def take(loader: Loader[Any], into: Any, batches: int, then: Callable[[], None] = lambda: None) -> None:
    """Adds so many batches to a digest, over epochs; after the first of them then is called."""
    for taken, (images, indices) in enumerate(itertools.chain.from_iterable(itertools.repeat(loader))):
        into.update(np.asarray(images).tobytes() + np.asarray(indices).tobytes())
        if taken == 0:
            then()
        if taken + 1 == batches:
            return


def test_two_nodes_one_of_them_killed_and_a_resumed_run_make_what_this_machine_makes(nodes: Any, data: Path) -> None:
    options = {"transform": RandomResizedCrop(8), "batch_size": 8, "seed": SEED, "fields": ("image", "index")}
    options["shuffle"] = "blocks:7"
    here, there = hashlib.sha256(), hashlib.sha256()
    with Loader(data, **options) as loader:
        take(loader, here, 14)
    addresses = [nodes.start(data) for _ in range(2)]
    with Loader("photos", nodes=addresses, **options) as loader:
        take(loader, there, 4, nodes.running[0].process.kill)
        state = json.loads(json.dumps(loader.state_dict()))
    with Loader("photos", nodes=addresses[1], **options) as loader:
        loader.load_state_dict(state)
        take(loader, there, 10)
    assert there.hexdigest() == here.hexdigest()


def test_a_state_goes_on_with_the_same_blocks_only(data: Path) -> None:
    with make(data) as loader:
        next(iter(loader))
        state = loader.state_dict()
    for shuffle, told in ((True, "is True"), ("blocks:8", "is blocks:8"), (False, "is False")):
        with make(data, shuffle) as other, pytest.raises(StateMismatchError, match=f"shuffle was blocks:7, {told}"):
            other.load_state_dict(state)


def test_blocks_of_a_subset_are_runs_of_its_list(data: Path) -> None:
    chosen = [*range(40, 10, -1)]
    with make(Subset(folder_of(data), chosen)) as loader:
        epochs = [read(loader) for _ in range(2)]
    runs = [chosen[at : at + 7] for at in range(0, len(chosen), 7)]
    for epoch in epochs:
        starts = sorted(epoch.index(run[0]) for run in runs)
        found = [epoch[at:end] for at, end in zip(starts, [*starts[1:], len(epoch)])]
        assert sorted(found) == sorted(runs)
    assert epochs[0] != epochs[1]


def test_blocks_of_everything_are_refused(data: Path) -> None:
    with make(data, "blocks:50") as loader, pytest.raises(PlanError, match="leaves 50 samples in their order"):
        next(iter(loader))
    told = "leaves the 9 samples of the Subset in their order"
    with make(Subset(folder_of(data), range(9)), "blocks:9") as loader, pytest.raises(ValueError, match=told):
        next(iter(loader))


def folder_of(data: Path) -> Any:
    from torchvision.datasets import ImageFolder

    return ImageFolder(str(data))
