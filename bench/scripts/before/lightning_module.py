"""Lightning, on a DataLoader."""

import sys

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Classifier(lightning.LightningModule):
    """A network."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))

    def training_step(self, batch, number):
        """The loss of a batch."""
        images, labels = batch
        return nn.functional.cross_entropy(self.net(images), labels)

    def configure_optimizers(self):
        """Plain descent."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


train = DataLoader(ImageFolder(FOLDER, TRANSFORM), batch_size=4, shuffle=True, num_workers=2)
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
)
trainer.fit(Classifier(), train)
