"""The Loader against the fake agent: what batches hold, and what iterating means."""

from __future__ import annotations

import copy
import json
import logging
import multiprocessing
import pickle
import re
import threading
from typing import Any

import numpy as np
import pytest
from conftest import SIZE
from expect import check, order, picture, whole_epoch

import feedwater
from feedwater import Loader, StateMismatchError, transforms
from feedwater._agent.index_use import IndexUse

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")


def ids(batches: Any, loader: Loader[Any]) -> list[int]:
    """Indices of all samples of a pass."""
    return [i for _ in batches for i in loader.last.indices.tolist()]  # type: ignore[union-attr]


# -- batches -----------------------------------------------------------------------------------------------------------


def test_epochs_are_complete_right_and_different(fake: Any) -> None:
    loader = fake.loader(shuffle=True, batch_size=16)
    assert len(loader) == 7
    for epoch in range(3):
        whole_epoch(loader, epoch)
    assert order(0) != order(1)


def test_without_shuffle_the_order_is_the_data_sets(fake: Any) -> None:
    loader = fake.loader()
    whole_epoch(loader, 0, shuffle=False)


def test_nothing_is_started_before_the_first_next(fake: Any) -> None:
    loader = fake.loader()
    iter(loader)
    assert not loader.state_dict()["consumed"]
    assert (loader.batch_size, loader.drop_last, loader.num_workers, loader.batch_sampler) == (10, False, 0, None)
    assert fake.log() == []
    assert len(loader) == 10, "to know the number of samples the agent must look"
    assert [line["call"] for line in fake.log("call")] == ["open"], "and nothing else"


def test_uint8_tensors_are_views_with_channels_last(fake: Any) -> None:
    loader = fake.loader()
    image, label = next(iter(loader))
    assert image.shape == (10, 3, SIZE, SIZE)
    assert image.dtype == torch.uint8
    assert image.is_contiguous(memory_format=torch.channels_last)
    assert label.dtype == torch.int64
    check(image, range(10))
    slots = loader._engine.feed.session.slots
    assert slots.count_unleased() == slots.count - 1, "the batch is in its slot, not a copy"
    image.add_(1)
    assert image[0, 0, 0, 0] == picture(0)[0, 0, 0] + 1


@pytest.mark.parametrize("memory_format", [None, torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float16, torch.bfloat16])
def test_floats_are_torchvisions(fake: Any, dtype: Any, memory_format: Any) -> None:
    tail = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.4))]
    loader = fake.loader(transform=[v2.CenterCrop(SIZE), *tail], dtype=dtype, memory_format=memory_format)
    image, _ = next(iter(loader))
    pictures = torch.stack([torch.from_numpy(picture(i).copy()).permute(2, 0, 1) for i in range(10)])
    expected = v2.Compose(tail[1:])(pictures).to(dtype or torch.float32)
    assert torch.equal(image, expected)
    wanted = memory_format or torch.contiguous_format
    assert image.is_contiguous(memory_format=wanted)


def test_contiguous_uint8(fake: Any) -> None:
    image, _ = next(iter(fake.loader(memory_format=torch.contiguous_format)))
    assert image.is_contiguous()
    check(image, range(10))


def test_a_cast_without_scaling(fake: Any) -> None:
    image, _ = next(iter(fake.loader(dtype=torch.float32)))
    assert torch.equal(image[3].permute(1, 2, 0), torch.from_numpy(picture(3).astype(np.float32)))


