"""Detection with boxes of a COCO file, on a DataLoader.

python detection.py FOLDER ANNOTATIONS
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
from torchvision.transforms import v2

STEPS = [v2.RandomHorizontalFlip(), v2.Resize((16, 16)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
TRANSFORM = v2.Compose([*STEPS, v2.ClampBoundingBoxes(), v2.SanitizeBoundingBoxes()])


dataset = wrap_dataset_for_transforms_v2(CocoDetection(sys.argv[1], sys.argv[2], transforms=TRANSFORM))
train = DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=lambda samples: tuple(zip(*samples, strict=True)))
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for _ in range(2):
    for images, targets in train:
        middles = torch.stack([target["boxes"].float().mean(0) for target in targets])
        optimizer.zero_grad()
        nn.functional.l1_loss(model(torch.stack(tuple(images))), middles).backward()
        optimizer.step()
