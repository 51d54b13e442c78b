"""What the helpers write, into stand-ins for the tools; where a tool is installed, into it."""

from __future__ import annotations

import math
import subprocess
import sys
import types
from typing import Any

import pytest

from feedwater import callbacks


class Taken(dict[str, list[float]]):
    """Scalars by name."""

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.setdefault(name, []).append(value)

    def log(self, found: dict[str, float], commit: bool = True) -> None:
        assert not commit, "a step of the program's own must not be ended"
        for name, value in found.items():
            self.add_scalar(name, value, 0)

    def log_dict(self, found: dict[str, float], batch_size: int) -> None:
        for name, value in found.items():
            self.add_scalar(name, value, batch_size)


NAMES = {"data/wait_share", "data/samples_per_second", "data/errors"}


def check(taken: Taken, times: int) -> None:
    assert set(taken) == NAMES, "idle is unknown without a GPU, and must not be there"
    assert {len(values) for values in taken.values()} == {times}
    assert all(0 <= share <= 1 for share in taken["data/wait_share"])
    assert all(rate > 0 for rate in taken["data/samples_per_second"])


def test_figures_are_of_the_steps_since(fake: Any) -> None:
    fake.set(samples=100, broken=[3])
    with fake.loader(on_error="skip", max_errors=math.inf) as loader:
        figures = callbacks.Figures(loader)
        assert figures() == {}
        batches = iter(loader)
        for _ in range(4):
            next(batches)
        first = figures()
        assert figures() == {}, "nothing happened since"
        stats = loader.stats()
        assert first["data/wait_share"] == pytest.approx(stats.wait_s / stats.step_s)
        assert first["data/errors"] == stats.skipped == 1


def test_tensorboard_and_wandb(fake: Any) -> None:
    with fake.loader() as loader:
        board, run = Taken(), Taken()
        helpers = callbacks.TensorBoard(loader, board, every=5), callbacks.WandB(loader, run, every=5)
        for number, _ in enumerate(loader, start=1):
            for helper in helpers:
                helper.step(number)
        check(board, 2)
        check(run, 2)


def test_mlflow(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the run that was active when it was made, at the loop's own step."""
    taken: list[tuple[dict[str, float], int, str]] = []
    active: list[Any] = []
    stand_in(
        monkeypatch,
        "mlflow",
        active_run=lambda: active[-1] if active else None,
        log_metrics=lambda found, step, run_id: taken.append((found, step, run_id)),
    )
    with fake.loader() as loader:
        with pytest.raises(ValueError, match="start_run"):
            callbacks.MLflow(loader)
        active.append(types.SimpleNamespace(info=types.SimpleNamespace(run_id="first")))
        callback = callbacks.MLflow(loader, every=5)
        active.append(types.SimpleNamespace(info=types.SimpleNamespace(run_id="nested")))
        for number, _ in enumerate(loader, start=1):
            callback.step(number)
    assert [(set(found), step, run) for found, step, run in taken] == [(NAMES, 5, "first"), (NAMES, 10, "first")]


def test_lightning(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "lightning.pytorch.callbacks", Callback=type("Callback", (), {}))
    with fake.loader() as loader:
        callback, module = callbacks.lightning(loader, every=5), Taken()
        for number, batch in enumerate(loader, start=1):
            trainer = types.SimpleNamespace(global_step=number)
            callback.on_train_batch_end(trainer, module, None, batch, number)
        check(module, 2)


def test_transformers(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "transformers", TrainerCallback=type("TrainerCallback", (), {}))
    with fake.loader() as loader:
        callback = callbacks.transformers(loader)
        for _ in loader:
            pass
        logs = {"loss": 1.0}
        callback.on_log(None, None, None, logs=logs)
        assert set(logs) == NAMES | {"loss"}
        callback.on_log(None, None, None, logs=None)


def test_tqdm(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []

    class Bar:
        def __init__(self, loader: Any, total: int, desc: str) -> None:
            assert (total, desc) == (10, "train")
            self.loader = loader

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None: ...

        def __iter__(self) -> Any:
            return iter(self.loader)

        def set_postfix(self, shares: dict[str, str], refresh: bool) -> None:
            shown.append(shares)

    stand_in(monkeypatch, "tqdm.auto", tqdm=Bar)
    with fake.loader() as loader:
        assert len(list(callbacks.tqdm(loader, every_s=0.0, desc="train"))) == 10
    assert shown and all(set(shares) <= {"wait"} for shares in shown)


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    """A module with these members, and packages above it."""
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:depth]), types.ModuleType(parts[depth - 1]))
    for key, value in members.items():
        setattr(sys.modules[name], key, value)


def test_feedwater_does_not_import_them() -> None:
    script = "import sys, feedwater; assert 'feedwater.callbacks' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
