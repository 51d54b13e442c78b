"""Prints where the steps of a training loop spend their time, with a DataLoader and with Feedwater.

python stages.py --data photos
"""

import argparse

import feedwater
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision.transforms import v2

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data", required=True, help="folder of class folders")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()

ops = [v2.RandomResizedCrop(96), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
folder = datasets.ImageFolder(args.data, v2.Compose(ops))
device = "cuda" if torch.cuda.is_available() else "cpu"
layers = [layer for i, o in ((3, 16), (16, 32), (32, 64)) for layer in (nn.Conv2d(i, o, 3, stride=2), nn.ReLU())]
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, len(folder.classes))).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

options = {"batch_size": args.batch_size, "shuffle": True}
for data in (DataLoader(folder, **options), feedwater.Loader(folder, **options)):
    with feedwater.stages(model, optimizer) as s:
        for _ in range(args.epochs):
            for images, labels in data:
                loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    print(f"{type(data).__module__}\n{s}\n")
