"""RandomErasing: rectangles from nodes, filled at the last hop, in every type, layout and place in the transforms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from feedwater import Loader, UnsupportedTransformError
from feedwater import transforms as own
from feedwater._plan.compiler import compile_transform

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FLOAT, NORMALIZE = v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)
CROP = v2.RandomResizedCrop(60)

# The steps of a transform behind the crop; the erasing one is applied as it was drawn.
TAILS: dict[str, list[Any]] = {
    "last": [v2.ToImage(), FLOAT, NORMALIZE, v2.RandomErasing()],
    "before Normalize": [v2.ToImage(), FLOAT, v2.RandomErasing(0.8, value=[1.0, 0.5, 0.0]), NORMALIZE],
    "on bytes": [v2.ToImage(), v2.RandomErasing(0.9, (0.5, 1.0), (0.5, 2.0), 9), FLOAT, NORMALIZE],
    "bytes": [v2.ToImage(), v2.RandomErasing(value=[1, 2, 255])],
    "twice": [v2.ToImage(), FLOAT, v2.RandomErasing(value=1), NORMALIZE, v2.RandomErasing(value=0.25)],
    "half": [v2.ToImage(), v2.ToDtype(torch.float16, scale=True), NORMALIZE, v2.RandomErasing(value=0.1)],
}


def theirs(steps: list[Any], sample: Any) -> Any:
    """What torchvision makes of a sample, with its draws."""
    draws = [draw for draw in sample.draws if draw["op"] == "RandomErasing"]
    image = torch.from_numpy(sample.image).permute(2, 0, 1)
    for step in steps[1:]:
        if not isinstance(step, v2.RandomErasing):
            image = step(image)
            continue
        draw = draws.pop(0)
        if draw["applied"] and draw["v"] is not None:
            value = torch.tensor(draw["v"])[:, None, None]
            image = v2.functional.erase(image, draw["i"], draw["j"], draw["h"], draw["w"], value)
    assert not draws
    return image


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("name", TAILS)
def test_erased_batches_are_torchvisions(photos: Path, name: str, layout: Any) -> None:
    steps = TAILS[name]
    with Loader(photos, [CROP, *steps], batch_size=48, seed=3, shuffle=True, memory_format=layout) as loader:
        images, _ = next(iter(loader))
        samples = loader.replay_batch(loader.last.position)
    applied = 0
    for sample, image in zip(samples, images, strict=True):
        assert torch.equal(image, theirs(steps, sample))
        applied += any(draw["applied"] for draw in sample.draws if draw["op"] == "RandomErasing")
    assert applied > 10


@pytest.mark.usefixtures("real")
def test_pictures_of_different_sizes_are_erased(photos: Path) -> None:
    steps = [v2.ToImage(), FLOAT, v2.RandomErasing(1.0)]
    with Loader(photos, [v2.RandomResize(20, 40), *steps], batch_size=20, seed=3) as loader:
        images, _ = next(iter(loader))
        samples = loader.replay_batch(loader.last.position)
    for sample, image in zip(samples, images, strict=True):
        assert torch.equal(image, theirs(steps, sample))


@pytest.mark.usefixtures("real")
def test_nodes_give_the_same(nodes: Any, photos: Path) -> None:
    for behind in (v2.CenterCrop(48), v2.RandomResize(20, 40)):
        steps = [behind, *TAILS["last"]]
        here, there = (
            next(iter(Loader(source, steps, batch_size=20, seed=3, nodes=address)))[0]
            for source, address in ((photos, None), ("photos", nodes.start(photos)))
        )
        assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))


@pytest.mark.usefixtures("real")
def test_holes_stay_empty(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    PIL = pytest.importorskip("PIL.Image")
    for i in range(6):
        PIL.new("RGB", (60, 50), (200, 100, i)).save(tmp_path / "a" / f"{i}.png")
    (tmp_path / "a" / "3.png").write_bytes(b"no picture")
    steps = [v2.CenterCrop(40), v2.ToImage(), v2.RandomErasing(1.0, (0.9, 1.0), (1.0, 1.0), 9)]
    with Loader(tmp_path, steps, batch_size=6, on_error="skip", max_errors=1, fields=("image", "valid")) as loader:
        images, valid = next(iter(loader))
    for i, (image, whole) in enumerate(zip(images, valid, strict=True)):
        assert bool(whole) == (i != 3)
        assert bool((image == 9).any()) == (i != 3)


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_noise_is_normal_and_the_same_everywhere(nodes: Any, photos: Path, dtype: str) -> None:
    steps = [CROP, v2.ToImage(), FLOAT, NORMALIZE, v2.RandomErasing(1.0, (0.2, 0.5), value="random")]
    loader = Loader(photos, steps, batch_size=40, seed=3, dtype=dtype)
    images, _ = next(iter(loader))
    samples = loader.replay_batch(loader.last.position)
    numbers = []
    for sample, image in zip(samples, images, strict=True):
        (draw,) = (draw for draw in sample.draws if draw["op"] == "RandomErasing")
        clean = NORMALIZE(FLOAT(torch.from_numpy(sample.image).permute(2, 0, 1))).to(image.dtype)
        assert draw["v"] == "random"
        rectangle = slice(draw["i"], draw["i"] + draw["h"]), slice(draw["j"], draw["j"] + draw["w"])
        numbers.append(image[:, rectangle[0], rectangle[1]].flatten().double())
        image[:, rectangle[0], rectangle[1]] = clean[:, rectangle[0], rectangle[1]]
        assert torch.equal(image, clean)
    every = torch.cat(numbers)
    assert abs(every.mean()) < 4 / len(every) ** 0.5
    assert abs(every.var() - 1) < 4 * (2 / len(every)) ** 0.5
    again, _ = next(iter(Loader(photos, steps, batch_size=40, seed=3, dtype=dtype)))
    there, _ = next(iter(Loader("photos", steps, batch_size=40, seed=3, dtype=dtype, nodes=nodes.start(photos))))
    assert torch.equal(again, there)


def test_the_plan_has_the_op_last_and_the_last_hop_its_value() -> None:
    compiled = compile_transform([CROP, *TAILS["twice"]])
    assert [step["op"] for step in compiled.plan_ops()] == ["RandomResizedCrop", "RandomErasing", "RandomErasing"]
    assert compiled.plan_ops()[1] == {
        "op": "RandomErasing",
        "p": 0.5,
        "scale": [0.02, 0.33],
        "ratio": [0.3, 3.3],
        "value": [1.0],
    }
    first, second = (table.to_floats()[:, 0] for table in compiled.erasures)
    assert first.tolist() == NORMALIZE(torch.ones(3, 1, 1)).flatten().tolist()
    assert second.tolist() == [0.25] * 3


def test_both_spellings_are_one() -> None:
    mixed = [
        v2.ToImage(),
        own.ToDtype("float32", scale=True),
        own.RandomErasing(0.5, value=1),
        own.Normalize(MEAN, STD),
    ]
    assert compile_transform(mixed).erasures == compile_transform(TAILS["twice"]).erasures[:1]
    assert compile_transform(mixed).plan_ops() == compile_transform(TAILS["twice"]).plan_ops()[:1]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: [v2.RandomErasing()], "RandomErasing needs a tensor: put ToImage"),
        (lambda: [v2.ToImage(), v2.RandomErasing(), v2.RandomHorizontalFlip()], "put RandomErasing behind it"),
        (lambda: [v2.ToImage(), v2.RandomErasing(value="random")], "random.* put ToDtype before it"),
        (lambda: [v2.ToImage(), FLOAT, v2.RandomErasing(value="random"), NORMALIZE], "put RandomErasing last"),
        (lambda: [v2.ToImage(), v2.RandomErasing(value=0.5)], "whole numbers from 0 to 255"),
        (lambda: own.RandomErasing(2), "from 0 to 1"),
        (lambda: own.RandomErasing(scale=(0.5, 2)), "scale=.*up to 1"),
        (lambda: own.RandomErasing(ratio=(0, 1)), "ratio=.*above 0"),
        (lambda: own.RandomErasing(value=(1, 2)), "value=.*three"),
    ],
)
def test_what_is_not_there_is_refused(make: Any, why: str) -> None:
    with pytest.raises(UnsupportedTransformError, match=why):
        compile_transform(make())
