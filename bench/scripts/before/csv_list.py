"""A CSV file of paths and labels, on a DataLoader."""

import csv
import os
import sys

import PIL.Image
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

FOLDER, LIST = sys.argv[1], sys.argv[2]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Listed(Dataset):
    """What a CSV file of paths and labels lists."""

    def __init__(self):
        with open(LIST) as file:
            self.rows = list(csv.DictReader(file))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return TRANSFORM(PIL.Image.open(os.path.join(FOLDER, row["path"])).convert("RGB")), int(row["label"])


train = DataLoader(Listed(), batch_size=4, shuffle=True, num_workers=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for images, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
