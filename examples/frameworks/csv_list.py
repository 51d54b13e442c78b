"""A CSV file of paths and labels, on a Loader.

python csv_list.py FOLDER LIST
"""

import sys

import feedwater
import torch
from torch import nn
from torchvision.transforms import v2

LIST = sys.argv[2]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])

train = feedwater.Loader(LIST, TRANSFORM, batch_size=4, shuffle=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for images, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
