"""What training loops get of a folder of pictures: a line for each loop, its unit and name, and a digest of its batches.

Called with a folder; the package is the one that PYTHONPATH leads to, and FEEDWATER_BINARY its program.
"""

import hashlib
import itertools
import sys

import numpy as np
import torch
from torchvision.transforms import v2

import feedwater


def put(h, value):
    if isinstance(value, dict):
        for key in sorted(value):
            h.update(key.encode())
            put(h, value[key])
    elif isinstance(value, (list, tuple)):
        h.update(f"{type(value).__name__}{len(value)}".encode())
        for part in value:
            put(h, part)
    elif isinstance(value, torch.Tensor):
        h.update(f"{value.dtype} {tuple(value.shape)} {value.stride()}".encode())
        value = value.contiguous()
        h.update((value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy().tobytes())
    elif isinstance(value, np.ndarray):
        h.update(f"{value.dtype} {value.shape} {value.tobytes() if value.dtype != object else value.tolist()}".encode())
    else:
        h.update(repr(value).encode())


def loop(folder, transform, epochs=2, cut=None, **options):
    """The digest of some epochs; with cut, of a run that goes on from a state after so many batches."""
    h = hashlib.sha256()
    options = {"batch_size": 5, "seed": 3, "local_workers": 1, "on_error": "skip", "max_errors": 1, **options}
    with feedwater.Loader(folder, transform, **options) as loader:
        for epoch in range(epochs):
            for i, batch in enumerate(loader):
                put(h, batch)
                if cut is not None and (epoch, i) == cut:
                    break
            state = loader.state_dict()
            if cut is not None and cut[0] == epoch:
                break
    if cut is not None:
        with feedwater.Loader(folder, transform, **options) as loader:
            loader.load_state_dict(state)
            for batch in loader:
                put(h, batch)
    return h.hexdigest()[:24]


def ends():
    """What transforms may end with."""
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    to_float = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    yield "none", []
    yield "image", [v2.ToImage()]
    yield "float", to_float
    yield "tensor", [v2.ToTensor()]
    yield "unscaled", [v2.ToImage(), v2.ToDtype(torch.float32)]
    for dtype in torch.float32, torch.float16, torch.bfloat16:
        yield f"normal {dtype}", [*to_float, v2.Normalize(mean, std), v2.ToDtype(dtype)]
        for value in 0, (0.1, 0.2, 0.3), "random":
            erase = v2.RandomErasing(p=0.8, value=value)
            yield f"erased {dtype} {value}", [*to_float, v2.Normalize(mean, std), v2.ToDtype(dtype), erase]


def mixed(batch, rng):
    image, label = batch
    return image.float() + float(rng.random()) + torch.rand(1), label + int(torch.randint(5, (1,)))


def last_hops():
    crop = [v2.RandomResizedCrop(24), v2.RandomHorizontalFlip()]
    for name, end in ends():
        for layout in None, torch.channels_last, torch.contiguous_format:
            yield f"{name} {layout}", (v2.Compose(crop + end),), {"memory_format": layout} if layout else {}
    for dtype in "uint8", "float32", "float16", "bfloat16":
        yield f"dtype {dtype}", (v2.Compose([*crop, v2.ToImage()]),), {"dtype": getattr(torch, dtype)}
    yield "ragged", (None,), {}
    yield "ragged floats", (v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),), {}
    yield "corners", (v2.Compose([v2.Resize((40, 40)), v2.FiveCrop(20)]),), {}
    yield "views", (feedwater.Views([v2.Compose(crop), v2.Compose([v2.CenterCrop(16), v2.ToImage()])]),), {}
    yield "fields", (v2.Compose(crop),), {"fields": ("image", "label", "index", "key", "valid"), "tail": "valid"}
    yield "batch", (v2.Compose([*crop, v2.ToImage()]),), {"batch_transform": mixed}
    floats = v2.Compose([*crop, v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    yield "mixup", (floats,), {"batch_transform": v2.MixUp(num_classes=3)}


def orders():
    crop = (v2.CenterCrop(8),)
    fields = {"fields": ("image", "index", "valid")}
    for tail, world, batch in itertools.product(("short", "valid", "drop"), (1, 3), (4, 7)):
        for rank in range(world):
            options = {"tail": tail, "batch_size": batch, "rank": rank, "num_replicas": world, "on_error": "substitute"}
            yield f"{tail} {rank}/{world} {batch}", crop, {**fields, **options}
    yield "steps", crop, {**fields, "steps_per_epoch": 5}
    yield "unshuffled", crop, {**fields, "shuffle": False}
    yield "sampler", crop, {**fields, "sampler": [5, 1, 1, 7, 0, 11, 3], "tail": "valid"}
    yield "batch sampler", crop, {**fields, "batch_sampler": [[5, 1], [1, 7, 0], [11]], "batch_size": None}
    for cut in (0, 1), (1, 0), (1, 2):
        yield f"resumed at {cut}", crop, {**fields, "cut": cut}


def main():
    folder = sys.argv[1]
    for unit, loops in (("lasthop", last_hops()), ("order", orders())):
        for name, arguments, options in loops:
            try:
                said = loop(folder, *arguments, **options)
            except (TypeError, ValueError, feedwater.Error) as error:
                said = type(error).__name__
            print(f"{unit} {name}\t{said}", flush=True)


main()
