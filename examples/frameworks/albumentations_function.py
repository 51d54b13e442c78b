"""Albumentations on each sample, on a Loader.

python albumentations_function.py FOLDER
"""

import sys

import albumentations
import feedwater
import torch
from albumentations.pytorch import ToTensorV2
from torch import nn
from torchvision.transforms import v2

TRANSFORM = v2.RandomResizedCrop(16)
STEPS = [albumentations.HorizontalFlip(), albumentations.GaussNoise((0.001, 0.002)), albumentations.ToFloat(255)]
AUGMENT = albumentations.Compose([*STEPS, ToTensorV2()])


if __name__ == "__main__":
    train = feedwater.Loader(sys.argv[1], TRANSFORM, python=AUGMENT, batch_size=4, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for images, labels in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
