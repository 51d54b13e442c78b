"""One run of a peer in its own interpreter, which prints what it was given as JSON lines.

    PYTHON bench/peers/peer.py MODULE <SETTINGS

SETTINGS are those of the class Settings, as JSON. MODULE is a file beside this one with a class Peer. It is started by
bench/peers/main.py, which measures from outside. The lines are: start, with the versions; batch, with the times at
which it was asked for and came, and its samples' ids; state, where one was asked for; end.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

BATCH, SIZE = 64, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Settings:
    """What a run is told."""

    folder: str
    """Class folders of photographs."""
    prepared: str
    """What prepare() made of them; empty for peers that read the folder."""
    samples: int
    variant: str = ""
    workers: int = 1
    epochs: int = 1
    services: int = 1
    """Processes on the other side of a socket, for peers that have such."""
    save_at: int = 0
    """After so many batches the state is printed, and the run ends."""
    state: Any = None
    """What such a run printed; the epoch goes on from it."""
    pace_s: float = 0.0
    """Time that the loop spends on each batch."""
    prepare: bool = False
    """Convert the folder and end."""


class Base:
    """What a peer has to have; its ids are those of the sorted list of all files."""

    packages: tuple[str, ...] = ()
    """Distributions whose versions are told."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def start(self) -> None:
        """Starts what runs before a training script does: services."""

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Float32 images, normalised, and ids, of all epochs."""
        raise NotImplementedError

    def state(self) -> Any:
        """The state after the last batch given, as JSON."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Converts the folder into settings.prepared."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ends what start started."""


def files(folder: str) -> list[Path]:
    """The files whose places in this list are the ids."""
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Versions of distributions."""
    return {package: metadata.version(package) for package in packages}


def take(peer: Base, say: Any) -> None:
    """Takes all batches, as a training loop does, and says when they came and what was in them."""
    settings = peer.settings
    given = iter(peer.batches())
    number = 0
    while True:
        began = time.monotonic()
        try:
            images, ids = next(given)
        except StopIteration:
            return
        assert sorted(images.shape) == sorted((BATCH, 3, SIZE, SIZE)), images.shape
        assert "float32" in str(images.dtype), images.dtype
        float(images[-1, -1, -1, -1])
        number += 1
        say(event="batch", began=began, ended=time.monotonic(), ids=[int(one) for one in ids])
        if number == settings.save_at:
            say(event="state", state=peer.state())
            return
        if settings.pace_s:
            time.sleep(settings.pace_s)


def main() -> None:
    """Runs the peer that the arguments name."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no line of ours

    def say(**line: Any) -> None:
        out.write(json.dumps(line) + "\n")

    settings = Settings(**json.load(sys.stdin))
    peer: Base = importlib.import_module(sys.argv[1]).Peer(settings)
    if settings.prepare:
        peer.prepare()
        say(event="end")
        return
    peer.start()
    try:
        say(event="start", at=time.monotonic(), versions=versions(peer.packages))
        take(peer, say)
        say(event="end")
    finally:
        peer.stop()


if __name__ == "__main__":
    main()
