"""Keras 3 on torch, on a DataLoader."""

import os
import sys

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

FOLDER = sys.argv[1]
TRANSFORM = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
train = DataLoader(ImageFolder(FOLDER, TRANSFORM), batch_size=4, shuffle=True, num_workers=2)

model = keras.Sequential([keras.layers.TorchModuleWrapper(nn.Flatten()), keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(train, epochs=2, verbose=0)
