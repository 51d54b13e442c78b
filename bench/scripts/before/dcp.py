"""torch.distributed.checkpoint amid an epoch, by torchrun, on a StatefulDataLoader of torchdata."""

import sys

import torch
import torch.distributed.checkpoint as dcp
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler
from torchdata.stateful_dataloader import StatefulDataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

FOLDER, STEPS = sys.argv[1], 8
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


def train(loader, model, steps):
    """Some steps, over ends of epochs too."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while steps:
        loader.sampler.set_epoch(loader.epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            steps -= 1
            if not steps:
                break
        else:
            loader.epoch += 1


distributed.init_process_group("gloo")
for resumed in (False, True):
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10)))
    folder = ImageFolder(FOLDER, TRANSFORM)
    loader = StatefulDataLoader(folder, 4, sampler=DistributedSampler(folder), num_workers=2)
    loader.epoch = 0
    entries = {"model": model.state_dict(), f"data{distributed.get_rank()}": loader}
    if resumed:
        dcp.load(entries, checkpoint_id="checkpoint")
        model.load_state_dict(entries["model"])
        train(loader, model, STEPS - 3)
    else:
        train(loader, model, 3)
        dcp.save({**entries, "model": model.state_dict()}, checkpoint_id="checkpoint")
distributed.destroy_process_group()
