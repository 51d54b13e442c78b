"""CTAugment: its draws, its ops, and that a run that learns goes on as if it had not stopped."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_photos

import feedwater
from feedwater import Error, transforms
from feedwater._ctaugment.policy import BINS, FIRST, OPS, Change, Policy

pytestmark = pytest.mark.usefixtures("real")

STEPS = 300


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """50 pictures."""
    return make_photos(tmp_path_factory.mktemp("feedback"), 50)


def begin(source: Any, **options: Any) -> feedwater.Loader[Any]:
    """A Loader that learns."""
    ops = [transforms.CenterCrop(24), options.pop("op", transforms.CTAugment(threshold=0.8, decay=0.9, lag=5))]
    given = {"batch_size": 4, "shuffle": True, "seed": 9, "fields": ("image", "index")} | options
    return feedwater.Loader(source, ops, **given)


def outcomes(indices: Any) -> Any:
    """What a model might make of samples: some are easier than others."""
    return np.array([zlib.crc32(bytes([int(index)])) / 2**32 for index in indices])


def train(loader: feedwater.Loader[Any], first: int, last: int) -> list[int]:
    """A loop from one step to another; a checksum of each batch."""
    sums: list[int] = []
    while first + len(sums) < last:
        for image, index in loader:
            sums.append(zlib.crc32(np.ascontiguousarray(image).tobytes()))
            loader.feedback(index, outcomes(index))
            if first + len(sums) == last:
                break
    return sums


def test_a_run_that_learns_goes_on_the_same_at_any_step_and_with_any_nodes(data: Path, nodes: Any) -> None:
    with begin(data) as whole:
        expected = train(whole, 0, STEPS)
        learnt = whole.state_dict()["policy"]
        rates = whole._engine.policies.learning.policy.rates_at(STEPS + 5)
    assert rates.min() < 0.6 < rates.max(), "it did learn"
    assert len(set(expected)) > STEPS * 0.9
    addresses = [nodes.start(data), nodes.start(data)]
    state: dict[str, Any] = {}
    sums: list[int] = []
    for stop, used in ((7, []), (111, addresses[:1]), (190, addresses), (STEPS, [])):
        source = "photos" if used else data
        with begin(source, **({"nodes": used} if used else {})) as part:
            part.load_state_dict(state)
            sums += train(part, len(sums), stop)
            state = part.state_dict()
    assert sums == expected
    assert state["policy"] == learnt


@pytest.mark.parametrize(("lag", "before", "told"), [(0, False, 0), (0, True, 1), (1, True, 0), (1, False, 0)])
def test_a_state_between_a_batch_and_its_feedback(
    data: Path, lag: int, before: bool, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    with begin(data) as whole:
        expected = train(whole, 0, 40)
        learnt = whole.state_dict()["policy"]
    states: dict[int, dict[str, Any]] = {}
    with begin(data) as loader:
        for step, (_, index) in enumerate(loader):
            assert before or not loader.feedback(index, outcomes(index))
            states[step + 1 - lag] = loader.state_dict(lag)
            assert not before or not loader.feedback(index, outcomes(index))
            if step == 8:
                break
    assert sum("without the feedback() of its last batch" in r.getMessage() for r in caplog.records) == told
    with begin(data) as resumed:
        resumed.load_state_dict(states[9 - lag])
        assert resumed.state_dict() == states[9 - lag]
        same = train(resumed, 9 - lag, 40) == expected[9 - lag :] and resumed.state_dict()["policy"] == learnt
    assert same is not bool(told)


def test_feedback_changes_what_comes_lag_steps_later_and_not_before(data: Path) -> None:
    op = transforms.CTAugment(threshold=0.9, decay=0.1, lag=5)
    with begin(data, op=op) as taught, begin(data, op=op) as plain:
        differ = []
        for (image, index), (other, _) in zip(taught, plain):
            differ.append(not np.array_equal(image, other))
            taught.feedback(index, np.zeros(len(index)))
    assert differ[:5] == [False] * 5
    assert any(differ[5:])


def test_replay_shows_what_is_drawn_and_what_is_learnt_of_it(data: Path) -> None:
    with begin(data) as loader:
        for number, (image, index) in enumerate(loader):
            probes = loader.probes()
            for row in range(len(index)):
                sample = loader.replay(int(index[row]))
                drawn = next(draw for draw in sample.draws if draw["op"] == "CTAugment")
                shown = np.moveaxis(np.asarray(image[row]), 0, -1) if image.shape[1] == 3 else image[row]
                assert np.array_equal(sample.image, shown)
                assert drawn["probe"] == probes[row]
                policy = loader._engine.policies.learning.policy
                change = policy.make_change(loader.last.epoch, index[row : row + 1], [0], [0.25])
                expected = np.ones(BINS)
                names = [name for name, _ in OPS]
                for op in drawn["ops"] if drawn["probe"] else []:
                    assert all(0 <= level < 1 for level in op["levels"])
                    for level, bin_ in enumerate(op["bins"]):
                        at = FIRST[names.index(op["name"]), level] + bin_
                        expected[at] = expected[at] * 0.9 + 0.1 * 0.25
                assert np.allclose(change.apply_to(np.ones(BINS)), expected, atol=1e-12)
            loader.feedback(index, outcomes(index))
            if number == 8:
                break


def test_batches_of_before_are_replayed_as_they_were_learnt_then(data: Path) -> None:
    with begin(data, op=transforms.CTAugment(threshold=0.9, decay=0.1, lag=1)) as loader:
        had: list[tuple[int, int, Any]] = []
        while len(had) < 20:
            for image, index in loader:
                shown = np.moveaxis(np.asarray(image), 1, -1) if image.shape[1] == 3 else image
                had.append((loader.last.epoch, loader.last.position, np.copy(shown)))
                loader.feedback(index, np.zeros(len(index)))
        for epoch, position, image in had:
            again = [sample.image for sample in loader.replay_batch(position, epoch)]
            assert np.array_equal(np.stack(again), image), (epoch, position)
        with pytest.raises(Error, match="which is known of the last 256 steps"):
            loader.replay_batch(0, 99)
        with pytest.raises(Error, match="take a sample of the last batch"):
            loader.replay(0, 0)
        policy = loader._engine.policies.learning.policy
        policy.note_change(10_000, Change())
        assert not policy.knows_step(0)
        with pytest.raises(Error, match="which is known of the last 256 steps"):
            loader.replay_batch(0, 0)


def test_levels_that_go_badly_are_drawn_no_more(data: Path) -> None:
    """The rule itself, by hand."""
    policy = Policy(transforms.CTAugment(probe=0, threshold=0.85, decay=0.5, lag=1), 9)
    change = Change()
    for bin_ in range(3, 17):
        change.add_outcome([FIRST[2, 0] + bin_], 0.0, 0.5)
    policy.note_change(0, change)
    weights = np.frombuffer(policy.weights_at(1).encoded, "<u2")
    brightness = weights[FIRST[2, 0] : FIRST[2, 0] + 17]
    assert brightness.tolist() == [65535] * 3 + [0] * 14  # (1 + 0.5) / 1.5 = 1; (0.5 + 0.5) / 1.5 < 0.85
    assert (np.delete(weights, range(FIRST[2, 0], FIRST[2, 0] + 17)) == 65535).all()
    again = Policy(policy.op, 9)
    again.load_state(policy.save_state(1), 1)
    assert again.weights_at(1) == policy.weights_at(1)
    with begin(data, op=transforms.CTAugment(depth=16, probe=0), batch_size=50) as loader:
        loader._engine.policies.learning.policy._rates = np.where(np.arange(BINS) % 17 == 4, 1.0, 0.1)
        policy = loader._engine.policies.learning.policy
        next(iter(loader))
        allowed = np.frombuffer(policy.weights_at(0).encoded, "<u2") > 0
        for sample in loader.replay_batch(0):
            for op in sample.draws[1]["ops"]:
                place = [name for name, _ in OPS].index(op["name"])
                for level, bin_ in enumerate(op["bins"]):
                    assert allowed[FIRST[place, level] + bin_]


def test_ops_are_pillows(data: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    seen: set[str] = set()
    with begin(data, op=transforms.CTAugment(depth=1, probe=1), batch_size=50) as loader:
        for epoch in range(6):
            for sample in _replayed(loader, epoch):
                (op,) = sample.draws[1]["ops"]
                before = _plain(data, sample.key)
                expected = _by_pillow(image_module, op["name"], op["levels"], before)
                if expected is not None:
                    assert np.array_equal(sample.image, expected), (op, sample.key)
                    seen.add(op["name"])
                elif op["name"] == "Cutout":
                    changed = np.argwhere((sample.image != before).any(axis=2))
                    grey = sample.image[tuple(changed.T)] if len(changed) else np.full(1, 127)
                    assert (grey == 127).all()
    assert len(seen) == 13, seen


def _replayed(loader: Any, epoch: int) -> Any:
    return loader.replay_batch(0, epoch)


def _plain(data: Path, key: str) -> Any:
    from PIL import Image

    with Image.open(data / key) as file:
        picture = file.convert("RGB")
    left, top = round((picture.width - 24) / 2.0), round((picture.height - 24) / 2.0)
    return np.asarray(picture.crop((left, top, left + 24, top + 24)))


def _by_pillow(image: Any, name: str, levels: list[float], before: Any) -> Any:
    """The ops in Pillow's words; None for those of which draws do not say all, and for warps, which others test."""
    from PIL import ImageEnhance, ImageFilter, ImageOps

    picture = image.fromarray(before)
    level = levels[0] if levels else 0.0
    mixed = {
        "AutoContrast": ImageOps.autocontrast, "Equalize": ImageOps.equalize, "Invert": ImageOps.invert,
        "Blur": lambda p: p.filter(ImageFilter.BLUR), "Smooth": lambda p: p.filter(ImageFilter.SMOOTH),
    }  # fmt: skip
    if name in mixed:
        return np.asarray(image.blend(picture, mixed[name](picture), level))
    if name in ("Brightness", "Color", "Contrast", "Sharpness"):
        return np.asarray(getattr(ImageEnhance, name)(picture).enhance(0.1 + 1.9 * level))
    if name == "Posterize":
        return np.asarray(ImageOps.posterize(picture, 1 + int(level * 7.999)))
    if name == "Solarize":
        return np.asarray(ImageOps.solarize(picture, int(level * 255.999)))
    if name == "Rescale":
        margin, size = 0.25 * level, picture.size
        box = [round(edge) for edge in (*(margin * s for s in size), *(s * (1 - margin) for s in size))]
        ways = ("LANCZOS", "BICUBIC", "BILINEAR", "BOX", "HAMMING", "NEAREST")
        return np.asarray(picture.crop(box).resize(size, image.Resampling[ways[int(levels[1] * 5.99)]]))
    return before if name == "Identity" else None


