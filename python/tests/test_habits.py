"""What programs meet here that were written for PyTorch's DataLoader."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest
from conftest import SIZE, make_photos
from expect import check, picture

import feedwater
from feedwater import Loader, transforms

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("torchvision.datasets")
v2 = pytest.importorskip("torchvision.transforms.v2")
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler, Subset  # noqa: E402

# -- epochs that the program tells its sampler -------------------------------------------------------------------------


class Telling:
    """A loop that tells its DistributedSampler the epoch, as loops do that were written for a DataLoader."""

    def __init__(self, fake: Any, sampler: Any = None) -> None:
        self.sampler = sampler or DistributedSampler(range(100), 2, 1)
        self.loader = fake.loader(sampler=self.sampler, rank=1, num_replicas=2)

    def check(self, epoch: int, start: int = 0) -> None:
        """The next pass is that epoch of the sampler, its draws too."""
        told = DistributedSampler(range(100), 2, 1)
        told.set_epoch(epoch)
        seen = []
        for image, _ in self.loader:
            last = self.loader.last
            assert last.epoch == epoch
            check(image, last.indices, epoch, repeats=range(last.position, last.position + len(image)))
            seen += last.indices.tolist()
        assert seen == list(told)[start:]


def test_what_the_program_tells_its_sampler_is_told_to_the_loader(fake: Any) -> None:
    loop = Telling(fake)
    for epoch in (5, 6, 6, 2):
        loop.sampler.set_epoch(epoch)
        loop.check(epoch)
    loop.check(3)  # nobody said anything: the next one
    next(iter(loop.loader))
    assert loop.loader.last.epoch == 4
    loop.sampler.set_epoch(9)
    twin = pickle.loads(pickle.dumps(loop.loader))
    assert loop.loader.state_dict() == twin.state_dict()
    for loader in (loop.loader, twin):
        next(iter(loader))
        assert loader.last.epoch == 9
    loop.sampler.set_epoch(9)
    loop.check(9)
    loop.loader.set_epoch(1)
    loop.check(1)
    loop.loader.sampler.set_epoch(8)
    loop.check(8)


def test_an_epoch_told_again_after_a_pass_was_broken_off(fake: Any) -> None:
    loop = Telling(fake)
    next(iter(loop.loader))  # as people do to look at a batch
    for epoch in (0, 1):
        loop.sampler.set_epoch(epoch)
        loop.check(epoch)
    next(iter(loop.loader))
    assert loop.loader.last.epoch == 2
    for _ in range(2):
        loop.sampler.set_epoch(2)
        next(iter(loop.loader))
        assert loop.loader.last.epoch == 2
    next(iter(loop.loader))
    assert loop.loader.last.epoch == 3, "nobody said anything"


def test_a_sampler_with_a_state_is_told_plain_numbers(fake: Any) -> None:
    class Stateful(DistributedSampler[int]):
        def state_dict(self) -> dict[str, Any]:
            return {"epoch": self.epoch}

        def load_state_dict(self, state: dict[str, Any]) -> None: ...

    loop = Telling(fake, Stateful(range(100), 2, 1))
    for epoch in (5, 6, 6, 2):
        loop.sampler.set_epoch(epoch)
        loop.check(epoch)
        assert type(loop.sampler.state_dict()["epoch"]) is int


def test_a_sampler_told_before_the_loader_was_made(fake: Any) -> None:
    sampler = DistributedSampler(range(100), 2, 1)
    sampler.set_epoch(30)
    Telling(fake, sampler).check(30)


def test_a_resumed_cursor_agrees_with_the_told_sampler(fake: Any) -> None:
    loop = Telling(fake)
    loop.sampler.set_epoch(30)
    for _ in zip(range(2), loop.loader):
        pass
    state = loop.loader.state_dict()
    assert (state["epoch"], state["consumed"]) == (30, 40)
    for told_first in (False, True):
        resumed = Telling(fake)
        if told_first:
            resumed.sampler.set_epoch(30)
        resumed.loader.load_state_dict(state)
        if not told_first:
            resumed.sampler.set_epoch(30)
        resumed.check(30, start=20)
        resumed.sampler.set_epoch(31)
        resumed.check(31)
    silent = Telling(fake)
    silent.loader.load_state_dict(state)
    silent.check(30, start=20)
    twin = pickle.loads(pickle.dumps(loop.loader))
    assert twin.state_dict() == state
    next(iter(twin))
    assert (twin.last.epoch, twin.state_dict()["consumed"]) == (30, 60)
    loop.loader.load_state_dict(state)
    loop.sampler.set_epoch(7)
    loop.check(7)
    it = iter(loop.loader)
    next(it)
    loop.sampler.set_epoch(8)
    assert loop.loader.state_dict()["consumed"] == 20, "a pass is not ended by what comes after it"


class Counting:
    """A sampler that changes its epoch when it is iterated."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return 100

    def __iter__(self) -> Any:
        self.epoch += 5
        return iter(range(100))


