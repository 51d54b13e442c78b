"""DistributedDataParallel, by torchrun, on a Loader.

torchrun --nproc-per-node 2 ddp.py FOLDER
"""

import sys

import feedwater
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torchvision.transforms import v2

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])

distributed.init_process_group("gloo")
train = feedwater.Loader(FOLDER, TRANSFORM, batch_size=4, shuffle=True)
model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(2):
    for images, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
distributed.destroy_process_group()
