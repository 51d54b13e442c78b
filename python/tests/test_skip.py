"""skip(n): a pass without its first steps. What Accelerate is told of passes, by a stand-in for its list of them."""

from __future__ import annotations

import copy
import logging
import math
import pickle
import sys
import types
from typing import Any, ClassVar

import pytest

import feedwater
from feedwater._frameworks import accelerate as accelerate_module

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, RandomSampler  # noqa: E402

FIELDS = ("image", "index")


def taken(loader: Any) -> list[list[int]]:
    """Samples of each batch of a pass."""
    return [[int(i) for i in index] for _, index in loader]


class Lists:
    """Batches of other lengths in each epoch."""

    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Any:
        for number in range(5):
            yield [number] * (number + 1 + self.epoch)


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": True},
        {"shuffle": True, "rank": 1, "num_replicas": 3, "batch_size": 4},
        {"steps_per_epoch": 15},
        {"sampler": RandomSampler(range(100))},
        {"batch_sampler": Lists, "batch_size": None},
    ],
    ids=["range", "ranks", "steps", "sampler", "lists"],
)
def test_a_pass_begins_at_the_step_that_was_skipped_to(fake: Any, options: dict[str, Any]) -> None:
    def make() -> Any:
        made = {name: value() if isinstance(value, type) else value for name, value in options.items()}
        return fake.loader(fields=FIELDS, **made)

    whole = make()
    epochs = [taken(whole) for _ in range(3)]
    loader = make()
    loader.skip(2)
    assert taken(loader) == epochs[0][2:]
    assert taken(loader) == epochs[1], "one pass alone is skipped in"
    for order in (0, 1):
        again = make()
        steps = [lambda: again.skip(3), lambda: again.set_epoch(2)]  # noqa: B023
        for step in reversed(steps) if order else steps:
            step()
        state = again.state_dict()
        other = make()
        assert taken(again) == epochs[2][3:]
        other.load_state_dict(state)
        if "sampler" not in options:  # which draws its epochs one after the other
            assert taken(other) == epochs[2][3:], "the state knows of it"


def test_a_loaded_state_and_a_peek(fake: Any) -> None:
    loader = fake.loader(fields=FIELDS, shuffle=True)
    whole = taken(loader)
    next(batches := iter(loader))
    state = loader.state_dict()
    loader.skip(4)
    assert len(taken(batches)) == 9, "the pass that runs goes on"
    assert len(taken(loader)) == 6
    again = fake.loader(fields=FIELDS, shuffle=True)
    again.load_state_dict({**state, "epoch": 0})
    again.skip(4)
    assert [int(i) for i in again.peek()[1]] == whole[4], "of its epoch, whatever was loaded"
    assert taken(again) == whole[4:]
    again.skip(4)
    again.load_state_dict({**state, "epoch": 0})
    assert taken(again) == whole[1:], "what was loaded after it holds"
    again.set_epoch(0)
    again.peek()
    again.skip(2)
    assert taken(copy.copy(again)) == taken(pickle.loads(pickle.dumps(again))) == whole[2:]


def test_all_steps_may_be_skipped_and_no_more(fake: Any) -> None:
    loader = fake.loader(fields=FIELDS)
    loader.skip(10)
    assert taken(loader) == []
    assert len(taken(loader)) == 10 and loader.last.epoch == 1
    loader.skip(11)
    with pytest.raises(ValueError, match=r"skip\(11\): an epoch has 10 steps"):
        next(iter(loader))
    for wrong in (-1, True, 1.5, None):
        with pytest.raises(ValueError, match="needs a whole number of steps"):
            loader.skip(wrong)


# -- Accelerate --------------------------------------------------------------------------------------------------------


class Loops:
    """Accelerate's list of loops."""

    _shared_state: ClassVar[dict[str, str]] = {"is": "there"}
    loops: ClassVar[list[Any]] = []

    def _add_dataloader(self, loop: Any) -> None:
        self.loops.append(loop)

    def _remove_dataloader(self, loop: Any) -> None:
        self.loops.remove(loop)


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The loops that a stand-in for Accelerate knows."""
    module = types.ModuleType("accelerate.state")
    module.GradientState = Loops  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "accelerate.state", module)
    monkeypatch.setattr(Loops, "loops", [])
    return Loops.loops


def test_a_pass_is_among_the_loops_while_it_runs(fake: Any, loops: list[Any]) -> None:
    loader, inner = fake.loader(), fake.loader()
    ends = []
    for _ in loader:
        for number, _ in enumerate(inner):
            assert [loop.loader for loop in loops] == [loader, inner]
            if number == 1:
                break
        assert [loop.loader for loop in loops] == [loader]
        ends.append(loops[-1].end_of_dataloader)
    assert ends == [False] * 9 + [True] and loops == []
    batches = iter(loader)
    assert loops == [], "nothing begins before the first next"
    next(batches)
    assert len(loops) == 1 and pickle.dumps(batches)
    loader.close()
    with pytest.raises(feedwater.Error):
        next(batches)
    assert loops == []


def test_a_pass_that_goes_on_after_an_error_is_there_again(fake: Any, loops: list[Any]) -> None:
    fake.set(samples=100, broken=[25])
    loader = fake.loader()
    batches = iter(loader)
    next(batches), next(batches)
    with pytest.raises(feedwater.SampleError):
        next(batches)
    assert loops == []
    fake.set(samples=100)
    del batches
    with fake.loader(on_error="skip", max_errors=math.inf) as other:
        next(iter(other))


def test_rows_that_repeat(fake: Any, loops: list[Any]) -> None:
    for options, remainder in (
        ({"rank": 1, "num_replicas": 3}, 10),
        ({"rank": 1, "num_replicas": 3, "batch_size": 11}, 1),
        ({"rank": 0, "num_replicas": 3, "tail": "drop"}, 0),
        ({"rank": 2, "num_replicas": 3, "batch_size": 8, "tail": "valid", "fields": ("image", "valid")}, 4),
        ({"rank": 0, "num_replicas": 2}, 0),
    ):
        for _ in fake.loader(**options):
            found = loops[-1].end_of_dataloader, loops[-1].remainder
        assert found == (True, remainder), options


def test_the_last_batch_before_rows_that_do_not_decode(fake: Any, loops: list[Any]) -> None:
    fake.set(samples=100, broken=list(range(70, 100)))
    ends = []
    for _ in fake.loader(on_error="skip", max_errors=math.inf):
        ends.append(loops[-1].end_of_dataloader)
    assert ends == [False] * 6 + [True]


def test_a_loader_inside_a_data_loader_says_nothing(fake: Any, loops: list[Any]) -> None:
    for _ in DataLoader(feedwater.RemoteDataset(fake.loader()), batch_size=None):
        assert loops == []


def test_other_versions_are_told_once(fake: Any, loops: list[Any], monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr(accelerate_module, "_warned", [])
    monkeypatch.delattr(Loops, "_add_dataloader")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            next(iter(fake.loader()))
    assert len([r for r in caplog.records if "gather_for_metrics keeps repeated rows" in r.message]) == 1
    monkeypatch.setattr(Loops, "_shared_state", {})
    next(iter(fake.loader()))
    assert loops == [], "no Accelerator was made yet"