class CountingLate(Counting):
    """It does so with the first draw."""

    def __iter__(self) -> Any:
        yield from super().__iter__()


@pytest.mark.parametrize("kind", [Counting, CountingLate])
def test_what_a_sampler_does_to_its_epoch_is_no_wish(fake: Any, kind: Any) -> None:
    loader = fake.loader(sampler=kind())
    for epoch in (0, 1, 2, 3):
        for _ in zip(range(10 if epoch % 2 else 3), loader):  # also where a pass is broken off
            assert loader.last.epoch == epoch


@pytest.mark.parametrize("kind", [np.int64, np.uint8, torch.tensor])
def test_an_epoch_may_be_told_as_a_number_of_numpy_or_torch(fake: Any, kind: Any) -> None:
    loop = Telling(fake)
    for epoch in (5, 6, 6, 2):
        loop.sampler.set_epoch(kind(epoch))
        loop.check(epoch)
    loop.check(3)


class Secretive:
    """A sampler that does not say which epoch it has."""

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __len__(self) -> int:
        return 100

    def __iter__(self) -> Any:
        return iter(range(100))


def test_a_sampler_that_does_not_say_its_epoch_is_told_once(fake: Any, caplog: pytest.LogCaptureFixture) -> None:
    for sampler, told in ((DistributedSampler(range(100), 1, 0), 0), (range(100), 0), (Secretive(), 1)):
        caplog.clear()
        loader = fake.loader(sampler=sampler)
        for _ in range(2):
            next(iter(loader))
        said = [message for message in caplog.messages if "has set_epoch" in message]
        assert len(said) == told
        assert all("Secretive" in message and "Call loader.set_epoch(epoch)" in message for message in said)


def test_the_last_to_say_something_is_heard(fake: Any) -> None:
    loop = Telling(fake)
    loop.sampler.set_epoch(7)
    loop.loader.set_epoch(3)
    loop.check(3)
    loop.loader.set_epoch(30)
    for _ in zip(range(2), loop.loader):
        pass
    state = loop.loader.state_dict()
    loop.sampler.set_epoch(7)
    loop.loader.load_state_dict(state)
    loop.check(30, start=20)


@pytest.mark.parametrize("whom", ["loader", "sampler"])
def test_what_is_told_amid_a_pass_is_heard_after_it(fake: Any, whom: str) -> None:
    loop = Telling(fake)
    for step, _ in enumerate(loop.loader):
        if step == 1:
            getattr(loop, whom).set_epoch(7)
    assert loop.sampler.epoch == 7
    loop.check(7)
    loop.check(8)


# -- what frameworks look for ------------------------------------------------------------------------------------------


