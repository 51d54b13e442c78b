"""A training loop of Ray Train on batches from a pool: train.py SOURCE, as imagenet/train. docs/ray.md."""

from __future__ import annotations

import sys
from typing import Any

import feedwater
import ray.train.torch
import torch
from feedwater import transforms
from feedwater_ray import find_nodes

import ray.train


def train(settings: dict[str, Any]) -> None:
    """What each worker does."""
    context = ray.train.get_context()
    loader = feedwater.Loader(
        settings["source"],
        [transforms.RandomResizedCrop(64), transforms.ToImage(), transforms.ToDtype("float32", scale=True)],
        batch_size=32,
        shuffle=True,
        rank=context.get_world_rank(),
        num_replicas=context.get_world_size(),
        nodes=find_nodes(),
        insecure=True,
    )
    model = ray.train.torch.prepare_model(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"loss {loss.item():.3f}")
        ray.train.report({"loss": loss.item()})


if __name__ == "__main__":
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config={"source": sys.argv[1]},
        scaling_config=ray.train.ScalingConfig(num_workers=1, resources_per_worker={"CPU": 0.1}),
    )
    trainer.fit()
