"""timm: its create_loader on a Loader, by one import.

    from feedwater.timm import create_loader        # in place of: from timm.data import create_loader

It needs timm. Transforms are timm's own, made by its create_transform; docs/from/timm.md says which can be run.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from ._common.homes import home_of
from ._dataset.table import Table
from ._loader import Loader
from .errors import UnsupportedTransformError

__all__ = ["TimmLoader", "create_loader"]

REFUSED: Mapping[str, tuple[Any, str]] = {
    "num_aug_splits": (0, "parts of a batch with other transforms are not there: make a Loader for each"),
    "re_split": (False, "a batch without erasing in its first part is not there"),
    "collate_fn": (None, "batches are not collated here; for mixup pass train.py --no-prefetcher, or call timm's Mixup "
                         "in the loop: x, y = mixup_fn(x, y)"),
    "tf_preprocessing": (False, "TensorFlow's preprocessing is not there"),
    "input_size_choices": (None, "sizes that change from batch to batch are not there"),
}  # fmt: skip
"""Arguments of timm's create_loader that only these values can be given, and why."""
OF_TRANSFORM = (
    "is_training", "no_aug", "train_crop_mode", "scale", "ratio", "hflip", "vflip", "color_jitter", "color_jitter_prob",
    "grayscale_prob", "gaussian_blur_prob", "auto_augment", "interpolation", "mean", "std", "crop_pct", "crop_mode",
    "crop_border_pixels", "re_prob", "re_mode", "re_count", "tf_preprocessing", "use_prefetcher",
)  # fmt: skip


class TimmLoader:
    """What timm's train.py and validate.py touch of a loader, on a Loader. Batches are on the device."""

    def __init__(self, loader: Loader[Any], dataset: Any, device: Any) -> None:
        self.loader, self.dataset = loader, dataset
        self._device = device
        """Where batches are moved to; None: they stay where the Loader brings them."""
        self.mixup_enabled = False
        """What train.py switches off for the last epochs; nothing mixes here."""

    def __iter__(self) -> Iterator[Any]:
        if self._device is None:
            yield from self.loader
            return
        for image, label in self.loader:
            yield image.to(self._device, non_blocking=True), label.to(self._device, non_blocking=True)

    def __len__(self) -> int:
        return len(self.loader)

    @property
    def sampler(self) -> Any:
        """It has set_epoch, which train.py calls."""
        return self.loader.sampler

    @property
    def batch_size(self) -> int | None:
        """Of one rank."""
        return self.loader.batch_size

    def state_dict(self) -> dict[str, Any]:
        """As Loader.state_dict."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As Loader.load_state_dict."""
        self.loader.load_state_dict(state)


def create_loader(
    dataset: Any, input_size: Any, batch_size: int, *args: Any, seed: int = 0, options: Any = None, **given: Any
) -> TimmLoader:
    """timm.data.create_loader with the same arguments, for a dataset of timm's create_dataset that reads a folder.

    seed decides order and draws, the same on all ranks; options is a dict of further arguments of Loader, as nodes=.
    What is about worker processes has no meaning. On several ranks the last step of an evaluation is shared evenly.
    Raises TypeError, ValueError or UnsupportedTransformError, by name, for what cannot be run.
    """
    import timm.data
    import torch

    bound = inspect.signature(timm.data.create_loader).bind(dataset, input_size, batch_size, *args, **given)
    bound.apply_defaults()
    wanted = bound.arguments
    for name, (value, why) in REFUSED.items():
        if name in wanted and wanted[name] != value:
            raise UnsupportedTransformError(f"create_loader({name}={wanted[name]!r:.60}): {why}")
    if isinstance(input_size, (tuple, list)) and len(input_size) == 3 and input_size[0] != 3:
        raise UnsupportedTransformError(f"create_loader(input_size={input_size!r}): pictures have three channels")
    source = _source_of(dataset)
    transform = timm.data.create_transform(input_size, **{name: wanted[name] for name in OF_TRANSFORM})
    dataset.transform = transform
    placed = {**_place_of(wanted), **(options or {})}
    loader: Loader[Any] = Loader(
        source,
        [transform, *_prefetch_steps(wanted)] if wanted["use_prefetcher"] else transform,
        batch_size=batch_size,
        seed=seed,
        drop_last=bool(wanted["is_training"]),
        **_order_of(dataset, wanted),
        **placed,
    )
    moves = wanted["use_prefetcher"] and placed.get("device") is None
    return TimmLoader(loader, dataset, torch.device(wanted["device"]) if moves else None)


def _place_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Loader for where batches lie: on the GPU where PrefetchLoader would move them to one."""
    import torch

    if wanted["use_prefetcher"] and torch.device(wanted["device"]).type == "cuda":
        return {"device": wanted["device"]}
    return {"pin_memory": bool(wanted["pin_memory"])}


def _order_of(dataset: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Loader for ranks and order. Without distributed each process has all samples."""
    if not wanted["distributed"]:
        return {"shuffle": bool(wanted["is_training"]), "rank": 0, "num_replicas": 1}
    if wanted["is_training"] and wanted["num_aug_repeats"]:
        from timm.data.distributed_sampler import RepeatAugSampler

        return {"sampler": RepeatAugSampler(dataset, num_repeats=wanted["num_aug_repeats"])}
    return {"shuffle": bool(wanted["is_training"])}


def _prefetch_steps(wanted: Mapping[str, Any]) -> list[Any]:
    """PrefetchLoader's arithmetic: 8-bit values less 255 means, divided by 255 deviations, in float32; then erasing."""
    import torch
    from timm.data.random_erasing import RandomErasing
    from torchvision.transforms import v2

    if wanted["fp16"] or wanted["img_dtype"] not in (None, torch.float32):
        raise UnsupportedTransformError(
            "create_loader(img_dtype=…): values are normalised in float32; convert batches in the loop, or use autocast"
        )
    mean, std = ([value * 255 for value in wanted[name]] for name in ("mean", "std"))
    steps: list[Any] = [v2.ToDtype(torch.float32), v2.Normalize(mean, std)]
    if wanted["re_prob"] > 0 and wanted["is_training"] and not wanted["no_aug"]:
        erase = RandomErasing(wanted["re_prob"], mode=wanted["re_mode"], max_count=wanted["re_count"], device="cpu")
        steps.append(erase)
    return steps


def _source_of(dataset: Any) -> Any:
    """The files and labels of a data set: those of timm's reader, in its order, or a data set that Loader takes."""
    kind = home_of(dataset)
    if not kind.startswith("timm."):
        return dataset
    reader: Any = getattr(dataset, "reader", None)
    if kind != "timm.data.dataset.ImageDataset" or type(reader).__name__ != "ReaderImageFolder":
        raise TypeError(
            f"create_loader: {kind} with {type(reader).__name__}: a folder of class folders is read, as "
            "create_dataset('', root=…) gives it; give others to feedwater.Loader, docs/sources.md"
        )
    for name, plain in (("target_transform", None), ("additional_features", None), ("load_bytes", False)):
        if getattr(dataset, name, plain) != plain:
            raise TypeError(f"create_loader: the data set has {name}, which does not travel: leave it out")
    if dataset.input_img_mode != "RGB":
        raise TypeError(f"create_loader: input_img_mode={dataset.input_img_mode!r}: pictures are RGB here")
    names = sorted(reader.class_to_idx, key=reader.class_to_idx.get)
    plain = [reader.class_to_idx[name] for name in names] == list(range(len(names)))
    paths, labels = zip(*reader.samples)
    return Table(list(paths), list(labels), root=reader.root, classes=names if plain else None)
