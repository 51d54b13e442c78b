"""Functions for python=, where the processes of tests find them."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def drawn(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Numbers of every generator that a program may draw from, and who drew them."""
    torch = sys.modules.get("torch")
    numbers = [rng.random(), random.random(), np.random.random(), float(torch.rand(())) if torch else 0.0]
    sample["image"] += np.uint8(1) if isinstance(sample["image"], np.ndarray) else 0
    return {**sample, "numbers": np.array(numbers), "process": os.getpid(), "first": float(sample["image"].ravel()[0])}


class Trip:
    """Does something to single samples, the first few times; files in a folder remember."""

    def __init__(self, folder: Path, times: int = 1, **indices: int) -> None:
        self.folder, self.times = folder, times
        self.what = {index: what for what, index in indices.items()}

    def __call__(self, sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        what = self.what.get(sample["index"])
        if what is not None and len(list(self.folder.glob(f"{what}*"))) < self.times:
            (self.folder / f"{what}{time.monotonic_ns()}").touch()
            getattr(self, what)(sample)
        return drawn(sample, rng)

    def fail(self, sample: dict[str, Any]) -> None:
        """Raises from a line of its own."""
        raise ZeroDivisionError(f"no such number as {sample['index']}")

    def die(self, sample: dict[str, Any]) -> None:
        """Ends the process as a crash in C does."""
        os.kill(os.getpid(), signal.SIGKILL)

    def leave(self, sample: dict[str, Any]) -> None:
        """As a command line's code does, of which a library was made."""
        sys.exit("no such file")

    def interrupt(self, sample: dict[str, Any]) -> None:
        """An exception that no `except Exception` catches."""
        raise KeyboardInterrupt

    def exit_at_once(self, sample: dict[str, Any]) -> None:
        """Ends the process without a word."""
        os._exit(5)

    def die_in_real_time(self, sample: dict[str, Any]) -> None:
        """Ends the process by a signal that has no name."""
        os.kill(os.getpid(), signal.SIGRTMIN + 1)

    def hang(self, sample: dict[str, Any]) -> None:
        """Never returns, and hears no SIGTERM."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        while True:
            signal.pause()

    def other_shape(self, sample: dict[str, Any]) -> None:
        """The result is not as those before."""
        sample["image"] = sample["image"][1:]

    def nothing(self, sample: dict[str, Any]) -> None:
        """The result cannot be stacked."""
        sample["label"] = "cat"


def no_dict(sample: dict[str, Any], rng: np.random.Generator) -> Any:
    """What is easily forgotten."""
    return sample["image"]


def cut(sample: dict[str, Any], rng: np.random.Generator, side: int) -> dict[str, Any]:
    """A corner of the picture."""
    return drawn({**sample, "image": sample["image"][:side, :side]}, rng)


def brighter(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A tensor of another type."""
    return {"image": (sample["image"] * 2).bfloat16()}


class Returning:
    """Fields beside the sample's own."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def __call__(self, sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {**sample, **self.fields}


def masked(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A mask of the program's own, and the index as another type."""
    return {**sample, "mask": sample["image"][..., 0] > 127, "index": np.int32(sample["index"])}


def has_wave(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Whether the process has a module that the program's script alone imports."""
    return {**sample, "wave": int("wave" in sys.modules)}


def see_masks(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Pictures, masks and what they were given as, with the masks turned around."""
    kinds = [type(one).__name__ for one in _listed(sample["image"]) + _listed(sample["mask"])]
    masks = [one[..., ::-1] if isinstance(one, np.ndarray) else one.flip(-1) for one in _listed(sample["mask"])]
    mask = masks if isinstance(sample["mask"], list) else masks[0]
    return {**sample, "mask": mask, "tensors": kinds.count("Tensor"), "number": rng.random()}


def one_of_two(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The first view alone, of some samples."""
    return {**sample, "image": sample["image"][: 1 + (sample["index"] < 3)]}


def joined(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """One picture of two views."""
    return {"image": np.concatenate(sample["image"], 0)}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