def test_the_data_set_is_the_one_that_was_passed(fake: Any, folder: Any) -> None:
    subset = Subset(folder, range(50))
    loader = Loader(subset, transforms.CenterCrop(SIZE), batch_size=10)
    assert loader.dataset is subset
    assert len(loader.sampler) == len(DataLoader(subset, 10).sampler) == 50
    twin = pickle.loads(pickle.dumps(loader))
    assert len(twin.dataset) == 50, "a copy has the length only"
    assert Loader(folder, batch_size=1).dataset is folder
    assert len(fake.loader().dataset) == 100


@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"tail": "valid", "fields": ("image", "valid")}])
@pytest.mark.parametrize("world", [1, 3])
def test_the_sampler_has_this_ranks_samples_as_its_length(fake: Any, world: int, options: dict[str, Any]) -> None:
    for rank in range(world):
        loader = fake.loader(batch_size=16, rank=rank, num_replicas=world, **options)
        drawn = sum(int((loader.last.indices >= 0).sum()) for _ in loader)
        assert len(loader.sampler) == drawn
    assert len(fake.loader(batch_size=7, steps_per_epoch=30).sampler) == 210


def test_the_sampler_is_the_one_that_was_passed(fake: Any) -> None:
    sampler = RandomSampler(range(100))
    assert fake.loader(sampler=sampler).sampler is sampler
    lists = BatchSampler(sampler, 10, drop_last=False)
    loader = fake.loader(batch_sampler=lists, batch_size=None)
    assert (loader.sampler, loader.batch_sampler) == (sampler, lists)
    with pytest.raises(TypeError, match="batch_sampler decides"):
        len(fake.loader(batch_sampler=[[1]], batch_size=None).sampler)


def test_a_dataloader_around_a_loader_is_shown_the_way(fake: Any) -> None:
    with pytest.raises(TypeError, match=r"RemoteDataset\(loader\), batch_size=None"):
        next(iter(DataLoader(fake.loader())))
    with pytest.raises(TypeError, match="only in order"):
        fake.loader()[0]


@pytest.mark.parametrize("size", [1, 4])
def test_a_dataloader_that_would_stack_batches_is_told(fake: Any, size: int) -> None:
    dataset = feedwater.RemoteDataset(fake.loader())
    with pytest.raises(feedwater.Error, match=r"needs batch_size=None: .* would stack"):
        next(iter(DataLoader(dataset, batch_size=size)))
    joined = DataLoader(dataset, batch_size=4, collate_fn=lambda some: torch.cat([image for image, _ in some]))
    assert len(next(iter(joined))) == 40, "who says how they are joined means it"
    assert len(next(iter(dataset))[0]) == 10


def test_accelerate_would_split_a_ranks_share_once_more(fake: Any) -> None:
    """It does so inside its DataLoader's __iter__, in this module."""
    accelerate: dict[str, Any] = {"__name__": "accelerate.data_loader"}
    exec("def prepared(data):\n    yield from data", accelerate)
    dataset = feedwater.RemoteDataset(fake.loader(rank=1, num_replicas=2))
    with pytest.raises(feedwater.Error, match=r"pass the Loader itself to prepare\(\)"):
        next(accelerate["prepared"](DataLoader(dataset, batch_size=None)))
    alone = feedwater.RemoteDataset(fake.loader())
    assert len(next(accelerate["prepared"](DataLoader(alone, batch_size=None)))[0]) == 10


def test_the_data_set_of_a_path_knows_its_classes(fake: Any) -> None:
    loader = fake.loader()
    assert loader.dataset.classes == loader.classes
    assert loader.dataset.class_to_idx == loader.class_to_idx
    assert "Loader(" in repr(loader.dataset)
    with pytest.raises(AttributeError, match=r"no 'targets' here.*loader\.replay"):
        loader.dataset.targets  # noqa: B018


def test_another_batch_size_goes_by_the_state(fake: Any) -> None:
    with pytest.raises(AttributeError, match=r"Loader\(…, batch_size=8\); new\.load_state_dict"):
        fake.loader().batch_size = 8


