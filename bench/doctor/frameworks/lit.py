"""Trains a small convolutional network on a folder of class folders with Lightning.

python lit.py FOLDER
"""

import argparse

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class Classifier(lightning.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(32, classes),
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--save", default="checkpoint.pt")
    args = parser.parse_args()

    lightning.seed_everything(0, workers=True)
    transform = transforms.Compose([transforms.RandomResizedCrop(96), transforms.ToTensor()])
    folder = datasets.ImageFolder(args.data, transform)
    train = DataLoader(folder, batch_size=8, shuffle=True, num_workers=args.workers)
    val = DataLoader(folder, batch_size=32, num_workers=args.workers)
    model = Classifier(len(folder.classes))
    trainer = lightning.Trainer(
        max_epochs=args.epochs,
        accelerator="auto",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(model, train, val)
    print(f"final train_loss {trainer.callback_metrics['train_loss']:.6f}")
    torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
