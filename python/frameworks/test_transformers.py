"""The Trainer of transformers: resumed amid an epoch, and evaluated on ranks among which samples do not divide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import make_pictures, run_ranks
from torchvision.transforms import v2
from transformers import Trainer, TrainerCallback, TrainingArguments

import feedwater
import feedwater.hf

SIZE = 16
FIELDS = {"image": "pixel_values", "label": "labels", "index": "index"}
TRANSFORM = v2.Compose([v2.Resize((SIZE, SIZE)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Model(torch.nn.Module):
    """Notes the samples that it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3 * SIZE * SIZE, 3)
        self.trained: list[list[int]] = []

    def forward(self, pixel_values: Any, labels: Any, index: Any) -> Any:
        if self.training:
            self.trained.append(index.tolist())
        logits = self.linear(pixel_values.flatten(1))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits, "index": index}


class OnLoaders(Trainer):
    """What a script changes: where batches come from."""

    loader: Any

    def get_train_dataloader(self) -> Any:
        return self.loader

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        return self.loader


class Stop(TrainerCallback):
    """Ends the run at a step of the optimizer, as a kill would."""

    def __init__(self, at: int) -> None:
        self.at = at

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.at:
            control.should_save = control.should_training_stop = True


def make_trainer(folder: str, output: str, stop: int | None, **options: Any) -> Any:
    arguments = TrainingArguments(
        output_dir=output, num_train_epochs=2, per_device_train_batch_size=4, per_device_eval_batch_size=4,
        gradient_accumulation_steps=3, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
        logging_strategy="no", max_grad_norm=0.0, **options,
    )  # fmt: skip
    torch.manual_seed(0)
    trainer = OnLoaders(Model(), arguments, callbacks=[Stop(stop)] if stop else [])
    trainer.loader = feedwater.Loader(folder, TRANSFORM, batch_size=4, shuffle=True, fields=FIELDS, local_workers=1)
    return trainer


def train_in_two_parts(folder: str, output: str, stop: int) -> Any:
    feedwater.hf.enable()
    whole = make_trainer(folder, output, None)
    whole.train()
    first = make_trainer(folder, output, stop)
    first.train()
    second = make_trainer(folder, output, None)
    second.train(resume_from_checkpoint=True)
    return (
        whole.model.trained,
        first.model.trained + second.model.trained,
        (whole.state.global_step, second.state.global_step),
        float((whole.model.linear.weight - second.model.linear.weight).abs().max()),
    )


@pytest.mark.parametrize("stop", [2, 4])
def test_a_resumed_run_is_trained_on_the_same_samples(tmp_path: Path, stop: int) -> None:
    """8 steps, of which 3 make one of the optimizer; stopped amid the first epoch and amid the second one."""
    folder = make_pictures(tmp_path / "pictures", 30)
    whole, parts, steps, apart = run_ranks(1, train_in_two_parts, str(folder), str(tmp_path / "out"), stop)[0]
    assert len(whole) == 16 and parts == whole
    assert steps == (6, 6)
    assert apart == 0


def evaluate(folder: str, output: str) -> Any:
    counted: dict[str, Any] = {}

    def note(found: Any) -> dict[str, float]:
        logits, index = found.predictions
        counted["index"], counted["rows"] = sorted(index.tolist()), len(logits)
        return {}

    trainer = make_trainer(folder, output, None)
    trainer.loader = feedwater.Loader(folder, TRANSFORM, batch_size=4, fields=FIELDS, local_workers=1)
    trainer.compute_metrics = note
    metrics = trainer.evaluate()
    return counted["index"], counted["rows"], metrics["eval_loss"]


def test_evaluation_on_two_ranks_counts_each_sample_once(tmp_path: Path) -> None:
    folder = make_pictures(tmp_path / "pictures", 29)
    (alone,) = run_ranks(1, evaluate, str(folder), str(tmp_path / "out"))
    assert alone[:2] == (list(range(29)), 29)
    for index, rows, loss in run_ranks(2, evaluate, str(folder), str(tmp_path / "out")):
        assert (index, rows) == (list(range(29)), 29)
        assert loss == pytest.approx(alone[2], rel=0.05), "a mean of batches, which are others on two ranks"
