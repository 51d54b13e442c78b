"""feedwater.Loader, with this machine's pipeline, or with nodes on this machine; without an index of pictures."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import feedwater
import torch
from feedwater._agent import binary
from torchvision.transforms import v2

from peer import BATCH, MEAN, SIZE, STD, Base, Settings


class Peer(Base):
    """The variants are local and nodes."""

    packages = ("feedwater", "torch", "torchvision")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        os.environ["FEEDWATER_INDEX"] = "off"
        self._nodes: list[subprocess.Popen[str]] = []
        self._addresses: list[str] = []
        self._loader: Any = None

    def start(self) -> None:
        """Starts nodes."""
        for _ in range(self.settings.services if self.settings.variant == "nodes" else 0):
            command = [binary.find_program(), "serve", "--data", f"bench={self.settings.folder}"]
            command += ["--listen", "127.0.0.1:0", "--index", "off"]
            node = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            self._nodes.append(node)
            assert node.stderr is not None
            line = next(line for line in node.stderr if "msg=listening" in line)
            self._addresses.append(line.split("addr=", 1)[1].split()[0])
            threading.Thread(target=node.stderr.read, daemon=True).start()  # a full pipe would halt the node

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Batches of the Loader."""
        settings = self.settings
        transform = v2.Compose(
            [
                v2.RandomResizedCrop(SIZE),
                v2.RandomHorizontalFlip(),
                v2.ToImage(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        )
        source, nodes = ("bench", ",".join(self._addresses)) if self._nodes else (settings.folder, None)
        options: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "nodes": nodes, "fields": ("image", "index")}
        self._loader = feedwater.Loader(source, transform, **options)
        if settings.state is not None:
            self._loader.load_state_dict(settings.state)
        for _ in range(settings.epochs):
            yield from self._loader

    def state(self) -> Any:
        """The Loader's."""
        return self._loader.state_dict()

    def stop(self) -> None:
        """Ends Loader and nodes."""
        if self._loader is not None:
            self._loader.close()
        for node in self._nodes:
            node.send_signal(signal.SIGTERM)
            node.wait(30)
