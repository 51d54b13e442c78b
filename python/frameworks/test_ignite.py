"""Ignite: an Engine sees each epoch's samples once, goes on amid an epoch with the same ones, and ends on all ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conftest import run_ranks
from ignite.engine import Engine, Events

import feedwater
from feedwater import transforms

SAMPLES, STEPS = 30, 8
FIELDS = ("image", "label", "index")


def make_loader(folder: str, **options: Any) -> feedwater.Loader[Any]:
    return feedwater.Loader(
        folder, [transforms.CenterCrop(16)], shuffle=True, fields=FIELDS, local_workers=1, **options
    )


def make_engine(seen: list[list[int]]) -> Engine:
    return Engine(lambda engine, batch: seen.append(batch[2].tolist()))


def test_epochs_are_whole(pictures: Path) -> None:
    seen: list[list[int]] = []
    engine = make_engine(seen)
    state = engine.run(make_loader(str(pictures), batch_size=4), max_epochs=2)
    assert (state.epoch, state.iteration, state.epoch_length) == (2, 2 * STEPS, STEPS)
    for epoch in (seen[:STEPS], seen[STEPS:]):
        assert sorted(i for batch in epoch for i in batch) == list(range(SAMPLES))
    assert seen[:STEPS] != seen[STEPS:]


def test_both_states_go_on_amid_an_epoch(pictures: Path) -> None:
    whole: list[list[int]] = []
    make_engine(whole).run(make_loader(str(pictures), batch_size=4), max_epochs=3)
    seen: list[list[int]] = []
    engine, loader, states = make_engine(seen), make_loader(str(pictures), batch_size=4), []

    @engine.on(Events.ITERATION_COMPLETED(once=STEPS + 3))
    def keep() -> None:
        states.extend([dict(engine.state_dict()), loader.state_dict()])
        engine.terminate()

    engine.run(loader, max_epochs=3)
    assert seen == whole[: STEPS + 3]
    resumed: list[list[int]] = []
    engine, loader = make_engine(resumed), make_loader(str(pictures), batch_size=4)
    engine.load_state_dict(states[0])
    loader.load_state_dict(states[1])
    state = engine.run(loader)
    assert resumed == whole[STEPS + 3 :]
    assert (state.epoch, state.iteration) == (3, 3 * STEPS)


def run_rank(folder: str, tail: str) -> list[list[int]]:
    import torch

    torch.distributed.init_process_group("gloo")
    seen: list[list[int]] = []
    make_engine(seen).run(make_loader(folder, batch_size=4, tail=tail), max_epochs=2)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    return seen


def test_ranks_end_together_where_samples_do_not_divide(pictures: Path) -> None:
    for tail, steps in (("short", 4), ("drop", 3)):
        ranks = run_ranks(2, run_rank, str(pictures), tail)
        assert [len(rank) for rank in ranks] == [2 * steps] * 2
        first = [i for rank in ranks for batch in rank[:steps] for i in batch]
        assert set(first) <= set(range(SAMPLES))
        assert len(set(first)) == (SAMPLES if tail == "short" else 24)
