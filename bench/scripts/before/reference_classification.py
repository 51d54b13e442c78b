"""A preset of torchvision's references, on a DataLoader."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

FOLDER = sys.argv[1]


class ClassificationPresetTrain:
    """As references/classification/presets.py has it."""

    def __init__(self, *, crop_size, hflip_prob=0.5):
        self.transforms = v2.Compose([
            v2.RandomResizedCrop(crop_size, antialias=True),
            v2.RandomHorizontalFlip(hflip_prob),
            v2.PILToTensor(),
            v2.ToDtype(torch.float, scale=True),
            v2.ToPureTensor(),
        ])  # fmt: skip

    def __call__(self, img):
        """The picture for the network."""
        return self.transforms(img)


TRANSFORM = ClassificationPresetTrain(crop_size=16)
train = DataLoader(ImageFolder(FOLDER, TRANSFORM), batch_size=4, shuffle=True, num_workers=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for images, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