def test_repr_shows_what_is_not_the_default(fake: Any, folder: Any) -> None:
    name = repr(str(fake.data))
    for options, shown in (
        ({"seed": 3}, f"Loader({name}, batch_size=10, seed=3)"),
        ({"shuffle": True, "drop_last": True}, f"Loader({name}, batch_size=10, seed=0, shuffle=True, tail='drop')"),
        (
            {"sampler": RandomSampler(range(100)), "on_error": "skip"},
            f"Loader({name}, batch_size=10, seed=0, sampler=RandomSampler(…), on_error='skip')",
        ),
        ({"nodes": "a:1,b:2"}, f"Loader({name}, batch_size=10, seed=0, nodes='a:1,b:2')"),
    ):
        assert repr(fake.loader(**options)) == shown
    assert "(a Subset of 50)" in repr(Loader(Subset(folder, range(50)), batch_size=1))


def test_a_shortened_image_folder_is_shown_the_subset(folder: Any) -> None:
    folder.samples = folder.samples[:50]
    with pytest.raises(feedwater.DataError, match=r"100 samples, but the ImageFolder has 50\. .*Subset"):
        next(iter(Loader(folder, transforms.CenterCrop(SIZE), batch_size=1)))


def test_numbers_of_numpy_are_numbers(fake: Any) -> None:
    loader = fake.loader(seed=np.int64(3), batch_size=np.int32(10), steps_per_epoch=np.uint8(2))
    assert len(list(loader)) == 2
    assert repr(loader).endswith("batch_size=10, seed=3)")
    for name, value in (("seed", 1.0), ("seed", True), ("batch_size", 2.5), ("steps_per_epoch", True)):
        with pytest.raises((TypeError, ValueError), match=f"{name}={value!r}: needs a whole number"):
            fake.loader(**{name: value})


def test_items_of_a_data_set_by_path_are_refused_with_the_way(fake: Any) -> None:
    with pytest.raises(TypeError, match=r"loader\.replay\(0\)"):
        fake.loader().dataset[0]


# -- batch_transform ---------------------------------------------------------------------------------------------------


FLOATS = [transforms.CenterCrop(SIZE), transforms.ToImage(), transforms.ToDtype("float32", scale=True)]
MIXES = [
    v2.MixUp(num_classes=10),
    v2.CutMix(num_classes=10),
    v2.RandomChoice([v2.MixUp(num_classes=10), v2.CutMix(num_classes=10)]),
    lambda batch, rng: v2.MixUp(num_classes=10)(*batch),
]


@pytest.mark.parametrize("mix", MIXES)
def test_mixup_of_torchvision_comes_out_the_same_again(fake: Any, mix: Any) -> None:
    runs = []
    for number in range(2):
        torch.manual_seed(number)
        runs.append(list(fake.loader(transform=FLOATS, batch_transform=mix, seed=5)))
    for (images, labels), (again, labels_again) in zip(*runs, strict=True):
        assert labels.shape == (10, 10)
        assert torch.equal(images, again) and torch.equal(labels, labels_again)
    assert not torch.equal(runs[0][0][1], runs[0][1][1]), "each batch has numbers of its own"
    other = next(iter(fake.loader(transform=FLOATS, batch_transform=mix, seed=6)))
    assert not torch.equal(runs[0][0][1], other[1])


@pytest.mark.parametrize("fields", [("image", "label"), {"image": "images", "label": "labels"}])
def test_mixup_of_integers_is_told_what_to_do(fake: Any, fields: Any) -> None:
    loader = fake.loader(batch_transform=v2.MixUp(num_classes=10), fields=fields)
    with pytest.raises(TypeError, match=r"MixUp cannot work on images of torch\.uint8 .*put ToDtype\(torch"):
        next(iter(loader))


def test_mixup_takes_a_dict_too(fake: Any) -> None:
    fields = {"image": "images", "label": "labels"}
    batch = next(iter(fake.loader(transform=FLOATS, fields=fields, batch_transform=v2.MixUp(num_classes=10))))
    assert batch["labels"].shape == (10, 10)


