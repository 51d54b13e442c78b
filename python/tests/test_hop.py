"""The last hop on a GPU: equal to the agent's table, to the bit, in every type and layout."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedwater
from feedwater._device import hop, runtime
from feedwater._value_table import Pixels, Table

torch = pytest.importorskip("torch")

from fake_cuda import FakeCuda  # noqa: E402

BITS = {"float32": torch.int32, "float16": torch.int16, "bfloat16": torch.int16}


def table_of(dtype: str) -> Table:
    pixels = Pixels.all_values().to_dtype(dtype, scale=True)
    return pixels.normalize_by((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)).to_table()


def expected_of(raw: Any, table: Table, dtype: str) -> Any:
    """Elements as their bits, [N, H, W, C]."""
    words = np.frombuffer(table.data, "<u4" if dtype == "float32" else "<u2").reshape(3, 256)
    return np.stack([words[c][raw[..., c]] for c in range(3)], -1)


@pytest.mark.parametrize(("dtype", "layout"), list(itertools.product(BITS, ("chw", "hwc"))))
def test_every_value_of_every_channel(dtype: str, layout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop, "MOST_VALUES", 2 * 32 * 24 * 3)  # two pictures at once, and one is left
    raw = np.random.default_rng(0).permutation(np.arange(5 * 32 * 24 * 3) % 256).astype(np.uint8)
    raw = raw.reshape(5, 32, 24, 3)
    table = table_of(dtype)
    made = hop.Hop(FakeCuda(), torch, table, layout).finish_pictures(torch.from_numpy(raw))
    assert made.dtype == getattr(torch, dtype)
    assert made.shape == (5, 3, 32, 24)
    assert made.is_contiguous(memory_format=torch.channels_last if layout == "hwc" else torch.contiguous_format)
    bits = made.permute(0, 2, 3, 1).contiguous().view(BITS[dtype]).numpy()
    assert np.array_equal(bits.view(f"u{bits.itemsize}"), expected_of(raw, table, dtype))


def test_constants_outlive_the_stream_that_reads_them() -> None:
    """A stream other than that they were made on may read them when the Loader is gone."""
    gpu = FakeCuda()
    made = hop.Hop(gpu, torch, table_of("float32"), "chw", [table_of("float32")])
    raw = torch.zeros((2, 8, 6, 3), dtype=torch.uint8)
    kept = (made._table, made._first, *made._erasures)
    made.finish_pictures(raw)
    assert not any(gpu._block_of(constant).users for constant in kept)
    gpu.current = gpu.new_stream("other")
    made.finish_pictures(raw)
    assert all(gpu._block_of(constant).users == [gpu.current] for constant in kept)


def test_crops_of_each_sample() -> None:
    raw = torch.randint(0, 256, (2, 5, 8, 6, 3), dtype=torch.uint8)
    made = hop.Hop(FakeCuda(), torch, table_of("float32"), "chw").finish_pictures(raw)
    alone = hop.Hop(FakeCuda(), torch, table_of("float32"), "chw").finish_pictures(raw.view(10, 8, 6, 3))
    assert made.shape == (2, 5, 3, 8, 6)
    assert torch.equal(made.view(10, 3, 8, 6), alone)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    made = FakeCuda()
    monkeypatch.setattr("feedwater._config.check_built", lambda *_: None)
    monkeypatch.setattr(runtime, "find_runtime", lambda *_: made)
    return made


def ops_with_everything(value: Any) -> Any:
    from torchvision.transforms import v2

    first = [v2.RandomResizedCrop(24), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    behind = [v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))] if value != "random" else []
    erasing = [v2.RandomErasing(0.7, value=value), v2.RandomErasing(0.5, value=0.25 if behind else value)]
    return v2.Compose([*first, *erasing, *behind])


def batches(source: Path, transform: Any, **options: Any) -> list[Any]:
    with feedwater.Loader(source, transform, batch_size=16, shuffle=True, **options) as loader:
        return [[field.clone() for field in batch] for batch, _ in zip(loader, range(3))]


@pytest.mark.parametrize("value", [(0.1, 0.2, 0.3), "random"])
def test_the_agents_pictures_with_rectangles_erased(real: str, gpu: FakeCuda, photos: Path, value: Any) -> None:
    ops = ops_with_everything(value)
    for options in ({}, {"dtype": "float16", "memory_format": torch.channels_last}):
        ours, theirs = batches(photos, ops, device="cuda", **options), batches(photos, ops, **options)
        for one, other in zip(ours, theirs, strict=True):
            assert all(torch.equal(a, b) and a.stride() == b.stride() for a, b in zip(one, other, strict=True))
    pixels = 16 * 24 * 24 * 3
    assert max(gpu.copied) == pixels * (4 if value == "random" else 1), "noise is made by the agent"


def test_views_in_a_mix(real: str, gpu: FakeCuda, photos: Path) -> None:
    from torchvision.transforms import v2

    ops = feedwater.transforms.Views([ops_with_everything(0.5), v2.Compose([v2.CenterCrop(16), v2.ToImage()])])
    mix = v2.MixUp(num_classes=1000)
    for options in ({}, {"batch_transform": lambda batch, rng: (mix(batch[0][0], batch[1]), batch[0][1])}):
        made = [
            [torch.cat([v.float().flatten() for v in flatten(b)]) for b, _ in zip(loader, range(2))]
            for device in ("cuda", None)
            for loader in [feedwater.Loader(photos, ops, batch_size=8, device=device, **options)]
        ]
        assert all(torch.equal(a, b) for a, b in zip(*made, strict=True))


def flatten(batch: Any) -> Any:
    for one in batch:
        yield from flatten(one) if isinstance(one, (list, tuple)) else [one]
