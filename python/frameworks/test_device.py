"""device="cuda" in frameworks, with torch.cuda on the CPU: batches are used as they come, and moved by nobody again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import HERE
from torch import nn
from torchvision.transforms import v2

import feedwater

sys.path.insert(0, str(HERE.parent / "tests"))

import cpu_cuda

SAMPLES, BATCH, SIZE, EPOCHS = 30, 4, 16, 2
SHAPE = (BATCH, 3, SIZE, SIZE)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[cpu_cuda.Device]:
    with cpu_cuda.installed(monkeypatch) as device:
        yield device


def make_loader(folder: Path, **options: Any) -> feedwater.Loader[Any]:
    steps = [v2.Resize((SIZE, SIZE)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.2])]
    options = {"batch_size": BATCH, "shuffle": True, "seed": 5, "local_workers": 1, "device": "cuda", **options}
    return feedwater.Loader(folder, v2.Compose(steps), **options)


class Net(nn.Module):
    """Notes what it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.flat, self.linear = nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 3)
        self.seen: list[torch.Tensor] = []

    def forward(self, image: Any) -> Any:
        if self.training:
            self.seen.append(image.detach().clone())
        return self.linear(self.flat(image))

    def check(self, folder: Path, gpu: cpu_cuda.Device, at: int = 0) -> None:
        """It was given the CPU's batches, which were copied once, by the Loader."""
        with make_loader(folder, device=None) as loader:
            expected = [image.clone() for _ in range(EPOCHS) for image, _ in loader]
        seen = self.seen[at:]
        assert len(seen) == len(expected) and all(torch.equal(*pair) for pair in zip(seen, expected))
        assert not [shape for shape in gpu.moved if shape[1:] == SHAPE[1:]], "no batch was moved by the program"
        assert gpu.copied.count(BATCH * 3 * SIZE * SIZE) >= EPOCHS * (SAMPLES // BATCH), "bytes, not floats"


def test_what_a_program_moves_is_noticed(pictures: Path, gpu: cpu_cuda.Device) -> None:
    """So that the tests below can fail."""
    image, _ = next(iter(make_loader(pictures, device=None)))
    there = image.to("cuda", non_blocking=True)
    assert there is not image and gpu.moved == [SHAPE]
    image, _ = next(iter(make_loader(pictures)))
    assert image.to("cuda", non_blocking=True) is image.cuda() is image
    assert gpu.moved == [SHAPE]
    with pytest.raises(TypeError, match="to numpy"):
        image.numpy()
    assert image.cpu().numpy().shape == SHAPE


def test_lightning(pictures: Path, gpu: cpu_cuda.Device) -> None:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch: Any, _: int) -> Any:
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module = Module()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "barebones": False}
    trainer = lightning.Trainer(max_epochs=EPOCHS, accelerator="gpu", devices=1, **quiet)
    trainer.fit(module, make_loader(pictures))
    module.net.check(pictures, gpu)


def test_accelerate(pictures: Path, gpu: cpu_cuda.Device) -> None:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState, PartialState

    accelerator = Accelerator(gradient_accumulation_steps=3)
    try:
        assert accelerator.device.type == "cuda"
        loader = make_loader(pictures, device=accelerator.device)
        net = Net()
        model, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1), loader)
        for _ in range(EPOCHS):
            for image, label in loader:
                with accelerator.accumulate(model):
                    image = image.to(accelerator.device)
                    accelerator.backward(nn.functional.cross_entropy(model(image), label))
                    optimizer.step()
                    optimizer.zero_grad()
        net.check(pictures, gpu)
    finally:
        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()


def test_the_trainer_of_transformers(pictures: Path, gpu: cpu_cuda.Device, tmp_path: Path) -> None:
    from accelerate.state import AcceleratorState, GradientState, PartialState
    from transformers import Trainer, TrainingArguments

    class Model(Net):
        def forward(self, pixel_values: Any, labels: Any) -> Any:
            logits = super().forward(pixel_values)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    model = Model()
    arguments = TrainingArguments(
        str(tmp_path), num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH, save_strategy="no", report_to=[],
        disable_tqdm=True, remove_unused_columns=False,
    )  # fmt: skip
    loader = make_loader(pictures, fields={"image": "pixel_values", "label": "labels"})
    try:
        trainer = Trainer(model, arguments)
        trainer.get_train_dataloader = lambda: loader
        trainer.train()
        assert arguments.device.type == "cuda"
        model.check(pictures, gpu)
    finally:
        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()