def test_batch_transform_leaves_the_programs_random_numbers_alone(fake: Any) -> None:
    def draw(batch: Any, rng: np.random.Generator) -> list[float]:
        return [random.random(), float(np.random.rand()), float(torch.rand(())), float(rng.random())]

    def states() -> list[Any]:
        return [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]

    before = states()
    first, again = (list(fake.loader(batch_transform=draw, seed=5)) for _ in range(2))
    assert first == again
    assert len({number for numbers in first for number in numbers}) == 40
    assert states() == before

    def fail(batch: Any, rng: np.random.Generator) -> Any:
        torch.rand(())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        next(iter(fake.loader(batch_transform=fail)))
    assert states() == before


def test_the_time_of_batch_transform_is_no_wait(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import feedwater._engine
    import feedwater._meter.pace

    clock = [0.0]
    monkeypatch.setattr(feedwater._meter.pace, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(feedwater._engine.engine.time, "perf_counter", lambda: clock[0])

    def slow(batch: Any, rng: np.random.Generator) -> Any:
        clock[0] += 3.0
        return batch

    loader = fake.loader(batch_transform=slow, steps_per_epoch=40)
    loader.peek()
    for _ in loader:
        clock[0] += 0.5
    stats = loader.stats()
    assert stats.transform_s == 40 * 3.0
    assert stats.wait_s == stats.last_wait_s == 0
    assert stats.step_s == 39 * 3.5


def test_an_exhausted_iterator_of_batch_transform_does_not_end_the_epoch(fake: Any) -> None:
    numbers = iter(range(3))
    loader = fake.loader(batch_transform=lambda batch, rng: (*batch, next(numbers)))
    it = iter(loader)
    assert [next(it)[2] for _ in range(3)] == [0, 1, 2]
    for attempt in (lambda: next(it), loader.peek, lambda: next(it)):
        with pytest.raises(RuntimeError, match=r"batch_transform raised StopIteration.*itertools\.cycle"):
            attempt()
        assert loader.state_dict()["consumed"] == 30, "it stands before the batch"
    numbers = iter(range(7))
    assert [batch[2] for batch in it] == list(range(7))


class Spent:
    """A sampler that reads its first index from an iterator, which is exhausted after an epoch."""

    def __init__(self) -> None:
        self.firsts = iter([0])

    def __len__(self) -> int:
        return 100

    def __iter__(self) -> Any:
        first = next(self.firsts)
        return iter(range(first, 100))


def test_an_exhausted_iterator_of_a_sampler_does_not_end_the_epoch(fake: Any) -> None:
    loader = fake.loader(sampler=Spent())
    assert len(list(loader)) == 10
    for attempt in (list, lambda loader: loader.peek(), list):
        with pytest.raises(RuntimeError, match=r"the sampler Spent raised StopIteration.*itertools\.cycle"):
            attempt(loader)
    assert (loader.state_dict()["epoch"], loader.state_dict()["consumed"]) == (1, 0)


# -- a batch of which nothing is left ----------------------------------------------------------------------------------


def test_no_batch_is_ever_empty(fake: Any) -> None:
    fake.set(broken=[*range(10), *range(30, 50), 60, *range(90, 100)])
    loader = fake.loader(on_error="skip", max_errors=100)
    for epoch in range(2):
        peeked = loader.peek() if epoch else None
        seen = []
        for image, _ in loader:
            assert peeked is None or torch.equal(peeked[0], image)
            peeked = None
            check(image, loader.last.indices, epoch)
            seen.append(len(image))
        assert seen == [10, 10, 10, 9, 10, 10]
        assert loader.stats().skipped == 41 * (epoch + 1)
        assert loader.stats().batches == 6 * (epoch + 1)
        assert loader.state_dict()["epoch"] == epoch + 1


def test_a_run_resumes_behind_batches_that_were_left_out(fake: Any) -> None:
    fake.set(broken=list(range(10, 30)))
    loader = fake.loader(on_error="skip", max_errors=100)
    it = iter(loader)
    next(it)
    next(it)
    state = loader.state_dict(lag=1)
    for resumed in (fake.loader(on_error="skip", max_errors=100), loader):
        resumed.load_state_dict(state)
        assert next(iter(resumed))[1].tolist() == [i % 10 for i in range(30, 40)]
        assert resumed.last.position == 30


def test_several_ranks_must_make_the_same_steps(fake: Any) -> None:
    fake.set(broken=list(range(10, 20)))
    for rank, fails in ((0, False), (1, True)):
        loader = fake.loader(on_error="skip", max_errors=100, rank=rank, num_replicas=2)
        it = iter(loader)
        if not fails:
            assert len(next(it)[0]) == 10
            continue
        for attempt in (it, iter(loader)):
            with pytest.raises(feedwater.DataError, match=r'1/11\.jpg.* and 5 more decodes.*on_error="substitute"'):
                next(attempt)
        assert loader.state_dict()["consumed"] == 0


# -- arguments of methods ----------------------------------------------------------------------------------------------


def test_replay_checks_its_numbers_here(fake: Any) -> None:
    loader = fake.loader()
    next(iter(loader))
    asked = len(fake.log("call"))
    for arguments, error, why in (
        ((-1,), IndexError, "index=-1: it must be one of 0 to 99"),
        ((5000,), IndexError, "index=5000: it must be one of 0 to 99"),
        (("a",), TypeError, "index='a' is no whole number"),
        ((1, -1), IndexError, "epoch=-1"),
        ((1, 0, -1), IndexError, "repeat=-1"),
    ):
        with pytest.raises(error, match=why):
            loader.replay(*arguments)
    for position in (-1, 100):
        with pytest.raises(IndexError, match=f"position={position}: it must be one of 0 to 99"):
            loader.replay_batch(position)
    assert len(fake.log("call")) == asked
    assert loader.replay(loader.last.indices[3]).index == 3
    longer = fake.loader(steps_per_epoch=20)
    assert [sample.repeat for sample in longer.replay_batch(190)] == [1] * 10
    with pytest.raises(IndexError, match="0 to 199"):
        longer.replay_batch(200)


def shown(loader: Any, epochs: int) -> dict[tuple[int, int], tuple[Any, int]]:
    """The pictures of epochs, and their places, by epoch and index."""
    seen = {}
    for _ in range(epochs):
        for image, _ in loader:
            last = loader.last
            for row, index in enumerate(last.indices.tolist()):
                seen[last.epoch, index] = image[row].permute(1, 2, 0).numpy().copy(), last.place(row)
    return seen


@pytest.mark.parametrize("shuffle", [False, True])
def test_replay_shows_a_subsets_samples_as_batches_had_them(fake: Any, folder: Any, shuffle: bool) -> None:
    loader = Loader(Subset(folder, range(20, 60)), transforms.CenterCrop(SIZE), batch_size=7, shuffle=shuffle)
    for (epoch, index), (image, place) in shown(loader, 3).items():
        sample = loader.replay(index, epoch)
        assert sample.repeat == place
        assert np.array_equal(sample.image, image)
    with pytest.raises(feedwater.Error, match=r"index=3 is not among the samples that epoch 0 .*pass repeat="):
        loader.replay(3, 0)
    assert np.array_equal(loader.replay(3, 0, repeat=9).image, picture(3, 0, 9))


@pytest.mark.parametrize("lists", [False, True])
def test_replay_shows_a_samplers_samples_as_batches_had_them_or_asks(fake: Any, lists: bool) -> None:
    sampler = RandomSampler(range(100))
    options = {"batch_size": None, "batch_sampler": BatchSampler(sampler, 7, False)} if lists else {"sampler": sampler}
    loader = fake.loader(**options)
    with pytest.raises(feedwater.Error, match="pass repeat="):
        loader.replay(3)
    for (epoch, index), (image, place) in shown(loader, 2).items():
        if epoch == 0:  # drawn, and forgotten
            with pytest.raises(feedwater.Error, match="that epoch 0 is known to have"):
                loader.replay(index, epoch)
        sample = loader.replay(index, epoch, place if epoch == 0 else None)
        assert np.array_equal(sample.image, image)


def test_replay_asks_where_a_sampler_splits_by_itself(fake: Any) -> None:
    loader = fake.loader(sampler=DistributedSampler(range(100), 2, 1), rank=1, num_replicas=2)
    seen = shown(loader, 1)
    held = loader.last.indices.tolist()
    for (epoch, index), (image, place) in seen.items():
        if index not in held:
            with pytest.raises(feedwater.Error, match="pass repeat="):
                loader.replay(index, epoch)
        assert np.array_equal(loader.replay(index, epoch, None if index in held else place).image, image)


def test_a_batch_that_no_machine_can_hold(fake: Any) -> None:
    need = rf"{(8 + 8 + SIZE * SIZE * 3) * 10**9 // 10**9},\d\d\d,\d\d\d,\d\d\d bytes"
    with pytest.raises(ValueError, match=rf"a batch of 1,000,000,000 samples takes {need}, .* smaller batch_size"):
        next(iter(fake.loader(batch_size=10**9)))


@pytest.mark.parametrize("state", [None, 3, "state.pt"])
def test_what_is_no_state_at_all(fake: Any, state: Any) -> None:
    with pytest.raises(TypeError, match=r"takes what state_dict\(\) gave, not"):
        fake.loader().load_state_dict(state)


def test_what_a_sampler_gives_must_be_indices(fake: Any) -> None:
    class Wrong:
        def __iter__(self) -> Any:
            return iter([1, 2, "a"])

        def __len__(self) -> int:
            return 3

    with pytest.raises(TypeError, match="Wrong gave 'a': needs indices"):
        next(iter(fake.loader(sampler=Wrong())))
    with pytest.raises(TypeError, match="Wrong gave 1: a batch_sampler gives lists"):
        next(iter(fake.loader(batch_sampler=Wrong(), batch_size=None)))


# -- pixels of the real agent ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Generated pictures."""
    return make_photos(tmp_path_factory.mktemp("pictures"), 30)


def test_a_preset_gives_the_pixels_of_the_preset(real: str, pictures: Any) -> None:
    from torchvision.models import ResNet50_Weights

    folder = datasets.ImageFolder(pictures, ResNet50_Weights.IMAGENET1K_V2.transforms())
    expected = DataLoader(folder, 8)
    for (ours, labels), (theirs, expected_labels) in zip(Loader(folder, batch_size=8), expected, strict=True):
        assert torch.equal(ours, theirs)
        assert torch.equal(labels, expected_labels)


def test_moves_behind_to_image_give_the_pixels_of_torchvision(real: str, pictures: Any) -> None:
    moves = [v2.CenterCrop((90, 300)), v2.RandomHorizontalFlip(1.0), v2.RandomVerticalFlip(1.0)]
    steps = v2.Compose([v2.ToImage(), *moves, v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.25])])
    folder = datasets.ImageFolder(pictures, steps)
    for (ours, _), (theirs, _) in zip(Loader(folder, batch_size=8), DataLoader(folder, 8), strict=True):
        assert torch.equal(ours, theirs)


def test_a_broken_file_of_this_machine_is_on_no_node(real: str, pictures: Any, tmp_path: Any) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "broken.jpg").write_bytes(next(pictures.rglob("*.jpg")).read_bytes()[:200])
    with pytest.raises(feedwater.SampleError) as caught:
        next(iter(Loader(tmp_path, transforms.CenterCrop(8), batch_size=1)))
    assert "node" not in str(caught.value).split("Pass on_error")[0]
    assert caught.value.node == ""