def test_outcomes_may_be_of_a_graph(data: Path) -> None:
    torch = pytest.importorskip("torch")
    with begin(data) as loader, begin(data) as other:
        _, index = next(iter(loader))
        next(iter(other))
        outcomes = torch.linspace(0, 1, len(index), dtype=torch.float64, requires_grad=True) * 1.0
        loader.feedback(torch.as_tensor(index), outcomes)
        other.feedback(index, outcomes.detach().numpy())
        assert loader.state_dict()["policy"] == other.state_dict()["policy"]


def test_what_cannot_be_learnt_from_is_refused(data: Path) -> None:
    plain = feedwater.Loader(data, transforms.CenterCrop(24), batch_size=4)
    with plain, pytest.raises(feedwater.Error, match=r"has not: feedwater\.transforms\.CTAugment"):
        plain.feedback([0], [1.0])
    with begin(data) as loader:
        with pytest.raises(feedwater.Error, match="there was none"):
            loader.feedback([0], [1.0])
        _, index = next(iter(loader))
        others = sorted(set(range(50)) - {int(i) for i in index})
        for indices, values, words in (
            (others[:1], [1.0], f"index {others[0]} is not in the last batch"),
            (index[:1], [1.5], "from 0 to 1"),
            (index[:1], [float("nan")], "from 0 to 1"),
        ):
            with pytest.raises(ValueError, match=words):
                loader.feedback(indices, values)
        with pytest.raises(TypeError, match="as many of both"):
            loader.feedback(index, [1.0])
        loader.peek()
        with pytest.raises(feedwater.Error, match=r"after peek\(\)"):
            loader.feedback(index[:1], [1.0])
    with pytest.raises(feedwater.NotYetError, match="with a sampler"):
        begin(data, shuffle=False, sampler=[1, 2, 3])
    with pytest.raises(feedwater.UnsupportedTransformError, match="lag=0"):
        transforms.CTAugment(lag=0)