def test_arrays_where_there_is_no_torch(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    loaders = []
    with monkeypatch.context() as without:
        without.delitem(sys.modules, "torch")
        t = transforms
        steps = {
            "picture": [t.CenterCrop(SIZE)],
            "tensor": [t.CenterCrop(SIZE), t.ToImage()],
            "float": [t.CenterCrop(SIZE), t.ToImage(), t.ToDtype("float32", scale=True)],
        }
        loaders = {name: fake.loader(transform=some) for name, some in steps.items()}
    batches = {name: next(iter(loader)) for name, loader in loaders.items()}
    for image, label in batches.values():
        assert type(image) is type(label) is np.ndarray
    assert batches["picture"][0].shape == (10, SIZE, SIZE, 3)
    check(batches["picture"][0], range(10))
    assert batches["tensor"][0].shape == (10, 3, SIZE, SIZE)
    check(batches["tensor"][0], range(10))
    image = batches["float"][0]
    assert image.dtype == np.float32
    assert image.flags.c_contiguous
    assert np.array_equal(image[3].transpose(1, 2, 0), picture(3).astype(np.float32) * np.float32(1 / 255))


def test_fields_choose_and_rename(fake: Any) -> None:
    loader = fake.loader(fields=("key", "index", "label", "image", "valid"), shuffle=True)
    key, index, label, image, valid = next(iter(loader))
    assert index.tolist() == loader.last.indices.tolist() == order()[:10]
    assert key == [f"class{i % 10}/{i}.jpg" for i in order()[:10]]
    assert label.tolist() == [i % 10 for i in order()[:10]]
    assert valid.tolist() == [True] * 10
    check(image, order()[:10])
    batch = next(iter(fake.loader(fields={"image": "pixel_values", "label": "labels"})))
    assert list(batch) == ["pixel_values", "labels"]
    check(batch["pixel_values"], range(10))


def test_batch_transform_gets_a_generator_of_its_own_for_each_batch(fake: Any) -> None:
    def mix(batch: Any, rng: np.random.Generator) -> Any:
        return batch[1].tolist(), int(rng.integers(1 << 40))

    first, again = (list(fake.loader(batch_transform=mix, seed=5)) for _ in range(2))
    assert first == again
    assert len({number for _, number in first}) == 10
    other = list(fake.loader(batch_transform=mix, seed=6))
    assert not {number for _, number in first} & {number for _, number in other}
    loader = fake.loader(batch_transform=mix, seed=5)
    loader.load_state_dict({**loader.state_dict(), "consumed": 30})
    assert list(loader) == first[3:], "also after a resume"
    assert list(loader) != first


def test_pictures_of_different_sizes_come_as_a_list(fake: Any) -> None:
    loader = Loader(fake.data, batch_size=10)
    image, label = next(iter(loader))
    assert [tuple(i.shape) for i in image] == [(3, 4 + i % 5, 4 + i % 3) for i in range(10)]
    for i in range(10):
        assert np.array_equal(image[i].permute(1, 2, 0), picture(i, size=(4 + i % 5, 4 + i % 3)))
    assert label.tolist() == list(range(10))
    slots = loader._engine.feed.session.slots
    kept = image[7]
    del image
    assert slots.count_unleased() == slots.count - 1, "one picture holds the slot"
    del kept
    assert slots.count_unleased() == slots.count


def test_pictures_of_different_sizes_as_floats(fake: Any) -> None:
    loader = Loader(fake.data, [transforms.ToImage(), transforms.ToDtype("float32")], batch_size=10)
    image, _ = next(iter(loader))
    for i in range(10):
        assert np.array_equal(image[i].permute(1, 2, 0), picture(i, size=(4 + i % 5, 4 + i % 3)).astype(np.float32))


def test_large_batches_of_different_sizes_are_refused(fake: Any) -> None:
    with pytest.raises(feedwater.DataError, match=r"goes up to 2048 in a batch, not 4000: add CenterCrop"):
        next(iter(Loader(fake.data, batch_size=4000)))


# -- ranks and tails ---------------------------------------------------------------------------------------------------


def test_ranks_split_every_step(fake: Any) -> None:
    loaders = [fake.loader(shuffle=True, batch_size=16, rank=rank, num_replicas=3) for rank in range(3)]
    assert {len(loader) for loader in loaders} == {3}
    passes = [[loader.last.indices.tolist() for _ in loader] for loader in loaders]
    together = [i for step in zip(*passes, strict=True) for part in step for i in part]
    assert together[:100] == order()
    assert together[100:] == order()[:2], "equal sizes: two samples come once more"
    assert [len(part) for part in passes[0]] == [16, 16, 2]


def test_repeats_have_draws_of_their_own(fake: Any) -> None:
    loader = fake.loader(shuffle=True, batch_size=16, rank=2, num_replicas=3)
    *_, (image, _) = loader
    assert loader.last.position == 100
    check(image, order()[:2], repeats=[1, 1])


@pytest.mark.parametrize(
    "options", [{"sampler": range(100), "batch_size": 16}, {"batch_sampler": [range(100)], "batch_size": None}]
)
def test_repeats_of_a_samplers_order_have_draws_of_their_own(fake: Any, options: dict[str, Any]) -> None:
    loader = fake.loader(rank=2, num_replicas=3, **options)
    *_, (image, _) = loader
    check(image[-2:], [0, 1], repeats=[100, 101])


@pytest.mark.parametrize("world", [1, 3, 8])
def test_valid_says_which_rows_count(fake: Any, world: int) -> None:
    seen = []
    for rank in range(world):
        loader = fake.loader(
            batch_size=16, tail="valid", fields=("image", "label", "valid", "index"), rank=rank, num_replicas=world
        )
        for image, label, valid, index in loader:
            assert len(image) == len(label) == len(valid) == 16
            assert image.shape == (16, 3, SIZE, SIZE)
            held = index[valid].tolist()
            check(image[valid], held)
            assert label[valid].tolist() == [i % 10 for i in held]
            assert not image[~valid].any()
            assert not label[~valid].any()
            assert (index[~valid] == -1).all()
            seen += held
        assert len(loader) == -(-100 // (16 * world))
    assert sorted(seen) == list(range(100))


def test_a_rank_that_never_gets_a_sample_has_as_many_steps(fake: Any) -> None:
    loader = fake.loader(batch_size=100, tail="valid", fields=("image", "valid"), rank=1, num_replicas=2)
    for _ in range(2):
        batches = list(loader)
        assert len(batches) == 1
        assert not batches[0][1].any()
        assert batches[0][0].shape == (100, 3, SIZE, SIZE)
    assert fake.log("want") == []


def test_drop_leaves_the_rest(fake: Any) -> None:
    loader = fake.loader(batch_size=16, drop_last=True)
    assert loader.drop_last
    assert len(loader) == 6
    assert ids(loader, loader) == list(range(96))


def test_steps_per_epoch_ends_or_lengthens_an_epoch(fake: Any) -> None:
    loader = fake.loader(batch_size=16, steps_per_epoch=3, shuffle=True)
    assert len(loader) == 3
    assert fake.log() == [], "the length is an argument"
    assert ids(loader, loader) == order(0)[:48]
    assert ids(loader, loader) == order(1)[:48]
    loader = fake.loader(batch_size=16, steps_per_epoch=8, shuffle=True)
    assert ids(loader, loader) == order(0) + order(0)[:28]


# -- what iterating means ----------------------------------------------------------------------------------------------


def test_iter_just_to_look_changes_nothing(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    iter(loader)
    it = iter(loader)
    iter(loader)
    next(it)
    assert loader.last.indices.tolist() == order(0)[:10]


def test_the_first_batches_of_epochs_again_and_again(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    for epoch in range(20):
        next(iter(loader))
        assert loader.last.indices.tolist() == order(epoch)[:10]
    assert len(fake.log("start")) == 1
    assert len(fake.log("cancel")) <= 3, "after the first time the habit is known, and nothing is made in vain"
    assert len(fake.log("want")) <= 20 + 4 + 4


def test_a_loop_that_breaks_off_is_met_at_its_habit(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    for epoch in range(5):
        for step, _ in enumerate(loader):
            assert loader.last.indices.tolist() == order(epoch)[step * 10 : step * 10 + 10]
            if step == 5:
                break
    wanted = [tuple(line["want"][1:3]) for line in fake.log("want")]
    assert (60, 0) in wanted
    assert (60, 1) not in wanted, "what the loop will not reach is not made"
    whole_epoch(loader, 5)
    whole_epoch(loader, 6)


def test_the_next_epochs_first_batches_are_wanted_before_this_one_ends(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    it = iter(loader)
    for _ in range(9):
        next(it)
    fake.until(lambda: len(fake.log("want")) >= 12)
    wanted = [tuple(line["want"][1:3]) for line in fake.log("want")]
    assert wanted[-3:] == [(90, 0), (0, 1), (10, 1)]


def test_an_ended_iterator_stays_ended(fake: Any) -> None:
    loader = fake.loader()
    it = iter(loader)
    list(it)
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(it)
    assert loader.state_dict()["epoch"] == 1


def test_an_iterator_left_behind_says_so(fake: Any) -> None:
    loader = fake.loader()
    old = iter(loader)
    next(old)
    next(iter(loader))
    with pytest.raises(feedwater.Error, match="left behind by a newer iter"):
        next(old)


def test_set_epoch_goes_elsewhere(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    next(iter(loader))
    loader.set_epoch(7)
    whole_epoch(loader, 7)
    loader.sampler.set_epoch(3)
    whole_epoch(loader, 3)
    whole_epoch(loader, 4)
    for bad in (-1, 1.5, True, 1 << 32):
        with pytest.raises(ValueError, match="set_epoch"):
            loader.set_epoch(bad)


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_set_epoch_amid_a_pass_is_for_the_next_one(fake: Any, epoch: int) -> None:
    loader = fake.loader(shuffle=True)
    states = []
    seen = []
    for step, _ in enumerate(loader):
        if step == 4:
            loader.set_epoch(epoch)
        seen += loader.last.indices.tolist()
        states.append(loader.state_dict())
        if step == 7:
            loader.peek()
    assert seen == order(0), "the pass goes on"
    places = [(state["epoch"], state["consumed"]) for state in states]
    assert places[5:] == [(0, 60), (0, 70), (0, 80), (0, 90), (epoch, 0)], "what a resumed run has to do"
    assert loader.state_dict() == states[-1]
    whole_epoch(loader, epoch)
    whole_epoch(loader, epoch + 1)


def test_peek_consumes_nothing(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    peeked, _ = loader.peek()
    assert torch.equal(loader.peek()[0], peeked)
    assert loader.last is None
    assert loader.state_dict()["consumed"] == 0
    it = iter(loader)
    assert torch.equal(next(it)[0], peeked)
    for place in range(1, 10):
        assert loader.peek() is not None
        assert loader.state_dict()["consumed"] == 10 * place
        next(it)
        assert loader.last.indices.tolist() == order(0)[place * 10 : place * 10 + 10]
    assert loader.peek() is None, "the epoch ends here"
    assert next(it, None) is None
    loader.peek()
    whole_epoch(loader, 1)
    loader.peek()
    loader.set_epoch(9)
    whole_epoch(loader, 9)


def test_after_an_error_of_peek_iter_goes_on_at_the_cursor(fake: Any) -> None:
    fake.set(broken=[25])
    loader = fake.loader()
    it = iter(loader)
    next(it)
    next(it)
    for attempt in (loader.peek, lambda: next(iter(loader)), loader.peek):
        with pytest.raises(feedwater.SampleError):
            attempt()
        assert (loader.state_dict()["epoch"], loader.state_dict()["consumed"]) == (0, 20)


def test_peek_begins_again_where_it_could_not_begin(fake: Any) -> None:
    fake.set(faults=[{"at": "open", "nth": 1, "do": "error", "error": {"kind": "data", "message": "no such folder"}}])
    loader = fake.loader()
    with pytest.raises(feedwater.DataError, match="no such folder"):
        loader.peek()
    assert loader.peek() is not None


# -- state -------------------------------------------------------------------------------------------------------------


def test_state_is_small_json_and_the_same_on_every_rank(fake: Any) -> None:
    loaders = [fake.loader(shuffle=True, rank=rank, num_replicas=3) for rank in range(3)]
    for loader in loaders:
        for _ in zip(range(2), loader):
            pass
    states = [json.dumps(loader.state_dict(), sort_keys=True) for loader in loaders]
    assert states[0] == states[1] == states[2]
    assert len(states[0]) < 1024
    assert json.loads(states[0])["consumed"] == 60


@pytest.mark.parametrize("at", [1, 4, 9])
def test_a_run_resumes_exactly(fake: Any, at: int) -> None:
    loader = fake.loader(shuffle=True)
    it = iter(loader)
    for _ in range(at):
        next(it)
    state = json.loads(json.dumps(loader.state_dict()))
    resumed = fake.loader(shuffle=True)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    iter(resumed)  # as frameworks do, just to look
    assert ids(resumed, resumed) == order(0)[at * 10 :]
    assert len(resumed) == 10, "later epochs are whole again"
    whole_epoch(resumed, 1)


def test_a_run_resumes_on_another_world_and_batch_size(fake: Any) -> None:
    first = [fake.loader(shuffle=True, batch_size=8, rank=rank, num_replicas=3) for rank in range(3)]
    held = []
    for loader in first:
        it = iter(loader)
        next(it)
        held.append(loader.last.indices.tolist())
    state = first[1].state_dict()
    rest = [fake.loader(shuffle=True, batch_size=5, rank=rank, num_replicas=2) for rank in range(2)]
    parts = []
    for loader in rest:
        loader.load_state_dict(state)
        parts.append([loader.last.indices.tolist() for _ in loader])
    together = [i for part in held for i in part] + [
        i for step in zip(*parts, strict=True) for part in step for i in part
    ]
    assert together == order(0)


def test_a_state_after_the_epoch_begins_the_next_one(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    whole_epoch(loader, 0)
    state = loader.state_dict()
    assert (state["epoch"], state["consumed"]) == (1, 0)
    resumed = fake.loader(shuffle=True)
    resumed.load_state_dict(state)
    resumed.set_epoch(1)
    whole_epoch(resumed, 1)


@pytest.mark.parametrize(
    "options",
    [{}, {"tail": "drop", "batch_size": 30}, {"tail": "valid", "batch_size": 30}, {"steps_per_epoch": 3}]
    + [{"rank": 1, "num_replicas": 3, "tail": tail} for tail in ("short", "valid", "drop")]
    + [{"sampler": range(100)}, {"batch_sampler": [[1, 2], [3]], "batch_size": None}],
)
def test_a_state_after_the_last_batch_within_the_loop_begins_the_next_epoch(fake: Any, options: Any) -> None:
    if options.get("tail") == "valid":
        options |= {"fields": ("image", "label", "valid")}
    loader = fake.loader(**options)
    states = [loader.state_dict() for _ in loader]
    assert [state["epoch"] for state in states] == [0] * (len(loader) - 1) + [1]
    assert states[-1]["consumed"] == 0
    assert states[-1] == loader.state_dict(), "as after the loop"
    resumed = fake.loader(**options)
    resumed.load_state_dict(states[-1])
    resumed.set_epoch(states[-1]["epoch"])
    assert [resumed.last.epoch for _ in resumed] == [1] * len(loader)


def test_an_epoch_is_any_whole_number(fake: Any) -> None:
    loader = fake.loader()
    loader.set_epoch(np.int64(3))
    next(iter(loader))
    assert loader.state_dict()["epoch"] == 3
    assert type(loader.state_dict()["epoch"]) is int
    for wrong in (-1, 1 << 32, 1.0, True, "1", None):
        with pytest.raises(ValueError, match="set_epoch"):
            loader.set_epoch(wrong)


def test_taking_a_state_at_the_end_moves_nothing(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    it = iter(loader)
    for _ in range(10):
        next(it)
    assert loader.state_dict()["epoch"] == 1
    assert loader.state_dict(lag=1)["consumed"] == 90
    assert next(it, None) is None
    whole_epoch(loader, 1)


def test_lag_treats_returned_batches_as_not_consumed(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    for _ in zip(range(5), loader):
        pass
    assert [loader.state_dict(lag=lag)["consumed"] for lag in range(3)] == [50, 40, 30]
    with pytest.raises(ValueError, match="lag=9"):
        loader.state_dict(lag=9)


def test_loading_back_into_a_running_loader(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    it = iter(loader)
    next(it)
    state = loader.state_dict()
    list(it)
    loader.load_state_dict(state)
    loader.set_epoch(0)  # the state's own epoch: keeps the cursor
    assert ids(loader, loader) == order(0)[10:]
    it = iter(loader)
    next(it)
    loader.load_state_dict(state)
    next(it)
    assert (loader.last.epoch, loader.last.indices.tolist()) == (0, order(0)[10:20])
    loader.load_state_dict({})
    whole_epoch(loader, 0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"seed": 1}, "seed was 0, is 1"),
        ({"shuffle": False}, "shuffle was True, is False"),
    ],
)
def test_a_state_of_another_order_is_always_an_error(fake: Any, change: dict[str, Any], why: str) -> None:
    loader = fake.loader(shuffle=True)
    next(iter(loader))
    for strict in (True, False):
        other = fake.loader(**{"shuffle": True, **change})
        before = len(fake.log("call"))
        with pytest.raises(StateMismatchError, match=why) as caught:
            other.load_state_dict(loader.state_dict(), strict=strict)
        assert isinstance(caught.value, ValueError)
        assert len(fake.log("call")) == before, "what the arguments tell needs no data"
    other.load_state_dict({})
    next(iter(other))
    with pytest.raises(StateMismatchError, match=why):  # the plan is open now: at once
        other.load_state_dict(loader.state_dict())
    next(iter(other))
    assert other.last.epoch == 1, "a state that was refused changes nothing"


def test_a_state_of_other_data_is_an_error(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    next(iter(loader))
    loader.close()
    fake.set(samples=100, salt=1)
    other = fake.loader(shuffle=True)
    with pytest.raises(StateMismatchError, match=r"the data set \(fingerprint\) was 257fe82663aa…, is "):
        other.load_state_dict(loader.state_dict())
    next(iter(other))
    assert other.last.epoch == 0, "a state that was refused changes nothing"


def test_other_pixels_and_numerics_must_be_meant(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    next(iter(loader))
    state = loader.state_dict()
    loader.close()
    for spec, options, why in (
        ({}, {"transform": transforms.CenterCrop(6)}, "transforms .pixel hash. were .* strict=False"),
        ({"numerics": "2a" * 32}, {}, "numerics of the nodes were 171717171717…, are 2a2a2a2a2a2a…"),
    ):
        fake.set(**spec)
        other = fake.loader(shuffle=True, **options)
        with pytest.raises(StateMismatchError, match=why):
            other.load_state_dict(state)
        other.load_state_dict(state, strict=False)
        next(iter(other))
        assert other.last.indices.tolist() == order(0)[10:20]
        other.close()


@pytest.mark.parametrize(("before", "now"), [("jpg", "mask"), ("jpg", None), (None, "mask")])
def test_another_column_of_pictures_must_be_meant(fake: Any, before: str | None, now: str | None) -> None:
    loader = fake.loader(shuffle=True, image=before)
    next(iter(loader))
    state = loader.state_dict()
    other = fake.loader(shuffle=True, image=now)
    why = re.escape(f"image was {before!r}, is {now!r}. If that is meant, load_state_dict(state, strict=False)")
    with pytest.raises(StateMismatchError, match=why):
        other.load_state_dict(state)
    with fake.loader(shuffle=True, image=before) as same:
        same.load_state_dict(state)
        next(iter(same))
    for loaded, strict in ((state, False), ({k: v for k, v in state.items() if k != "image"}, True)):  # saved before
        with fake.loader(shuffle=True, image=now) as meant:
            meant.load_state_dict(loaded, strict=strict)
            next(iter(meant))
            assert meant.state_dict()["image"] == now


@pytest.mark.parametrize(
    "state", [{"version": 2}, {"version": 1, "epoch": -1, "consumed": 0}, {"version": 1}, {"epoch": 1}]
)
def test_what_is_no_state_is_refused_at_once(fake: Any, state: dict[str, Any]) -> None:
    with pytest.raises(StateMismatchError):
        fake.loader().load_state_dict(state)


def test_torch_save_takes_the_state_with_weights_only(fake: Any, tmp_path: Any) -> None:
    loader = fake.loader(shuffle=True)
    next(iter(loader))
    torch.save(loader.state_dict(), tmp_path / "state.pt")
    assert torch.load(tmp_path / "state.pt", weights_only=True) == loader.state_dict()


# -- samplers ----------------------------------------------------------------------------------------------------------


def test_a_sampler_decides_the_order_and_its_repeats_have_draws_of_their_own(fake: Any) -> None:
    indices = [5, 99, 5, 0, 5, 17, 99]
    loader = fake.loader(sampler=indices, batch_size=3)
    assert len(loader) == 3
    seen = []
    for image, label in loader:
        places = range(loader.last.position, loader.last.position + len(image))
        assert loader.last.indices.tolist() == [indices[place] for place in places]
        assert label.tolist() == [indices[place] % 10 for place in places]
        check(image, loader.last.indices, repeats=places)
        seen += loader.last.indices.tolist()
    assert seen == indices
    assert ids(loader, loader) == indices, "and again"


def test_samplers_of_pytorch(fake: Any) -> None:
    from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler

    torch.manual_seed(1)
    before = torch.get_rng_state()
    loader = fake.loader(sampler=RandomSampler(range(100)))
    epochs = [ids(loader, loader) for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(100))
    assert epochs[0] != epochs[1]
    assert torch.equal(torch.get_rng_state(), before)
    sampler = DistributedSampler(range(100), 3, 1)
    loader = fake.loader(sampler=sampler, rank=1, num_replicas=3)
    sampler.set_epoch(0)
    assert ids(loader, loader) == list(DistributedSampler(range(100), 3, 1))
    lists = BatchSampler(range(100), 7, drop_last=True)
    loader = fake.loader(batch_sampler=lists, batch_size=None)
    assert (len(loader), loader.batch_size) == (14, None)
    assert [loader.last.indices.tolist() for _ in loader] == list(lists)


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_valid_says_which_rows_of_a_batch_samplers_list_count(fake: Any, world: int) -> None:
    lists = [[1], [2, 3], list(range(50)), list(range(99)), [4] * 4]
    loaders = [
        fake.loader(
            batch_sampler=lists,
            batch_size=None,
            tail="valid",
            fields=("image", "valid", "index"),
            rank=rank,
            num_replicas=world,
        )
        for rank in range(world)
    ]
    for items, step in zip(lists, zip(*loaders, strict=True), strict=True):
        held = []
        for loader, (image, valid, index) in zip(loaders, step):
            assert len(image) == len(valid) == len(index) == -(-len(items) // world)
            places = range(loader.last.position, loader.last.position + int(valid.sum()))
            check(image[valid], index[valid].tolist(), repeats=places)
            assert not image[~valid].any()
            assert (index[~valid] == -1).all()
            held += index[valid].tolist()
        assert held == items


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("place", [(0, 1), (0, 2), (1, 4)])
def test_a_sampler_that_splits_otherwise_than_the_loader_is_refused(
    fake: Any, place: tuple[int, int], lists: bool
) -> None:
    from torch.utils.data import BatchSampler, DistributedSampler

    theirs = DistributedSampler(range(100), 2, 1, shuffle=False)
    sampler = {"batch_sampler": BatchSampler(theirs, 7, False), "batch_size": None} if lists else {"sampler": theirs}
    told = f"rank={place[0]}, num_replicas={place[1]}"
    for use in (len, lambda loader: next(iter(loader)), lambda loader: loader.peek()):
        with pytest.raises(ValueError, match=f"rank=1, num_replicas=2, .*{told}: .* Pass both the same"):
            use(fake.loader(rank=place[0], num_replicas=place[1], **sampler))
    loader = fake.loader(rank=1, num_replicas=2, **sampler)
    assert ids(loader, loader) == list(theirs)


def test_a_sampler_that_could_split_and_does_not_is_split(fake: Any) -> None:
    class Whole(list[int]):
        num_replicas = rank = None

    loader = fake.loader(rank=1, num_replicas=2, sampler=Whole(range(40)))
    assert ids(loader, loader) == [*range(10, 20), *range(30, 40)]


def test_a_batch_sampler_with_batches_that_grow(fake: Any) -> None:
    lists = [[1], [2, 3], list(range(50)), [4], list(range(99))]
    loader = fake.loader(batch_sampler=lists, batch_size=None)
    for _ in range(2):
        seen = []
        for image, _ in loader:
            last = loader.last
            seen.append(last.indices.tolist())
            check(image, last.indices, last.epoch, repeats=range(last.position, last.position + len(image)))
        assert seen == lists


@pytest.mark.parametrize("after", [1, 3])
def test_a_run_whose_sampler_has_a_generator_resumes(fake: Any, after: int) -> None:
    from torch.utils.data import RandomSampler

    def make(rank: int = 0, world: int = 1) -> Any:
        sampler = RandomSampler(range(100), generator=torch.Generator().manual_seed(3))
        return fake.loader(sampler=sampler, rank=rank, num_replicas=world, batch_size=4)

    loader = make()
    whole = [ids(loader, loader) for _ in range(3)]
    loader = make()
    ids(loader, loader)
    for number, _ in enumerate(loader):
        if number == 9:
            state = json.loads(json.dumps(loader.state_dict()))
            break
    resumed = [make(rank, after) for rank in range(after)]
    for one in resumed:
        one.load_state_dict(state)
        assert one.state_dict() == state
        list(one)
    for one in resumed:
        one.load_state_dict(state)  # once more, where the generator stands elsewhere by now
        assert one.state_dict() == state
    for epoch, begun in ((1, 40), (2, 0)):
        taken = []
        for step in zip(*resumed, strict=True):
            taken += [i for one, _ in zip(resumed, step) for i in one.last.indices.tolist()]
        assert taken[: 100 - begun] == whole[epoch][begun:]
    assert resumed[0].state_dict() == resumed[-1].state_dict()


def test_a_copy_has_where_the_samplers_generator_stood_before_what_was_looked_at(fake: Any) -> None:
    from torch.utils.data import RandomSampler

    loader = fake.loader(sampler=RandomSampler(range(100), generator=torch.Generator().manual_seed(3)))
    loader.peek()
    twin = pickle.loads(pickle.dumps(loader))
    assert twin.state_dict() == loader.state_dict()
    assert ids(twin, twin) == ids(loader, loader)


def test_a_samplers_run_resumes(fake: Any) -> None:
    from torch.utils.data import WeightedRandomSampler

    def make() -> Any:
        return fake.loader(sampler=WeightedRandomSampler([float(i) for i in range(100)], 60))

    loader = make()
    whole = [ids(loader, loader) for _ in range(2)]
    loader = make()
    list(loader)
    for _ in zip(range(3), loader):
        pass
    state = json.loads(json.dumps(loader.state_dict()))
    assert len(json.dumps(state)) < 1024
    resumed = make()
    resumed.load_state_dict(state)
    assert ids(resumed, resumed) == whole[1][30:]
    for other in (fake.loader(), fake.loader(sampler=list(range(100)))):
        with pytest.raises(StateMismatchError, match="sampler"):
            other.load_state_dict(state, strict=False)
            next(iter(other))  # a sampler of another kind is found out when it draws


def test_a_subset_of_an_image_folder(fake: Any, folder: Any) -> None:
    from torch.utils.data import Subset

    chosen = [3, 1, 4, 1, 5, 92, 65]
    loader = Loader(Subset(folder, chosen), transforms.CenterCrop(SIZE), batch_size=3)
    assert len(loader) == 3
    assert ids(loader, loader) == chosen
    state = loader.state_dict()
    shuffled = Loader(Subset(folder, chosen), transforms.CenterCrop(SIZE), batch_size=3, shuffle=True)
    epochs = [ids(shuffled, shuffled) for _ in range(3)]
    assert all(sorted(epoch) == sorted(chosen) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1
    other = Loader(Subset(folder, [*chosen[:-1], 66]), transforms.CenterCrop(SIZE), batch_size=3)
    with pytest.raises(StateMismatchError, match="Subset"):
        other.load_state_dict(state)
    whole = Loader(folder, transforms.CenterCrop(SIZE), batch_size=3)
    before = len(fake.log("call"))
    assert len(whole) == 34
    assert len(fake.log("call")) == before, "the ImageFolder has counted"
    assert next(iter(whole)) is not None


def test_an_image_folder_that_is_not_what_the_agent_sees(fake: Any) -> None:
    from torchvision.datasets import ImageFolder

    (fake.data / "class0").mkdir()
    (fake.data / "class0" / "1.jpg").touch()
    with pytest.raises(feedwater.DataError, match="classes differ from those of the ImageFolder"):
        next(iter(Loader(ImageFolder(fake.data), batch_size=3)))


# -- broken samples ----------------------------------------------------------------------------------------------------


def test_a_broken_sample_is_named_and_the_loader_stands_before_it(fake: Any) -> None:
    fake.set(broken=[25])
    loader = fake.loader()
    it = iter(loader)
    next(it)
    next(it)
    for attempt in (it, iter(loader), iter(loader)):
        with pytest.raises(feedwater.SampleError) as caught:
            next(attempt)
        error = caught.value
        assert (error.key, error.index, error.op, error.node) == ("class5/25.jpg", 25, "decode", "")
        assert error.cause == "no picture in 25"
        assert str(error).startswith("class5/25.jpg (index 25): decode: no picture in 25. Pass on_error=")
        assert loader.state_dict()["consumed"] == 20
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.index) == (str(error), 25)
    sample = loader.replay(25)
    assert sample.image is None
    assert isinstance(sample.error, feedwater.SampleError)


def test_skip_leaves_out_rows(fake: Any) -> None:
    fake.set(broken=[1, 25, 29])
    loader = fake.loader(on_error="skip", max_errors=3)
    seen = []
    for image, label in loader:
        indices = loader.last.indices.tolist()
        check(image, indices)
        assert label.tolist() == [i % 10 for i in indices]
        seen += indices
    assert seen == [i for i in range(100) if i not in (1, 25, 29)]
    assert loader.stats().skipped == 3
    assert loader.stats().samples == 97
    assert loader.state_dict()["epoch"] == 1, "the cursor counts them: a hole shifts nothing"


def test_skip_with_valid_keeps_the_rows_as_zeros(fake: Any) -> None:
    fake.set(broken=[1, 25, 29])
    loader = fake.loader(
        on_error="skip", max_errors=3, fields=("image", "label", "valid", "index"), tail="valid", batch_size=16
    )
    seen = []
    for image, _, valid, index in loader:
        assert image.shape == (16, 3, SIZE, SIZE)
        check(image[valid], index[valid])
        assert not image[~valid].any()
        seen += index[valid].tolist()
    assert seen == [i for i in range(100) if i not in (1, 25, 29)]


def test_substitute_puts_another_sample_there(fake: Any) -> None:
    fake.set(broken=[1, 25, 29])
    loader = fake.loader(on_error="substitute", max_errors=3)
    for image, label in loader:
        check(image, loader.last.indices)
        assert label.tolist() == [i % 10 for i in loader.last.indices]
        assert not {1, 25, 29} & set(loader.last.indices.tolist())
    assert loader.stats().substituted == 3
    assert loader.stats().skipped == 0


def test_skipped_pictures_of_different_sizes(fake: Any) -> None:
    fake.set(broken=[3])
    loader = Loader(fake.data, batch_size=10, on_error="skip", max_errors=1)
    image, _ = next(iter(loader))
    assert [tuple(i.shape[1:]) for i in image] == [(4 + i % 5, 4 + i % 3) for i in range(10) if i != 3]


@pytest.mark.parametrize(("max_errors", "allowed"), [(2, 2), (0.02, 2), (0.001, 1), (0, 0), (0.0, 0)])
def test_too_many_broken_samples_end_the_run_and_are_named(fake: Any, max_errors: float, allowed: int) -> None:
    fake.set(broken=[5, 15, 25, 35])
    for _ in range(2):
        loader = fake.loader(on_error="skip", max_errors=max_errors)
        steps = 0
        with pytest.raises(feedwater.DataError) as caught:
            for _ in loader:
                steps += 1
        assert steps == allowed, "always at the same place"
        assert f"{allowed + 1} broken samples in epoch 0, and max_errors={max_errors} allows {allowed}" in str(
            caught.value
        )
        assert "class5/5.jpg" in str(caught.value)
        assert f"no picture in {allowed * 10 + 5}" in str(caught.value)
    fake.set(broken=[])


def test_the_budget_is_for_each_epoch(fake: Any) -> None:
    fake.set(broken=[5, 15])
    loader = fake.loader(on_error="skip", max_errors=2)
    for _ in range(3):
        assert len(ids(loader, loader)) == 98


class Endless:
    """A sampler that has no length."""

    def __iter__(self) -> Any:
        return iter(range(20))


@pytest.mark.parametrize(
    "chosen",
    [
        {"sampler": range(20)},
        {"sampler": Endless()},
        {"batch_sampler": [[*range(10)], [*range(10, 20)]], "batch_size": None},
        {"batch_sampler": torch.utils.data.BatchSampler(range(20), 10, False), "batch_size": None},
        {"steps_per_epoch": 2},
    ],
)
def test_a_share_of_errors_is_one_of_what_is_read(fake: Any, chosen: dict[str, Any]) -> None:
    fake.set(broken=[5, 15, 16])
    loader = fake.loader(on_error="skip", max_errors=0.1, **chosen)
    with pytest.raises(feedwater.DataError, match=r"3 broken samples in epoch 0, and max_errors=0.1 allows 2"):
        list(loader)


@pytest.mark.parametrize("options", [{}, {"tail": "valid", "fields": ("image", "valid")}])
def test_an_epoch_of_which_nothing_is_left_is_an_error(fake: Any, options: dict[str, Any]) -> None:
    fake.set(broken=[*range(100)])
    loader = fake.loader(on_error="skip", max_errors=100, **options)
    for _ in range(2):
        with pytest.raises(feedwater.DataError, match=r"leaves nothing of epoch 0: none of its 100 .*no picture in 99"):
            list(loader)


def test_an_epoch_may_end_with_nothing_left(fake: Any) -> None:
    fake.set(broken=[*range(50, 100)])
    loader = fake.loader(on_error="skip", max_errors=50)
    assert [ids(loader, loader) for _ in range(2)] == [[*range(50)]] * 2
    resumed = fake.loader(on_error="skip", max_errors=50)
    resumed.load_state_dict({"version": 1, "epoch": 0, "consumed": 50})
    assert list(resumed) == []
    assert ids(resumed, resumed) == [*range(50)]


# -- looking -----------------------------------------------------------------------------------------------------------


def test_replay_shows_the_sample_as_the_batch_had_it(fake: Any) -> None:
    loader = fake.loader(
        shuffle=True, transform=[transforms.CenterCrop(SIZE), transforms.ToImage(), transforms.ToDtype("float32")]
    )
    it = iter(loader)
    next(it)
    image, _ = next(it)
    index = int(loader.last.indices[3])
    sample = loader.replay(index)
    assert (sample.key, sample.index, sample.label) == (f"class{index % 10}/{index}.jpg", index, index % 10)
    assert sample.draws == [{"op": "CenterCrop", "applied": True, "epoch": 0}]
    assert sample.image.dtype == np.uint8
    assert np.array_equal(sample.image, image[3].permute(1, 2, 0))
    assert np.array_equal(loader.replay(index, epoch=4).image, picture(index, 4))
    batch = loader.replay_batch(loader.last.position, 0)
    assert [s.index for s in batch] == loader.last.indices.tolist()
    assert np.array_equal(np.stack([s.image for s in batch]), image.permute(0, 2, 3, 1))
    assert [s.index for s in loader.replay_batch(50, 3)] == order(3)[50:60]


def test_large_batches_are_replayed_in_parts_that_nodes_take(fake: Any) -> None:
    fake.set(samples=3000)
    loader = fake.loader(shuffle=True, batch_size=2500, transform=transforms.CenterCrop(1), fields=("key", "index"))
    keys, index = next(iter(loader))
    assert keys == loader.last.keys == [f"class{i % 10}/{i}.jpg" for i in index.tolist()]
    small = fake.loader(shuffle=True, batch_size=20)
    listed = fake.loader(sampler=range(40, 70), batch_size=20)
    for one in (small, listed):
        image, _ = next(iter(one))
        batch = one.replay_batch(one.last.position)
        assert [s.index for s in batch] == one.last.indices.tolist()
        assert np.array_equal(np.stack([s.image for s in batch]), image.permute(0, 2, 3, 1))
    assert [s.index for s in small.replay_batch(50, 3)] == order(3, samples=3000)[50:70]
    for line in fake.log("call"):
        if line["call"] == "replay":
            params = line["params"]
            count = len(params["indices"]) if "indices" in params else params["count"]
            assert count <= (8 if params["pixels"] else 2048)


def test_replay_knows_the_repeat(fake: Any) -> None:
    loader = fake.loader(steps_per_epoch=20)
    for image, _ in loader:
        index = int(loader.last.indices[2])
        assert np.array_equal(loader.replay(index).image, image[2].permute(1, 2, 0))
    assert loader.last.position == 190
    assert loader.replay(192 % 100).repeat == 1
    assert loader.replay(5).repeat == 0, "not in the last batch"
    loader = fake.loader(sampler=[7, 8, 7, 9, 7, 7], batch_size=3)
    for image, _ in loader:
        batch = loader.replay_batch(loader.last.position)
        assert np.array_equal(np.stack([s.image for s in batch]), image.permute(0, 2, 3, 1))
    with pytest.raises(feedwater.Error, match="only the last batch"):
        loader.replay_batch(0, 5)


def test_replay_batch_of_a_short_last_batch_has_its_samples(fake: Any) -> None:
    epoch = order(3)
    assert [s.index for s in fake.loader(shuffle=True, batch_size=8).replay_batch(96, epoch=3)] == epoch[96:]
    for rank, places in enumerate([(96, 97), (98, 99), (100, 101)]):  # 100 = 4 x 24 + 4, and two come again
        options = {"shuffle": True, "batch_size": 8, "rank": rank, "num_replicas": 3}
        loader = fake.loader(**options)
        expected = [(epoch[place % 100], place // 100) for place in places]
        assert [(s.index, s.repeat) for s in loader.replay_batch(places[0], epoch=3)] == expected
        loader.set_epoch(3)
        ids(loader, loader)
        assert [(s.index, s.repeat) for s in loader.replay_batch(loader.last.position)] == expected
        valid = fake.loader(tail="valid", fields=("image", "valid"), **options)
        if rank == 0:
            assert [s.index for s in valid.replay_batch(96, epoch=3)] == epoch[96:], "no padding"
        else:
            ids(valid, valid)
            assert valid.replay_batch(valid.last.position) == [], "nothing but padding"
    for loader, position in ((fake.loader(batch_size=8, tail="drop"), 96), (fake.loader(rank=1, num_replicas=2), 3)):
        with pytest.raises(IndexError, match=rf"position={position}: no batch of rank . is known to begin there"):
            loader.replay_batch(position)


def test_replay_behind_rows_that_were_left_out(fake: Any) -> None:
    fake.set(broken=[5])
    loader = fake.loader(sampler=list(range(100)), on_error="skip", max_errors=1)
    image, _ = next(iter(loader))
    pictures = image.permute(0, 2, 3, 1)
    assert loader.last.place(6) == 7
    assert np.array_equal(np.stack([s.image for s in loader.replay_batch(0)]), pictures)
    assert np.array_equal(loader.replay(7).image, pictures[6])


def test_replay_works_before_anything_and_without_a_transform(fake: Any) -> None:
    loader = Loader(fake.data, batch_size=1)
    sample = loader.replay(7)
    assert np.array_equal(sample.image, picture(7, size=(4 + 7 % 5, 4 + 7 % 3)))
    assert sample.encoded_bytes == 107


def test_last_and_its_keys(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    assert loader.last is None
    for place, _ in enumerate(loader):
        last = loader.last
        assert (last.epoch, last.position) == (0, place * 10)
    assert last.keys == [f"class{i % 10}/{i}.jpg" for i in order()[90:]]


def test_stats(fake: Any) -> None:
    loader = fake.loader(batch_size=16)
    assert loader.stats().batches == 0
    list(loader)
    stats = loader.stats()
    assert (stats.batches, stats.samples, stats.received_bytes) == (7, 100, 100 * SIZE * SIZE * 3)
    assert (stats.window, stats.slots, stats.copied_batches, stats.agent_restarts) == (4, 64, 0, 0)
    assert 0 < stats.last_wait_s <= stats.wait_s <= stats.step_s
    assert 0 < stats.wait_share <= 1


def test_explain(fake: Any) -> None:
    steps = [v2.CenterCrop(SIZE), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    text = fake.loader(transform=steps, dtype="bfloat16", batch_transform=lambda b, r: b).explain()
    lines = text.splitlines()
    assert lines[0].split() == ["op", "place", "dialect", "tier", "arguments"]
    assert lines[1].split()[:4] == ["CenterCrop", "node", "pil", "A"]
    assert [line.split()[0] for line in lines[2:5]] == ["ToImage", "ToDtype", "dtype"]
    assert "last hop" in lines[3]
    assert "100 samples, 10 classes" in text
    assert "bfloat16, channels first, torch tensors" in text
    assert "batch_transform" in text


def test_what_indexes_pictures_had(fake: Any) -> None:
    fake.set(index=(1, 2, 7, 3, 500, 4, 8))
    loader = fake.loader()
    assert loader.stats().index == IndexUse() and "index  " not in loader.explain(), "before the first batch"
    batches = len(list(loader))
    assert loader.stats().index == IndexUse(*(batches * n for n in (1, 2, 7, 3, 500, 4, 8)))
    [line] = [n for n, line in enumerate(loader.explain().splitlines()) if line.startswith("index  ")]
    told = " ".join(loader.explain().splitlines()[line : line + 3])
    assert "of 100 pictures decoded so far 10 % had an index, 20 % a copy, 70 % none" in told
    assert "70 % none of late 40 had their copy made on the way, which is slow once of late 30 % could" in " ".join(
        told.split()
    )
    assert "30 % could have had a copy" in told and "FEEDWATER_INDEX_COPIES" in told
    assert "\nkept      80 pictures so far were not decoded" in loader.explain()


def test_pictures_that_are_kept_are_told(fake: Any) -> None:
    """Where they are all that there is to tell, too."""
    fake.set(index=(10,), later_index=(0, 0, 0, 0, 0, 0, 10))
    with fake.loader() as loader:
        list(loader)
        assert "kept   " not in loader.explain()
        list(loader)
        use = loader.stats().index
        assert (use.decoded, use.kept) == (100, 100) and "kept      100 pictures" in loader.explain()
    fake.set(index=(0, 0, 0, 0, 0, 0, 10))
    with fake.loader() as without_index:
        next(iter(without_index))
        assert "kept      10 pictures" in without_index.explain() and "index  " not in without_index.explain()


def test_what_copies_pictures_lack_is_told_of_late_passes(fake: Any) -> None:
    """Once they are made nothing is said: of the pass that runs, and while that is short of the one before."""
    fake.set(index=(0, 0, 4, 4, 400), later_index=(0, 4))
    loader = fake.loader(batch_size=4)

    def lacking() -> tuple[int, int]:
        use = loader._pictures["use"]
        return use.missing_copies, use.decoded

    assert lacking() == (0, 0)
    list(loader)
    assert lacking() == (100, 100) and "of late 100 % could have had a copy" in loader.explain()
    batches = iter(loader)
    assert [lacking() for _ in zip(range(19), batches)][::18] == [(100, 104), (100, 176)]
    next(batches)
    assert lacking() == (0, 80) and "could have" not in loader.explain(), "20 batches tell"
    list(batches), iter(loader), next(iter(loader))
    assert lacking() == (0, 104)
    assert loader.stats().index.missing_copies == 100, "of all batches"


def test_nothing_is_said_of_copies_that_next_to_nothing_lacks(fake: Any) -> None:
    for missing in (0, 2):
        fake.set(index=(10, 0, 0, missing, 2000))
        with fake.loader() as loader:
            next(iter(loader))
            assert "100 % had an index" in loader.explain() and "could have had" not in loader.explain()


def test_classes_and_sizes(fake: Any) -> None:
    loader = fake.loader()
    assert loader.classes == [f"class{i}" for i in range(10)]
    assert loader.class_to_idx["class3"] == 3
    assert len(loader.dataset) == 100
    assert repr(loader) == f"Loader({str(fake.data)!r}, batch_size=10, seed=0)"


def test_notices_go_to_the_log(fake: Any, caplog: pytest.LogCaptureFixture) -> None:
    fake.set(faults=[{"at": "make", "nth": 2, "do": "notice", "message": "node a left out: other numerics"}])
    loader = fake.loader()
    with caplog.at_level(logging.WARNING, "feedwater"):
        list(loader)
    assert [r.message for r in caplog.records] == ["node a left out: other numerics"]


def test_wants_tell_how_far_ahead_of_the_loop_they_are(fake: Any) -> None:
    list(fake.loader(steps_per_epoch=40))
    ahead = [line["ahead"] for line in fake.log("want")]
    assert ahead[:5] == [0, 1, 2, 3, 3], "the window is four"
    assert set(ahead[5:]) == {3}


@pytest.mark.parametrize("world", [1, 3])
def test_a_step_has_the_same_number_on_all_ranks(fake: Any, world: int) -> None:
    for rank in range(world):
        list(fake.loader(batch_size=16, rank=rank, num_replicas=world))
    starts = (0, 48, 96) if world > 1 else (0,) * 7

    def told(epoch: int) -> list[int]:
        return [line["step"] for line in fake.log("want") if line["want"][2] == epoch]

    fake.until(lambda: len(told(0)) >= len(starts) * world and told(1))
    assert sorted(told(0)) == sorted(starts * world)
    next_epoch = set(told(1))  # its first batches are wanted, too
    assert next_epoch <= {1 << 32 | start if world > 1 else 0 for start in starts}


# -- memory ------------------------------------------------------------------------------------------------------------


def test_batches_that_are_kept_go_to_ordinary_memory_with_one_warning(
    fake: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stride = 4096
    loader = fake.loader(memory=7 * stride, shuffle=True)
    with caplog.at_level(logging.WARNING, "feedwater"):
        kept = [(image[:, :, ::2], loader.last.epoch, loader.last.indices) for _ in range(3) for image, _ in loader]
    for image, epoch, indices in kept:
        for row, index in zip(image, indices):
            assert np.array_equal(row.permute(1, 2, 0), picture(int(index), epoch)[::2])
    assert loader.stats().slots == 7
    assert loader.stats().copied_batches == 30 - 3
    assert ["copied to ordinary memory" in r.message for r in caplog.records] == [True]
    before = loader.stats().copied_batches
    kept.clear()
    for image, _ in loader:
        check(image, loader.last.indices, 3)
    assert loader.stats().copied_batches == before, "given back, nothing is copied any more"


def test_batches_in_cycles_are_collected(fake: Any) -> None:
    class Cycle: ...

    loader = fake.loader(memory=7 * 4096)
    for _ in range(3):
        for image, _ in loader:
            cycle: Any = Cycle()
            cycle.me, cycle.image = cycle, image
    assert loader.stats().copied_batches < 30


def test_too_little_memory_is_said(fake: Any) -> None:
    with pytest.raises(
        ValueError, match=r"memory=8,192 holds 2 batches of 4,096 bytes; at least 4 .* pass memory=16,384"
    ):
        next(iter(fake.loader(memory=8192)))


def test_the_fewest_slots_are_enough(fake: Any) -> None:
    loader = fake.loader(memory=4 * 4096, shuffle=True)
    kept = []
    for image, _ in loader:
        kept.append(image)
        check(image, loader.last.indices)
    assert loader.stats().slots == 4


def test_a_batch_that_needs_a_bigger_slot_is_wanted_again(fake: Any) -> None:
    error = {"kind": "room", "message": "too small", "bytes": 1 << 20}
    fake.set(faults=[{"at": "make", "nth": 3, "do": "fail", "error": error}])
    loader = fake.loader(shuffle=True)
    whole_epoch(loader, 0)
    strides = [line["params"]["stride"] for line in fake.log("call") if line["call"] == "slots"]
    assert len(strides) == 2
    assert strides[1] >= 1.25 * (1 << 20)


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_several_loaders_share_one_agent(fake: Any) -> None:
    loaders = [fake.loader(shuffle=True), fake.loader(batch_size=7), fake.loader(shuffle=True, batch_size=33)]
    for _ in range(20):
        for loader in loaders:
            if next(it := iter(loader), None) is not None:
                check(next(it)[0], loader.last.indices, loader.last.epoch)
    assert len(fake.log("start")) == 1
    loaders[0].close()
    assert len(fake.log("end")) == 0
    next(iter(loaders[1]))
    loaders[1].close()
    loaders[2].close()
    assert fake.log("end")[0]["end"] == "control", "the last one ends the agent"


def test_batches_outlive_their_loader(fake: Any) -> None:
    with fake.loader() as loader:
        image, _ = next(iter(loader))
    del loader
    check(image, range(10))


def test_a_closed_loader_says_so(fake: Any) -> None:
    loader = fake.loader()
    it = iter(loader)
    next(it)
    loader.close()
    loader.close()
    for one in (it, iter(loader)):
        with pytest.raises(feedwater.Error, match="closed"):
            next(one)
    assert loader.state_dict()["consumed"] == 10


def test_a_loader_that_is_dropped_gives_up_its_socket(fake: Any) -> None:
    loader = fake.loader()
    image, _ = next(iter(loader))
    del loader
    other = fake.loader()
    next(iter(other))
    assert len(fake.log("closed")) == 1
    check(image, range(10))


def test_pickling_keeps_config_and_state(fake: Any) -> None:
    loader = fake.loader(shuffle=True)
    for _ in zip(range(3), loader):
        pass
    twin = pickle.loads(pickle.dumps(loader))
    assert twin.state_dict() == loader.state_dict()
    assert ids(twin, twin) == order(0)[30:]
    again = copy.deepcopy(fake.loader(shuffle=True))
    whole_epoch(again, 0)


def spawned(loader: Any, queue: Any) -> None:
    queue.put(ids(loader, loader))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.usefixtures("fork_server")
def test_a_loader_travels_to_another_process(fake: Any, method: str) -> None:
    loader = fake.loader(shuffle=True)
    for _ in zip(range(3), loader):
        pass
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=spawned, args=(loader, queue))
    child.start()
    assert queue.get(timeout=60) == order(0)[30:]
    child.join()
    assert child.exitcode == 0


def test_a_stock_dataloader_around_it(fake: Any) -> None:
    from torch.utils.data import DataLoader

    loader = fake.loader(shuffle=True)
    dataset = feedwater.RemoteDataset(loader)
    stock = DataLoader(dataset, batch_size=None)
    assert len(stock) == 10
    for epoch in range(2):
        seen = []
        for image, label in stock:
            check(image, loader.last.indices, epoch)
            assert label.tolist() == [i % 10 for i in loader.last.indices]
            seen += loader.last.indices.tolist()
        assert seen == order(epoch)
    dataset.set_epoch(7)
    next(iter(stock))
    state = dataset.state_dict()
    assert (state["epoch"], state["consumed"]) == (7, 10)
    dataset.load_state_dict(state)


def test_a_stock_dataloader_with_workers_is_told(fake: Any) -> None:
    from torch.utils.data import DataLoader

    stock = DataLoader(feedwater.RemoteDataset(fake.loader()), batch_size=None, num_workers=1)
    with pytest.raises(feedwater.Error, match="needs num_workers=0"):
        next(iter(stock))


def test_a_second_thread_is_told(fake: Any, tmp_path: Any) -> None:
    import os

    gate = tmp_path / "gate"
    os.mkfifo(gate)
    fake.set(gate=str(gate))
    loader = fake.loader()
    failed: list[BaseException] = []
    batches: list[Any] = []
    opened = os.open(gate, os.O_RDWR)
    thread = threading.Thread(target=lambda: batches.append(next(iter(loader))), daemon=True)
    thread.start()
    while not fake.log("want"):
        thread.join(0.005)
    try:
        next(iter(loader))
    except feedwater.Error as error:
        failed.append(error)
    os.write(opened, b"x" * 10)
    thread.join(30)
    assert "another thread" in str(failed[0])
    check(batches[0][0], range(10))
    next(iter(loader))  # one after the other is fine
    os.close(opened)


def test_close_wakes_a_thread_that_waits(fake: Any, tmp_path: Any) -> None:
    import os

    gate = tmp_path / "gate"
    os.mkfifo(gate)
    fake.set(gate=str(gate))
    loader = fake.loader()
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            next(iter(loader))
        except feedwater.Error as error:
            failed.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    while not fake.log("want"):
        thread.join(0.005)
    loader.close()
    thread.join(30)
    assert "closed" in str(failed[0])


def test_profilers_see_the_wait_as_data_loading(fake: Any) -> None:
    from torch.profiler import ProfilerActivity, profile

    loader = fake.loader()
    with profile(activities=[ProfilerActivity.CPU]) as taken:
        list(loader)
    names = [event.key for event in taken.key_averages()]
    assert any(name.startswith("enumerate(DataLoader)#") and name.endswith(".__next__") for name in names)
