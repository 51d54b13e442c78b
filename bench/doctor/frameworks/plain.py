"""Trains a small convolutional network on a folder of class folders, in the usual loop.

python plain.py FOLDER [--epochs 2] [--workers 2]
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class AverageMeter:
    """Latest value and mean."""

    def __init__(self):
        self.value = self.sum = self.count = 0

    def update(self, value, n=1):
        self.value, self.sum, self.count = value, self.sum + value * n, self.count + n

    @property
    def average(self):
        return self.sum / self.count


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean().item()


def train(loader, model, criterion, optimizer, epoch, device):
    batch_time, data_time, losses = AverageMeter(), AverageMeter(), AverageMeter()
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        data_time.update(time.time() - end)
        images, target = images.to(device, non_blocking=True), target.to(device, non_blocking=True)
        loss = criterion(model(images), target)
        losses.update(loss.item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch_time.update(time.time() - end)
        end = time.time()
        if i % 50 == 0:
            print(f"epoch {epoch} [{i}/{len(loader)}] loss {losses.average:.6f}")


def validate(loader, model, criterion, device):
    losses, top1 = AverageMeter(), AverageMeter()
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            images, target = images.to(device), target.to(device)
            output = model(images)
            losses.update(criterion(output, target).item(), images.size(0))
            top1.update(accuracy(output, target), images.size(0))
    print(f"validation loss {losses.average:.6f} top1 {top1.average:.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--save", default="checkpoint.pt")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    normalize = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    crop = [transforms.RandomResizedCrop(96), transforms.RandomHorizontalFlip()]
    whole = [transforms.Resize(112), transforms.CenterCrop(96)]
    train_set = datasets.ImageFolder(args.data, transforms.Compose([*crop, transforms.ToTensor(), normalize]))
    val_set = datasets.ImageFolder(args.data, transforms.Compose([*whole, transforms.ToTensor(), normalize]))
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, num_workers=args.workers)
    val_loader = DataLoader(val_set, batch_size=32, num_workers=args.workers)

    layers = []
    for i, o in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(i, o, 3, stride=2, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, len(train_set.classes))]
    model = nn.Sequential(*layers, *head).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    for epoch in range(args.epochs):
        train(train_loader, model, criterion, optimizer, epoch, device)
        validate(val_loader, model, criterion, device)
        scheduler.step()
    torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
