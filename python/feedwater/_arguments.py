"""Single arguments: checked, brought into one form, or refused with the reason."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ._order import Tail
from .errors import NotYetError

__all__ = [
    "check_count",
    "job_of",
    "max_errors_of",
    "memory_of",
    "nodes_of",
    "one_of",
    "refuse",
    "seconds_of",
    "seed_of",
    "tail_of",
    "workers_of",
]

_HERE = "batches are made by another program, which"
MEANINGLESS = {
    "num_workers": f"{_HERE} uses all cores it may; nodes= adds machines, local_workers= limits this one",
    "pin_memory": "batches are already in memory of their own; copy to the device with .to(device, non_blocking=True)",
    "pin_memory_device": "see pin_memory: there is nothing to pin",
    "prefetch_factor": f"{_HERE} decides how far to work ahead, within memory=",
    "persistent_workers": f"{_HERE} lives as long as the Loader",
    "collate_fn": "samples are never single here; batch_transform=fn(batch, rng) changes whole batches",
    "worker_init_fn": "no worker runs your Python; random numbers depend on seed=, epoch and sample alone",
    "generator": "random numbers depend on seed=, epoch and sample alone; pass seed=",
    "multiprocessing_context": "there are no worker processes of Python",
    "in_order": "batches always come in order, which costs nothing here",
}
NOT_YET = {
    "weights": "a torch WeightedRandomSampler as sampler= does it in this process",
    "python": "batch_transform=fn(batch, rng) runs your code on whole batches",
    "fallback": "without nodes= the Loader works on this machine",
}


def refuse(given: Mapping[str, Any], unknown: Mapping[str, Any]) -> None:
    """Raises for arguments that DataLoader has and we do not, that nobody has, and that are not there yet."""
    for name in unknown:
        if name in MEANINGLESS:
            raise TypeError(f"Loader has no argument {name}: {MEANINGLESS[name]}")
        raise TypeError(f"Loader got an unexpected argument {name!r}")
    for name, instead in NOT_YET.items():
        if given[name] is not None:
            raise NotYetError(f"{name}= is not there yet: {instead}")
    device = given["device"]
    if device is not None and str(device) != "cpu":
        raise NotYetError(
            f"device={str(device)!r} is not there yet: leave it out and call .to(device, non_blocking=True)"
        )


def check_count(name: str, value: Any) -> None:
    """Raises unless value is a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r}: needs a whole number")
    if value <= 0:
        raise ValueError(f"{name}={value}: needs to be 1 or more")


def nodes_of(nodes: str | Sequence[str] | None) -> tuple[str, ...]:
    """Addresses, given with commas or as a list."""
    if nodes is None:
        return ()
    names = nodes.split(",") if isinstance(nodes, str) else list(nodes)
    cleaned = tuple(name.strip() for name in names if name.strip())
    if not cleaned:
        raise ValueError(f'nodes={nodes!r} names no node: pass "host:port", or leave it out to work on this machine')
    return cleaned


def tail_of(tail: str, drop_last: bool) -> Tail:
    """The tail; drop_last is another word for one of them."""
    checked: Any = one_of("tail", tail, ("short", "valid", "drop"))
    if drop_last and checked == "valid":
        raise ValueError('drop_last=True and tail="valid" contradict each other')
    return "drop" if drop_last else checked


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """A word out of a few."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: must be one of {', '.join(map(repr, allowed))}")
    return str(value)


def seed_of(seed: Any) -> int:
    """A seed of 64 bits."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 64:
        raise ValueError(f"seed={seed!r}: needs a whole number from 0 to 2**64 - 1")
    return seed


def memory_of(memory: Any) -> int | None:
    """Bytes; None for what the machine has room for."""
    if memory == "auto":
        return None
    check_count("memory", memory)
    return int(memory)


def max_errors_of(value: Any) -> float:
    """A count, or a share below 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ValueError(f"max_errors={value!r}: needs a count, or a share of the epoch below 1")
    if isinstance(value, float) and value >= 1 and not math.isinf(value) and not value.is_integer():
        raise ValueError(f"max_errors={value!r}: a share is below 1, a count is whole")
    return value


def seconds_of(name: str, value: Any) -> float:
    """Seconds; 0 is for ever."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or math.isnan(value):
        raise ValueError(f"{name}={value!r}: needs seconds, 0 or more (0: wait for ever)")
    return float(value)


def workers_of(workers: Any, nodes: tuple[str, ...]) -> int:
    """Cores; 0 for all that there are."""
    if workers == "auto":
        return 0
    check_count("local_workers", workers)
    if nodes:
        raise NotYetError("local_workers= together with nodes= is not there yet: leave one of them out")
    return int(workers)


def job_of(job: Any) -> str | None:
    """One name for all ranks of a job: given, else what the launcher calls it."""
    if job is not None:
        return str(job)
    return next((os.environ[name] for name in ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID") if os.environ.get(name)), None)
