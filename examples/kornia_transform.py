"""Augments with kornia behind the transforms that nodes do.

python kornia_transform.py --data photos                        on this machine
python kornia_transform.py --data photos --nodes host:7070      with images decoded and cropped by another one
"""

import argparse
import time

import feedwater
import kornia.augmentation as kornia
import numpy as np
import torch
from torchvision.transforms import v2

augment = torch.nn.Sequential(kornia.RandomGaussianBlur((5, 5), (0.1, 2.0), p=0.5), kornia.RandomPlasmaShadow(p=0.5))


def fn(sample, rng):
    """One sample, a tensor [C, H, W]. kornia draws by torch's generator, which is seeded for each sample."""
    return {"image": augment(sample["image"][None])[0]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of class folders; with --nodes, its name there")
    parser.add_argument("--nodes", help="host:port of the nodes that make the images, with commas")
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()

    ops = v2.Compose([v2.RandomResizedCrop(224), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    with feedwater.Loader(
        args.data, ops, python=fn, batch_size=args.batch_size, shuffle=True, nodes=args.nodes
    ) as train:
        for _epoch in range(2):
            began, seen = time.perf_counter(), 0
            for images, _ in train:
                seen += len(images)
            print(f"{seen / (time.perf_counter() - began):,.0f} images/s, {tuple(images.shape)} {images.dtype}")
        index = int(train.last.indices[0])
        again = train.replay(index).result["image"]
        print(train.explain())
        print("replay gives the same:", np.array_equal(again, images[0].numpy()))
