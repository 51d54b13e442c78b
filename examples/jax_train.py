"""Trains a linear model with JAX on a folder of class folders. torch is not imported.

python jax_train.py --data photos
"""

import argparse

import feedwater
import jax
import jax.numpy as jnp

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data", required=True, help="folder of class folders")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

ops = [feedwater.transforms.RandomResizedCrop(32), feedwater.transforms.RandomHorizontalFlip()]
train = feedwater.Loader(args.data, feedwater.transforms.Compose(ops), batch_size=args.batch_size, shuffle=True)


def loss_of(weights, images, labels):
    """Cross-entropy of the labels. Bytes become floats on JAX's device."""
    scores = jax.nn.log_softmax(images.reshape(len(images), -1) / 255 @ weights)
    return -jnp.mean(scores[jnp.arange(len(labels)), labels])


step = jax.jit(jax.value_and_grad(loss_of))
# a batch is views of shared memory; a CPU's device keeps such a view, and the memory with it, so there it is copied
put = jnp.array if jax.default_backend() == "cpu" else jax.device_put
weights = jnp.zeros((3 * 32 * 32, len(train.classes)))

for epoch in range(args.epochs):
    for images, labels in train:
        loss, gradient = step(weights, put(images), put(labels))
        weights -= 0.001 * gradient
    print(f"epoch {epoch}: loss {loss:.3f}, {train.stats().wait_share:.0%} of the time waiting")
