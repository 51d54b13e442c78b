"""FSDP2, by torchrun, on a DataLoader."""

import sys

import torch
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])

distributed.init_process_group("gloo")
mesh = distributed.init_device_mesh("cpu", (distributed.get_world_size(),))
folder = ImageFolder(FOLDER, TRANSFORM)
sampler = DistributedSampler(folder)
train = DataLoader(folder, batch_size=4, sampler=sampler, num_workers=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(2):
    sampler.set_epoch(epoch)
    for images, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
distributed.destroy_process_group()
