"""Pictures and masks, on a Loader.

python segmentation.py IMAGES MASKS
"""

import sys

import feedwater
import torch
from torch import nn
from torchvision.transforms import v2

IMAGES, MASKS = sys.argv[1], sys.argv[2]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])

train = feedwater.Loader(IMAGES, TRANSFORM, masks=MASKS, batch_size=4, shuffle=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 3 * 16 * 16), nn.Unflatten(1, (3, 16, 16)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for images, masks in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), masks.reshape(-1, 16, 16).long()).backward()
        optimizer.step()
