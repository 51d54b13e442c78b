"""The Trainer of transformers, 3 batches a step, on a DataLoader."""

import sys

import torch
from torch import nn
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2
from transformers import Trainer, TrainingArguments

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class Model(nn.Module):
    """As the Trainer calls it."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))

    def forward(self, pixel_values, labels):
        """Loss and logits."""
        logits = self.net(pixel_values)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def collate(samples):
    """A batch by the names of the model's arguments."""
    images, labels = zip(*samples)
    return {"pixel_values": torch.stack(images), "labels": torch.tensor(labels)}


arguments = TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=3, learning_rate=0.1,
    save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, remove_unused_columns=False,
)  # fmt: skip
trainer = Trainer(Model(), arguments, train_dataset=ImageFolder(FOLDER, TRANSFORM), data_collator=collate)
trainer.train()
