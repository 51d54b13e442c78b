"""Keras 3 on torch, on a Loader.

python keras_fit.py FOLDER
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "torch"

import feedwater
import keras
import torch
from torch import nn
from torchvision.transforms import v2

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
train = feedwater.Loader(FOLDER, TRANSFORM, batch_size=4, shuffle=True)

model = keras.Sequential([keras.layers.TorchModuleWrapper(nn.Flatten()), keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
batches = (batch for _ in range(2) for batch in train)
model.fit(batches, epochs=2, steps_per_epoch=len(train), verbose=0)
