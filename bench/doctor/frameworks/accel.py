"""Trains a small convolutional network on a folder of class folders with Accelerate.

python accel.py FOLDER
"""

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--save", default="checkpoint.pt")
    args = parser.parse_args()

    set_seed(0)
    accelerator = Accelerator()
    transform = transforms.Compose([transforms.RandomResizedCrop(96), transforms.ToTensor()])
    folder = datasets.ImageFolder(args.data, transform)
    loader = DataLoader(folder, batch_size=8, shuffle=True, num_workers=args.workers)
    layers = [nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, len(folder.classes)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        accelerator.print(f"epoch {epoch} loss {total / len(loader):.6f}")
    torch.save(accelerator.unwrap_model(model).state_dict(), args.save)


if __name__ == "__main__":
    main()
