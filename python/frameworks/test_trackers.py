"""The helpers of feedwater.callbacks with the real trackers, which keep all in a folder; read back from there."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import feedwater
from feedwater import callbacks

NAMES = {"data/wait_share", "data/samples_per_second", "data/errors"}
EVERY, STEPS = 3, 7
BLOCK, FULL, LAST = 32768, 1, 4
"""Of a log of LevelDB's: bytes of a block, kinds of a piece that ends a record."""


def train(pictures: Path, make: Callable[[Any], Any], after: Callable[[int], None] = lambda number: None) -> None:
    """An epoch with a helper that writes at steps 3 and 6."""
    with feedwater.Loader(pictures, feedwater.transforms.CenterCrop(16), batch_size=4, drop_last=True) as loader:
        helper = make(loader)
        assert len(loader) == STEPS
        for number, _ in enumerate(loader, start=1):
            helper.step(number)
            after(number)


def check(found: dict[str, dict[int, float]]) -> None:
    """Each scalar stands at steps 3 and 6, and its values can be; the idle of no GPU is not there."""
    assert set(found) == NAMES
    assert {tuple(values) for values in found.values()} == {(3, 6)}
    assert all(0 <= share <= 1 for share in found["data/wait_share"].values())
    assert all(rate > 0 and math.isfinite(rate) for rate in found["data/samples_per_second"].values())
    assert set(found["data/errors"].values()) == {0.0}


def test_tensorboard(pictures: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        train(pictures, lambda loader: callbacks.TensorBoard(loader, writer, every=EVERY))
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    check({name: {event.step: event.value for event in events.Scalars(name)} for name in events.Tags()["scalars"]})


def test_wandb(pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its scalars go to the step that the program logs next, which they do not end."""
    import wandb

    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(project="feedwater", dir=tmp_path, mode="offline") as run:

        def log_loss(number: int) -> None:
            run.log({"loss": 1.0 / number, "number": number})

        train(pictures, lambda loader: callbacks.WandB(loader, every=EVERY), log_loss)
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    rows = read_wandb(file)
    assert [row["number"] for row in rows] == list(range(1, STEPS + 1)), "a step of the program's own was ended"
    check({name: {row["number"]: row[name] for row in rows if name in row} for name in NAMES})


def read_wandb(file: Path) -> list[dict[str, Any]]:
    """What was logged at each step, of the file that a run without a server leaves: records in a log of LevelDB's."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, parts, rows = file.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:  # the rest of a block that has no room for a header
            at += BLOCK - at % BLOCK
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (FULL, LAST):
            record, parts = Record.FromString(parts), b""
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items})
    return rows


def test_mlflow(pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    with pytest.raises(ValueError, match="start_run"):
        train(pictures, callbacks.MLflow)
    with mlflow.start_run() as run:
        train(pictures, lambda loader: callbacks.MLflow(loader, every=EVERY))
    client, run_id = mlflow.MlflowClient(), run.info.run_id
    check(
        {
            name: {one.step: one.value for one in client.get_metric_history(run_id, name)}
            for name in client.get_run(run_id).data.metrics
        }
    )
