"""A run that stopped at any step goes on, on any ranks, with any batches: every sample once, with its own bytes."""

from __future__ import annotations

import hashlib
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from feedwater import Loader
from feedwater.transforms import RandomHorizontalFlip, RandomResizedCrop

torch = pytest.importorskip("torch")

STEPS = [RandomResizedCrop(64), RandomHorizontalFlip()]
EPOCHS = 3


class Row(NamedTuple):
    """One sample as the loop got it."""

    epoch: int
    position: int
    index: int
    label: int
    pixels: str


def make(folder: Path, **options: Any) -> Loader[Any]:
    return Loader(folder, STEPS, **{"batch_size": 16, "shuffle": True, "seed": 17, **options})


def rows(loader: Loader[Any], steps: int | None = None) -> Iterator[Row]:
    """What a pass gives; of so many steps only."""
    for images, labels in loader:
        last = loader.last
        assert last is not None
        for row, (image, label, index) in enumerate(zip(images, labels, last.indices, strict=True)):
            pixels = hashlib.sha256(image.contiguous().numpy()).hexdigest()
            yield Row(last.epoch, last.position + row, int(index), int(label), pixels)
        steps = None if steps is None else steps - 1
        if steps == 0:
            break


@pytest.fixture(autouse=True)
def kept(real: str, photos: Path) -> Iterator[None]:
    """A Loader that lives as long as the test, so that the others need not start an agent each."""
    with make(photos) as loader:
        loader.peek()
        yield


@pytest.fixture(scope="module")
def undisturbed(photos: Path, binary: str) -> list[list[Row]]:
    """[epoch][position] of a run on one rank that never stops."""
    from conftest import stop_agent

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEEDWATER_BINARY", binary)
        loader = make(photos)
        epochs = [list(rows(loader)) for _ in range(EPOCHS)]
        loader.close()
        stop_agent()
    for number, epoch in enumerate(epochs):
        assert [(row.epoch, row.position) for row in epoch] == [(number, place) for place in range(len(epoch))]
        assert sorted(row.index for row in epoch) == list(range(len(epoch)))
    return epochs


class Stop(NamedTuple):
    """Where a run stops: on so many ranks, with such batches, after such a share of an epoch."""

    world: int
    batch: int
    epoch: int
    share: float

    def steps(self, samples: int) -> int:
        return max(1, int(self.share * (samples // (self.world * self.batch))))


def stops() -> list[Stop]:
    chance = random.Random(20)
    shapes = ((1, 16), (3, 7), (2, 1), (8, 5))
    return [Stop(world, batch, chance.randrange(EPOCHS - 1), chance.random()) for world, batch in shapes]


@pytest.mark.parametrize("stop", stops(), ids=lambda s: f"{s.world} ranks, batch {s.batch}, {s.share:.0%} of {s.epoch}")
def test_what_is_left_comes_exactly_once_on_any_world(
    photos: Path, undisturbed: list[list[Row]], stop: Stop, tmp_path: Path
) -> None:
    whole = undisturbed[stop.epoch]
    steps = stop.steps(len(whole))
    before, states = [], []
    for rank in range(stop.world):
        loader = make(photos, batch_size=stop.batch, rank=rank, num_replicas=stop.world)
        loader.set_epoch(stop.epoch)
        before += rows(loader, steps)
        states.append(loader.state_dict())
        loader.close()
    consumed = stop.world * stop.batch * steps
    assert sorted(before, key=lambda row: row.position) == whole[:consumed]
    assert states == [states[0]] * stop.world, "any rank's state is every rank's"
    torch.save({"data": states[0], "model": torch.zeros(1)}, tmp_path / "checkpoint.pt")
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["data"]
    assert pickle.loads(pickle.dumps(states[-1])) == state
    for world in (1, 2, 3, 8):
        for batch in (stop.batch, 11):
            rest = resumed(photos, state, world, batch)
            assert rest[: len(whole) - consumed] == whole[consumed:], (world, batch)
            # What is more are repeats that make the last step equal on all ranks, with draws of their own.
            more = rest[len(whole) - consumed :]
            assert len(more) < world
            assert [row.index for row in more] == [row.index for row in whole[: len(more)]]
            assert not {row.pixels for row in more} & {row.pixels for row in whole}


def resumed(folder: Path, state: dict[str, Any], world: int, batch: int) -> list[Row]:
    """The rest of the epoch, of all ranks, by position."""
    found: list[Row] = []
    for rank in range(world):
        loader = make(folder, batch_size=batch, rank=rank, num_replicas=world)
        loader.load_state_dict(state)
        found += rows(loader)
        loader.close()
    return sorted(found, key=lambda row: row.position)


def test_the_epoch_after_a_resumed_one_is_whole(photos: Path, undisturbed: list[list[Row]]) -> None:
    loader = make(photos)
    list(rows(loader, 3))
    again = make(photos, batch_size=9)
    again.load_state_dict(loader.state_dict())
    assert list(rows(again)) == undisturbed[0][48:]
    assert list(rows(again)) == undisturbed[1]


def test_a_state_of_an_epochs_end_goes_on_with_the_next(photos: Path, undisturbed: list[list[Row]]) -> None:
    loader = make(photos)
    list(rows(loader))
    again = make(photos)
    again.load_state_dict(loader.state_dict())
    assert list(rows(again)) == undisturbed[1]


def test_lag_takes_batches_back(photos: Path, undisturbed: list[list[Row]]) -> None:
    loader = make(photos)
    list(rows(loader, 5))
    again = make(photos)
    again.load_state_dict(loader.state_dict(lag=2))
    assert list(rows(again, 1)) == undisturbed[0][48:64]


def test_a_pickled_loader_goes_on_where_it_was(photos: Path, undisturbed: list[list[Row]]) -> None:
    loader = make(photos)
    list(rows(loader, 2))
    assert list(rows(pickle.loads(pickle.dumps(loader)), 1)) == undisturbed[0][32:48]
