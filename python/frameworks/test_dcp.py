"""torch.distributed.checkpoint: a state saved amid an epoch goes on with the same samples, on any number of ranks."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from conftest import run_ranks
from torch import distributed
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.stateful import Stateful as Protocol

import feedwater
from feedwater import transforms
from feedwater.dcp import Stateful

SAMPLES, GLOBAL_BATCH = 30, 4


def make_loader(folder: str, world: int) -> feedwater.Loader[Any]:
    return feedwater.Loader(
        folder, [transforms.CenterCrop(16)], batch_size=GLOBAL_BATCH // world, shuffle=True,
        fields=("image", "label", "index"), local_workers=1,
    )  # fmt: skip


def begin() -> None:
    rank, world = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    distributed.init_process_group("gloo", rank=rank, world_size=world)


def save(folder: str, place: str) -> list[list[int]]:
    """The batches after the state was saved: the rest of the epoch, and the next one."""
    begin()
    loader = make_loader(folder, distributed.get_world_size())
    rest: list[list[int]] = []
    for number, (_, _, index) in enumerate(loader):
        if number == 2:
            dcp.save({"data": Stateful(loader), "weights": torch.ones(2)}, checkpoint_id=place)
        elif number > 2:
            rest.append(index.tolist())
    rest += [index.tolist() for _, _, index in loader]
    distributed.destroy_process_group()
    return rest


def load(folder: str, place: str) -> list[list[int]]:
    begin()
    loader, weights = make_loader(folder, distributed.get_world_size()), torch.zeros(2)
    dcp.load({"data": Stateful(loader), "weights": weights}, checkpoint_id=place)
    assert weights.tolist() == [1, 1]
    batches = [index.tolist() for _ in range(2) for _, _, index in loader]
    distributed.destroy_process_group()
    return batches


def together(ranks: list[list[list[int]]]) -> list[list[int]]:
    """The samples of each step, of all ranks."""
    return [sorted(i for batch in step for i in batch) for step in zip(*ranks, strict=True)]


@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 1), (1, 2)])
def test_a_checkpoint_goes_on_amid_an_epoch(pictures: Path, before: int, after: int, tmp_path: Path) -> None:
    """8 steps, the last one of 2 samples; of another number of ranks the steps are the same."""
    place = str(tmp_path / "checkpoint")
    rest = run_ranks(before, save, str(pictures), place)
    resumed = run_ranks(after, load, str(pictures), place)
    if before == after:
        assert resumed == rest
    assert together(resumed) == together(rest)
    assert len(rest[0]) == 8 - 3 + 8


def test_it_is_an_entry_and_a_loader_is_none(pictures: Path, tmp_path: Path) -> None:
    loader = make_loader(str(pictures), 1)
    assert isinstance(Stateful(loader), Protocol)
    next(iter(loader))
    dcp.save({"data": loader}, checkpoint_id=str(tmp_path), no_dist=True)
    with pytest.raises(CheckpointException, match="Missing key"):
        dcp.load({"data": make_loader(str(pictures), 1)}, checkpoint_id=str(tmp_path), no_dist=True)


def test_the_text_is_that_of_state_dict(pictures: Path) -> None:
    loader = make_loader(str(pictures), 1)
    next(iter(loader))
    other = make_loader(str(pictures), 1)
    Stateful(other).load_state_dict(Stateful(loader).state_dict())
    assert other.state_dict() == loader.state_dict()
    with pytest.raises(KeyError, match="feedwater"):
        Stateful(other).load_state_dict(loader.state_dict())


class TitanLoader(Protocol, ABC):  # type: ignore[misc] # a Protocol of torch's as a plain base
    """What torchtitan 0.3 asks of its trainer's data, in torchtitan.components.dataloader.BaseDataLoader."""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]: ...


class Images(Stateful, TitanLoader):
    """As docs/frameworks/dcp.md has it."""

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        while True:
            for images, labels, _ in self.loader:
                yield {"input": images}, labels


def test_a_loader_as_torchtitans_goes_on_amid_an_epoch(pictures: Path, tmp_path: Path) -> None:
    """Its checkpointer has the data as an entry beside others, and its trainer asks one iterator for all steps."""
    data, again = (Images(make_loader(str(pictures), 1)) for _ in range(2))
    assert isinstance(data, TitanLoader)
    steps = iter(data)
    for _ in range(3):
        next(steps)
    dcp.save({"dataloader": data, "weights": torch.ones(2)}, checkpoint_id=str(tmp_path), no_dist=True)
    dcp.load({"dataloader": again, "weights": torch.zeros(2)}, checkpoint_id=str(tmp_path), no_dist=True)
    for (one, labels), (other, same) in zip(islice(steps, 12), islice(again, 12), strict=True):  # over an epoch's end
        assert torch.equal(one["input"], other["input"]) and torch.equal(labels, same)
        assert data.loader.last.indices.tolist() == again.loader.last.indices.tolist()
