"""SimCLR: two views, on a DataLoader."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class TwoViews:
    """Two pictures of one."""

    def __call__(self, image):
        """Each drawn by itself."""
        return TRANSFORM(image), TRANSFORM(image)


train = DataLoader(ImageFolder(FOLDER, TwoViews()), batch_size=4, shuffle=True, num_workers=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for (one, other), _ in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(one), model(other)).backward()
        optimizer.step()
