"""Accelerate: the same optimizer steps, gathered rows and resumed samples as with a DataLoader."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import make_pictures, run_ranks
from torch.utils.data import DataLoader, TensorDataset
from torchvision.transforms import v2

import feedwater

SAMPLES, SIZE = 30, 16
FIELDS = ("image", "label", "index")


def transform() -> Any:
    return v2.Compose([v2.Resize((SIZE, SIZE)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


def make_loader(folder: str, batch_size: int, **options: Any) -> feedwater.Loader[Any]:
    return feedwater.Loader(folder, transform(), batch_size=batch_size, fields=FIELDS, local_workers=1, **options)


def make_data_loader(batch_size: int, **options: Any) -> Any:
    index = torch.arange(SAMPLES)
    return DataLoader(TensorDataset(torch.rand(SAMPLES, 3, SIZE, SIZE), index % 3, index), batch_size, **options)


def make_model() -> Any:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIZE * SIZE, 3))


class Counted(torch.optim.SGD):
    """Counts its steps."""

    steps = 0

    def step(self, closure: Any = None) -> Any:
        self.steps += 1
        return super().step(closure)


def train(accelerator: Any, loader: Any, epochs: int) -> list[int]:
    """Optimizer steps after each epoch."""
    model = make_model()
    optimizer = Counted(model.parameters(), lr=0.1)
    model, prepared, loader = accelerator.prepare(model, optimizer, loader)
    counted = []
    for _ in range(epochs):
        for image, label, _ in loader:
            with accelerator.accumulate(model):
                accelerator.backward(torch.nn.functional.cross_entropy(model(image), label))
                prepared.step()
                prepared.zero_grad()
        counted.append(optimizer.steps)
    return counted


def steps_with(folder: str | None, batch_size: int, options: dict[str, Any]) -> list[int]:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
    loader = make_data_loader(batch_size) if folder is None else make_loader(folder, batch_size, **options)
    return train(accelerator, loader, 2)


@pytest.mark.parametrize(("world", "batch"), [(1, 4), (2, 4)])
def test_an_epochs_last_batch_steps_the_optimizer(pictures: Path, world: int, batch: int) -> None:
    """8 steps, or 4 on two ranks, of which 3 make one of the optimizer."""
    expected = run_ranks(world, steps_with, None, batch, {})
    steps = -(-SAMPLES // (batch * world))
    assert expected == [[math.ceil(steps / 3), 2 * math.ceil(steps / 3)]] * world
    assert run_ranks(world, steps_with, str(pictures), batch, {}) == expected


def gather(folder: str, tail: str, batch_size: int) -> tuple[list[int], list[int], int]:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    fields = FIELDS if tail != "valid" else (*FIELDS, "valid")
    loader = feedwater.Loader(folder, transform(), batch_size=batch_size, fields=fields, tail=tail, local_workers=1)
    loader = accelerator.prepare(loader)
    inner = make_loader(folder, batch_size)
    found: list[int] = []
    ends = []
    for batch in loader:
        for _ in inner:  # a loop inside, which is broken off
            break
        for _ in make_loader(folder, 20, rank=0, num_replicas=1):
            pass
        found += accelerator.gather_for_metrics(batch[2]).tolist()
        ends.append(int(accelerator.gradient_state.end_of_dataloader))
    assert not accelerator.gradient_state.in_dataloader
    with accelerator.join_uneven_inputs([], even_batches=False):
        pass
    return found, ends, len(loader)


@pytest.mark.parametrize("tail", ["short", "valid", "drop"])
@pytest.mark.parametrize("world", [1, 2])
def test_rows_that_repeat_are_not_gathered(pictures: Path, world: int, tail: str, tmp_path: Path) -> None:
    odd = make_pictures(tmp_path, 29)
    for found, ends, steps in run_ranks(world, gather, str(odd), tail, 4):
        whole = 29 - 29 % (4 * world) if tail == "drop" else 29
        assert sorted(found) == list(range(whole)), "each sample once"
        assert ends == [0] * (steps - 1) + [1]


def save_and_go_on(folder: str, place: str) -> tuple[list[int], list[int], int]:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(make_loader(folder, 4, shuffle=True))
    accelerator.register_for_checkpointing(loader)
    rest: list[int] = []
    for number, (_, _, index) in enumerate(loader):
        if number == 2:
            accelerator.save_state(place)
        if number > 2:
            rest += index.tolist()
    accelerator.wait_for_everyone()  # the first rank alone writes what is registered
    accelerator.load_state(place)
    resumed = [i for _, _, index in loader for i in index.tolist()]
    return rest, resumed, len(rest)


@pytest.mark.parametrize("world", [1, 2])
def test_a_saved_state_goes_on_with_the_same_samples(pictures: Path, world: int, tmp_path: Path) -> None:
    for rest, resumed, count in run_ranks(world, save_and_go_on, str(pictures), str(tmp_path / "state")):
        assert rest == resumed and count > 0


def skip_some(folder: str) -> tuple[Any, Any, Any]:
    from accelerate import Accelerator

    import feedwater.hf

    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(make_loader(folder, 4, shuffle=True))
    whole = [[index.tolist() for _, _, index in loader] for _ in range(2)]
    loader.set_epoch(0)
    try:
        accelerator.skip_first_batches(loader, 3)
        said = ""
    except feedwater.Error as error:
        said = str(error)
    feedwater.hf.enable()
    feedwater.hf.enable()
    skipped = accelerator.skip_first_batches(loader, 3)
    skipped.set_epoch(0)
    first = [index.tolist() for _, _, index in skipped]
    second = [index.tolist() for _, _, index in loader]
    plain = accelerator.prepare(make_data_loader(4))
    rest = [index.tolist() for _, _, index in accelerator.skip_first_batches(plain, 6)]
    return (first, second, rest), (whole[0][3:], whole[1], [[24, 25, 26, 27], [28, 29]]), said


def test_batches_are_skipped(pictures: Path) -> None:
    found, expected, said = run_ranks(1, skip_some, str(pictures))[0]
    assert found == expected
    assert "feedwater.hf.enable()" in said


def end_amid_errors(folder: str) -> list[Any]:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=5)
    ends = []
    loader = make_loader(folder, 4, on_error="skip", max_errors=math.inf)
    for _ in loader:
        ends.append(accelerator.gradient_state.end_of_dataloader)
    with pytest.raises(ZeroDivisionError):
        for _ in loader:
            1 / 0  # noqa: B018
    left = accelerator.gradient_state.in_dataloader
    iterator = iter(loader)
    next(iterator)
    inside = accelerator.gradient_state.in_dataloader
    loader.close()
    with pytest.raises(feedwater.Error):
        next(iterator)
    return [ends, left, inside, accelerator.gradient_state.in_dataloader]


def test_the_end_is_known_where_the_last_rows_do_not_decode(tmp_path: Path) -> None:
    folder = make_pictures(tmp_path, 16)
    for broken in sorted(folder.rglob("*.jpg"))[12:]:
        broken.write_bytes(b"no picture")
    assert run_ranks(1, end_amid_errors, str(folder)) == [[[False, False, True], False, True, False]]


def through_a_data_loader(folder: str) -> tuple[list[int], list[int]]:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
    dataset = feedwater.RemoteDataset(make_loader(folder, 4))
    return train(accelerator, DataLoader(dataset, batch_size=None), 2)


def test_a_data_loader_around_it_tells_of_the_end_itself(pictures: Path) -> None:
    assert run_ranks(1, through_a_data_loader, str(pictures)) == [[3, 6]]