def test_ignite(pictures: Path, gpu: cpu_cuda.Device) -> None:
    from ignite.engine import create_supervised_trainer

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    trainer = create_supervised_trainer(net, optimizer, nn.functional.cross_entropy, device="cuda", non_blocking=True)
    trainer.run(make_loader(pictures), max_epochs=EPOCHS)
    net.check(pictures, gpu)


def test_fastai(pictures: Path, gpu: cpu_cuda.Device, tmp_path: Path) -> None:
    """It moves batches to where the network is: the CPU, here."""
    from fastai.basics import DataLoaders, Learner

    net, loader = Net(), make_loader(pictures)
    valid = make_loader(pictures, shuffle=False)
    learner = Learner(DataLoaders(loader, valid), net, loss_func=nn.functional.cross_entropy, path=tmp_path)
    learner.fit(EPOCHS, lr=0.1)
    net.check(pictures, gpu)


def test_keras(pictures: Path, gpu: cpu_cuda.Device) -> None:
    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    net, loader = Net(), make_loader(pictures)
    model = keras.Sequential([keras.layers.TorchModuleWrapper(net)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    batches = (batch for _ in range(EPOCHS) for batch in loader)
    model.fit(batches, epochs=EPOCHS, steps_per_epoch=len(loader), verbose=0)
    net.check(pictures, gpu, at=len(net.seen) - EPOCHS * len(loader))  # Keras calls it once to build it


@pytest.mark.parametrize(("prefetch", "own"), [(True, None), (True, "cuda:0"), (False, None)])
def test_timm(pictures: Path, gpu: cpu_cuda.Device, prefetch: bool, own: str | None) -> None:
    from timm.data import create_dataset

    from feedwater.timm import create_loader

    options = {"local_workers": 1, **({"device": own} if own else {})}
    given: dict[str, Any] = {"use_prefetcher": prefetch, "is_training": True, "color_jitter": 0.0, "pin_memory": True}
    dataset = create_dataset("", root=str(pictures))
    ours = create_loader(dataset, (3, SIZE, SIZE), BATCH, **given, options=options)
    batches = [batch for _ in range(EPOCHS) for batch in ours]
    assert all(image.shape == SHAPE and gpu.holds(image) == gpu.holds(label) == prefetch for image, label in batches)
    assert prefetch or batches[-1][0].is_pinned()
    assert not gpu.moved


@pytest.mark.parametrize("pinned", [True, False])
def test_timms_own_prefetcher_around_a_loader(pictures: Path, gpu: cpu_cuda.Device, pinned: bool) -> None:
    """It moves bytes by itself, out of pinned memory; with device= there is nothing to move, and it is taken out."""
    from timm.data.loader import PrefetchLoader

    steps = v2.Compose([v2.Resize((SIZE, SIZE)), v2.ToImage()])
    given: dict[str, Any] = {"batch_size": BATCH, "local_workers": 1}
    where = {"pin_memory": True} if pinned else {"device": "cuda"}
    loader = feedwater.Loader(pictures, steps, **given, **where)
    mean, std = (0.4,) * 3, (0.2,) * 3
    made = [image.clone() for image, _ in PrefetchLoader(loader, mean=mean, std=std, device=torch.device("cuda"))]
    plain = feedwater.Loader(pictures, steps, **given)
    expected = [(image.float() - 0.4 * 255) / (0.2 * 255) for image, _ in plain]
    assert len(made) == len(expected) and all(torch.allclose(*pair) for pair in zip(made, expected))
    assert gpu.moved.count(SHAPE) == (SAMPLES // BATCH if pinned else 0)
