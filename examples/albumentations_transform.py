"""Augments with albumentations behind the transforms that nodes do.

python albumentations_transform.py --data photos                        on this machine
python albumentations_transform.py --data photos --nodes host:7070      with images decoded and cropped by another one
"""

import argparse
import time

import albumentations
import feedwater
import numpy as np
from torchvision.transforms import v2

augment = albumentations.Compose(
    [albumentations.CLAHE(p=0.5), albumentations.GridDistortion(p=0.5), albumentations.CoarseDropout(p=0.5)]
)


def fn(sample, rng):
    """One sample. albumentations has generators of its own, which are told what to draw."""
    augment.set_random_seed(int(rng.integers(2**32)))
    return augment(image=sample["image"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of class folders; with --nodes, its name there")
    parser.add_argument("--nodes", help="host:port of the nodes that make the images, with commas")
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()

    ops = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip()])
    with feedwater.Loader(
        args.data, ops, python=fn, batch_size=args.batch_size, shuffle=True, nodes=args.nodes
    ) as train:
        for _epoch in range(2):
            began, seen = time.perf_counter(), 0
            for images, _ in train:  # uint8, [B, H, W, C], as albumentations makes them
                seen += len(images)
            print(f"{seen / (time.perf_counter() - began):,.0f} images/s, {tuple(images.shape)} {images.dtype}")
        index = int(train.last.indices[0])
        again = train.replay(index).result["image"]
        print(train.explain())
        print("replay gives the same:", np.array_equal(again, np.asarray(images[0])))
