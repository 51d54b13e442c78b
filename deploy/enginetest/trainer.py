"""A training job that tells what it gets: a line of JSON for each step, with the digest so far; at the end that of all.

trainer.py SOURCE [--nodes NODES] [--steps N] [--period SECONDS] [--batch N] [--picture N] [--start-timeout SECONDS]
    [--each] [--state JSON] [--noise SHARE]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from hashlib import blake2b
from typing import Any

import feedwater
from feedwater import transforms

SEED = 17
NOISE_FOR = 15.0
"""Seconds for which a step takes so much more or less."""


def say(**what: Any) -> None:
    """One line for who watches."""
    print(json.dumps(what), flush=True)


def without_core() -> float:
    """For how long this thread could have run, and had no core: on a busy machine that is no wait for data."""
    with open("/proc/thread-self/schedstat") as stat:
        return int(stat.read().split()[1]) / 1e9


def noise(share: float, seconds: float) -> float:
    """What a step's time is multiplied by after so many seconds: another number every 15 s, the same in each run."""
    seed = f"{SEED}.{int(seconds / NOISE_FOR)}"
    return 1 + share * random.Random(seed).uniform(-1, 1)  # noqa: S311 - nobody is to be surprised


def train(options: argparse.Namespace) -> None:
    """Takes so many batches, of as many epochs as that needs, in order."""
    loader = feedwater.Loader(
        options.source,
        [transforms.RandomResizedCrop(options.picture), transforms.RandomHorizontalFlip()],
        batch_size=options.batch,
        shuffle=True,
        seed=SEED,
        tail="drop",
        rank=0,
        num_replicas=1,
        fields=("image", "label", "index"),
        nodes=options.nodes,
        insecure=bool(options.nodes) and "FEEDWATER_TLS_CA" not in os.environ,
        start_timeout=options.start_timeout,
    )
    if options.state:
        loader.load_state_dict(json.loads(options.state))
    say(begins=time.time())
    digest, step, due, began = blake2b(digest_size=16), 0, 0.0, time.perf_counter()
    while step < options.steps:
        batches = iter(loader)
        while step < options.steps:
            lacked, asked = without_core(), time.perf_counter()
            try:
                batch = next(batches, None)
            except feedwater.errors.Error:
                say(state=json.dumps(loader.state_dict()))
                raise
            if batch is None:
                break
            came = time.perf_counter()
            wait = max(0.0, came - asked - (without_core() - lacked))
            one = blake2b(digest_size=8) if options.each else None
            for array in batch:
                content = memoryview(array.numpy() if hasattr(array, "numpy") else array).cast("B")
                digest.update(content)
                if one:
                    one.update(content)
            del batch, array, content
            step += 1
            each = {"batch": one.hexdigest()} if one else {}
            say(step=step, wait=round(wait, 4), at=time.time(), so_far=digest.hexdigest(), **each)
            # A late batch is not made up for: the step takes its time, as a GPU's would.
            due = came + options.period * noise(options.noise, came - began)
            time.sleep(max(0.0, due - time.perf_counter()))
    say(digest=digest.hexdigest())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--nodes", default=os.environ.get("TRAINER_NODES") or None)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--period", type=float, default=0.0)
    parser.add_argument("--noise", type=float, default=0.0, help="a step takes so much more or less, as 0.15")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--picture", type=int, default=64)
    parser.add_argument("--start-timeout", type=float, default=120.0)
    parser.add_argument("--each", action="store_true", help="tell the digest of each batch")
    parser.add_argument("--state", help="go on from there")
    train(parser.parse_args(sys.argv[1:]))


if __name__ == "__main__":
    main()
