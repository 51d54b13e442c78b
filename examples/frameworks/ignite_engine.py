"""PyTorch Ignite, on a Loader.

python ignite_engine.py FOLDER
"""

import sys

import feedwater
import torch
from ignite.engine import create_supervised_trainer
from torch import nn
from torchvision.transforms import v2

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])

train = feedwater.Loader(FOLDER, TRANSFORM, batch_size=4, shuffle=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
trainer = create_supervised_trainer(model, optimizer, nn.functional.cross_entropy)
trainer.run(train, max_epochs=2)
