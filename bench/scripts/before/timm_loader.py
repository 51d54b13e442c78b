"""Timm's create_loader, on a DataLoader."""

import sys

import torch
from timm.data import create_dataset, create_loader
from torch import nn

FOLDER = sys.argv[1]

train = create_loader(
    create_dataset("", root=FOLDER), input_size=(3, 16, 16), batch_size=4, is_training=True, color_jitter=0.0,
    interpolation="random", mean=(0, 0, 0), std=(1, 1, 1), device=torch.device("cpu"), num_workers=2,
)  # fmt: skip
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for images, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
