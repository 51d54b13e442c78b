"""torch.distributed.checkpoint amid an epoch, by torchrun, on a Loader.

torchrun --nproc-per-node 2 dcp.py FOLDER
"""

import sys

import feedwater
import torch
import torch.distributed.checkpoint as dcp
from feedwater.dcp import Stateful
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torchvision.transforms import v2

FOLDER, STEPS = sys.argv[1], 8
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


def train(loader, model, steps):
    """Some steps, over ends of epochs too."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while steps:
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            steps -= 1
            if not steps:
                break


distributed.init_process_group("gloo")
for resumed in (False, True):
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10)))
    loader = feedwater.Loader(FOLDER, TRANSFORM, batch_size=4, shuffle=True)
    entries = {"model": model.state_dict(), "data": Stateful(loader)}
    if resumed:
        dcp.load(entries, checkpoint_id="checkpoint")
        model.load_state_dict(entries["model"])
        train(loader, model, STEPS - 3)
    else:
        train(loader, model, 3)
        dcp.save({**entries, "model": model.state_dict()}, checkpoint_id="checkpoint")
distributed.destroy_process_group()
