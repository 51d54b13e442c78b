"""Trains a small network on a folder of class folders.

python train.py --data photos                             on this machine
python train.py --data photos --nodes host:7070           with images made by another one; before, export
                                                          FEEDWATER_TLS_CA=ca.pem, or on a network of your own
                                                          FEEDWATER_INSECURE=1
torchrun --nproc-per-node 2 train.py --data photos        on several ranks
"""

import argparse
import os
import time

import feedwater
import torch
from torch import distributed, nn
from torchvision.transforms import v2

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data", required=True, help="folder of class folders; with --nodes, its name there")
parser.add_argument("--nodes", help="host:port of the nodes that make the images, with commas")
parser.add_argument("--batch-size", type=int, default=64, help="of each rank")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--checkpoint", help="file to resume from, and to save to")
args = parser.parse_args()

rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))  # torchrun sets them
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else "cpu"
if world > 1:
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")

ops = [v2.RandomResizedCrop(96), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
train = feedwater.Loader(
    args.data, v2.Compose(ops), batch_size=args.batch_size, shuffle=True, nodes=args.nodes, device=device
)

layers = [layer for i, o in ((3, 16), (16, 32), (32, 64)) for layer in (nn.Conv2d(i, o, 3, stride=2), nn.ReLU())]
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, len(train.classes))).to(device)
network = nn.parallel.DistributedDataParallel(model) if world > 1 else model
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

parts = {"model": model, "optimizer": optimizer, "data": train}
if args.checkpoint and os.path.exists(args.checkpoint):
    for name, state in torch.load(args.checkpoint, map_location=device).items():
        parts[name].load_state_dict(state)  # the data go on where they were, on any number of ranks

for epoch in range(train.state_dict()["epoch"], args.epochs):
    began, seen = time.perf_counter(), 0
    for images, labels in train:
        loss = nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += world * len(images)
    if rank == 0:
        speed, waiting = seen / (time.perf_counter() - began), train.stats().wait_share
        print(f"epoch {epoch}: loss {loss.item():.3f}, {speed:,.0f} images/s, {waiting:.0%} of the time waiting")
        if args.checkpoint:
            torch.save({name: part.state_dict() for name, part in parts.items()}, args.checkpoint)
