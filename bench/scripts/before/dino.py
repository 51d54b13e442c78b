"""DINO: two large views, four small ones, on a DataLoader."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
SMALL = v2.Compose([v2.RandomResizedCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class MultiCrop:
    """Two large pictures and four small ones of one."""

    def __call__(self, image):
        """Each drawn by itself."""
        return [TRANSFORM(image) for _ in range(2)] + [SMALL(image) for _ in range(4)]


train = DataLoader(ImageFolder(FOLDER, MultiCrop()), batch_size=4, shuffle=True, num_workers=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for (one, other, *small), _ in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(one), model(other))
        (loss + sum(picture.mean() for picture in small)).backward()
        optimizer.step()
