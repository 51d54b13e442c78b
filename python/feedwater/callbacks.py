"""What a Loader waits for, in the tools people watch: tqdm, TensorBoard, Weights & Biases, MLflow and others.

Import it where you need it: `from feedwater import callbacks`. Each helper imports its tool when it is made. All of
them write the same scalars, of the steps since they were written last:

  data/wait_share           share of the time that the loop was blocked in next
  data/idle_share           share that the GPU stood still for data; not there where that is unknown
  data/samples_per_second   samples that the loop took
  data/errors               samples skipped or replaced since the run began
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

from ._loader import Loader

__all__ = ["Figures", "MLflow", "TensorBoard", "WandB", "lightning", "tqdm", "transformers"]


class Figures:
    """The scalars of one Loader since the call before."""

    def __init__(self, loader: Loader[Any]) -> None:
        self._loader, self._before, self._at = loader, loader.stats(), perf_counter()

    def __call__(self) -> dict[str, float]:
        """Empty if there was no step."""
        stats, now = self._loader.stats(), perf_counter()
        before, seconds = self._before, now - self._at
        steps_s = stats.step_s - before.step_s
        if steps_s <= 0 or seconds <= 0:
            return {}
        self._before, self._at = stats, now
        found = {
            "data/wait_share": (stats.wait_s - before.wait_s) / steps_s,
            "data/samples_per_second": (stats.samples - before.samples) / seconds,
            "data/errors": float(stats.skipped + stats.substituted),
        }
        idle_of_s = stats.idle_step_s - before.idle_step_s
        if stats.idle_s is not None and idle_of_s > 0:
            found["data/idle_share"] = max(0.0, stats.idle_s - (before.idle_s or 0.0)) / idle_of_s
        return found


def tqdm(loader: Loader[Any], every_s: float = 1.0, **options: Any) -> Iterator[Any]:
    """Iterates an epoch under a progress bar with wait and idle: `for x, y in callbacks.tqdm(loader, desc="train")`."""
    from tqdm.auto import tqdm as bar_of

    figures, after = Figures(loader), perf_counter() + every_s
    with bar_of(loader, total=len(loader), **options) as bar:
        for batch in bar:
            yield batch
            if perf_counter() >= after:
                after = perf_counter() + every_s
                shares = {name[5:-6]: f"{value:.0%}" for name, value in figures().items() if name.endswith("_share")}
                bar.set_postfix(shares, refresh=False)


class TensorBoard:
    """Writes scalars to a torch.utils.tensorboard.SummaryWriter; call step(number) at each step of the loop."""

    def __init__(self, loader: Loader[Any], writer: Any, every: int = 50) -> None:
        self._figures, self._writer, self._every = Figures(loader), writer, every

    def step(self, number: int) -> None:
        """Writes at every so many steps."""
        if number % self._every == 0:
            for name, value in self._figures().items():
                self._writer.add_scalar(name, value, number)


class WandB:
    """Logs scalars to a run of Weights & Biases, by default the current one; call step(number) at each step."""

    def __init__(self, loader: Loader[Any], run: Any = None, every: int = 50) -> None:
        if run is None:
            import wandb

            run = wandb.run
            if run is None:
                raise ValueError("there is no run yet: call wandb.init() before, or pass run=")
        self._figures, self._run, self._every = Figures(loader), run, every

    def step(self, number: int) -> None:
        """Logs at every so many steps, to the step that is logged next: it commits none."""
        if number % self._every == 0 and (found := self._figures()):
            self._run.log(found, commit=False)


class MLflow:
    """Logs metrics to a run of MLflow, by default the active one; call step(number) at each step."""

    def __init__(self, loader: Loader[Any], run: Any = None, every: int = 50) -> None:
        import mlflow

        run = run or mlflow.active_run()
        if run is None:
            raise ValueError("there is no run yet: call mlflow.start_run() before, or pass run=")
        self._figures, self._run_id, self._every = Figures(loader), run.info.run_id, every
        self._log = mlflow.log_metrics

    def step(self, number: int) -> None:
        """Logs at every so many steps."""
        if number % self._every == 0 and (found := self._figures()):
            self._log(found, step=number, run_id=self._run_id)


def lightning(loader: Loader[Any], every: int = 50) -> Any:
    """A Callback for Trainer(callbacks=[…]) that logs the scalars to the module's loggers."""
    from lightning.pytorch.callbacks import Callback

    figures = Figures(loader)

    class DataCallback(Callback):  # type: ignore[misc, unused-ignore]
        """Logs what the Loader waits for."""

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, index: int) -> None:
            """Logs at every so many steps."""
            if trainer.global_step % every == 0:
                module.log_dict(figures(), batch_size=loader.batch_size or 1)

    return DataCallback()


def transformers(loader: Loader[Any]) -> Any:
    """A TrainerCallback for Trainer(callbacks=[…]): what the Trainer prints has the scalars too.

    The trackers of report_to come before it; trainer.callback_handler.callbacks.insert(0, it) lets them see
    these scalars.
    """
    from transformers import TrainerCallback

    figures = Figures(loader)

    class DataCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]
        """Adds what the Loader waits for."""

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
            """Adds to what is logged."""
            if logs is not None:
                logs.update(figures())

    return DataCallback()
