"""A WeightedRandomSampler with a generator, on a DataLoader."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, WeightedRandomSampler
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])

weights = torch.arange(32.0)
sampler = WeightedRandomSampler(weights, 32, generator=torch.Generator().manual_seed(1))
train = DataLoader(ImageFolder(FOLDER, TRANSFORM), batch_size=4, sampler=sampler, num_workers=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for images, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
