"""The Trainer of transformers, 3 batches a step, on a Loader.

python hf_trainer.py FOLDER
"""

import sys

import feedwater
import torch
from torch import nn
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


arguments = TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=3, learning_rate=0.1,
    save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, remove_unused_columns=False,
)  # fmt: skip
train = feedwater.Loader(
    FOLDER, TRANSFORM, batch_size=4, shuffle=True, fields={"image": "pixel_values", "label": "labels"}
)
trainer = Trainer(Model(), arguments)
trainer.get_train_dataloader = lambda: train
trainer.train()
