"""One rank of a training job that tells what it gets. The fault matrix starts it with its settings as JSON.

It trains until its standard input ends: takes a batch, says on a line of JSON what was in it, "computes" for the rest
of the period. Then it waits until what it has asked for is there, and says how much that is.
"""

from __future__ import annotations

import json
import select
import sys
import time
from hashlib import blake2b
from typing import Any

import feedwater
from feedwater import transforms
from feedwater._agent.process import agent


def say(**what: Any) -> None:
    """A line for the matrix."""
    print(json.dumps(what), flush=True)


def told_to_end() -> bool:
    """Nothing is ever written to the standard input; it only ends."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def without_core() -> float:
    """For how long this thread could have run, and had no core: on a busy machine that is no wait for data."""
    with open("/proc/thread-self/schedstat") as stat:
        return int(stat.read().split()[1]) / 1e9


def samples(loader: feedwater.Loader[Any], images: Any, labels: Any) -> list[tuple[int, str]]:
    """Index and digest of each sample."""
    return [
        (int(index), blake2b(image.tobytes() + bytes([int(label) & 255]), digest_size=8).hexdigest())
        for index, image, label in zip(loader.last.indices, images, labels, strict=True)
    ]


def wanted(loader: feedwater.Loader[Any], there: bool) -> int:
    """Samples that were asked for and not taken: those that are there, or those that are not."""
    last = loader.last.epoch, loader.last.position  # the batch that was taken stays in the books until the next is
    wants = [w for w in loader._engine.feed._wants.values() if (w.step.epoch, w.step.position) != last]
    return sum(want.step.size for want in wants if (want.answer is not None) == there)


def ahead(loader: feedwater.Loader[Any]) -> int:
    """Samples that were made and not taken, once all that was asked for is there."""
    feed = loader._engine.feed
    while wanted(loader, there=False):
        feed.session.ensure_link().receive()
        feed._handle_packets(feed.session.ensure_link())
    return wanted(loader, there=True)


def train(settings: dict[str, Any]) -> None:
    """Epoch after epoch."""
    loader = feedwater.Loader(
        settings["source"],
        [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip()],
        batch_size=settings["batch"],
        shuffle=True,
        seed=17,
        rank=settings["rank"],
        num_replicas=settings["ranks"],
        nodes=settings["nodes"] or None,
        token_file=settings["token"] or None,
    )
    if settings["state"]:
        loader.load_state_dict(settings["state"])
    while True:
        batches = iter(loader)
        while True:
            lacked, asked = without_core(), time.perf_counter()
            batch = next(batches, None)
            if batch is None:
                break
            came = time.perf_counter()
            say(
                wait=max(0.0, came - asked - (without_core() - lacked)),
                epoch=loader.last.epoch,
                position=loader.last.position,
                samples=samples(loader, *batch),
                state=loader.state_dict(),
                agent=agent.pid,
                ready=wanted(loader, there=True),
                asked=wanted(loader, there=False),
            )
            del batch
            time.sleep(max(0.0, came + settings["period"] - time.perf_counter()))
            if told_to_end():
                say(ahead=ahead(loader))
                return


if __name__ == "__main__":
    train(json.loads(sys.argv[1]))
