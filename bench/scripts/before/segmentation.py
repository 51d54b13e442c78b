"""Pictures and masks, on a DataLoader."""

import os
import sys

import PIL.Image
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2

IMAGES, MASKS = sys.argv[1], sys.argv[2]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Pairs(Dataset):
    """Pictures and masks of the same names."""

    def __init__(self):
        self.names = sorted(os.listdir(IMAGES))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        name = self.names[index]
        image = PIL.Image.open(os.path.join(IMAGES, name)).convert("RGB")
        mask = PIL.Image.open(os.path.join(MASKS, name.replace(".jpg", ".png")))
        return TRANSFORM(image, tv_tensors.Mask(mask))


train = DataLoader(Pairs(), batch_size=4, shuffle=True, num_workers=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 3 * 16 * 16), nn.Unflatten(1, (3, 16, 16)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for images, masks in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), masks.reshape(-1, 16, 16).long()).backward()
        optimizer.step()
