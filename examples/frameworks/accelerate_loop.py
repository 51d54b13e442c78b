"""Accelerate, 3 batches a step, on a Loader.

python accelerate_loop.py FOLDER
"""

import sys

import feedwater
import torch
from accelerate import Accelerator
from torch import nn
from torchvision.transforms import v2

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
train = feedwater.Loader(FOLDER, TRANSFORM, batch_size=4, shuffle=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, train = accelerator.prepare(model, optimizer, train)

for _ in range(2):
    for images, labels in train:
        with accelerator.accumulate(model):
            accelerator.backward(nn.functional.cross_entropy(model(images), labels))
            optimizer.step()
            optimizer.zero_grad()
