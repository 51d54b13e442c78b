"""Single arguments: checked, brought into one form, or refused with the reason."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._common.filenames import to_json
from .._common.numbers import to_number, to_whole
from .._order.pull import PLACES, index_of
from .._order.steps import Tail

__all__ = [
    "check_mesh",
    "check_within",
    "count_of",
    "device_of",
    "flag_of",
    "job_of",
    "max_errors_of",
    "memory_of",
    "nodes_of",
    "one_of",
    "optional_count",
    "python_workers_of",
    "rank_of",
    "run_length_of",
    "sampler_of",
    "seconds_of",
    "seed_of",
    "shuffle_of",
    "tail_of",
    "workers_of",
]


def count_of(name: str, value: Any) -> int:
    """A whole number above 0."""
    count = to_whole(value)
    if count is None:
        raise TypeError(f"{name}={value!r}: needs a whole number")
    if count <= 0:
        raise ValueError(f"{name}={count}: needs to be 1 or more")
    return count


def check_within(name: str, value: Any, low: int, high: int) -> int:
    """A whole number from low to high."""
    count = to_whole(value)
    if count is None:
        raise TypeError(f"{name}={value!r}: needs a whole number")
    if not low <= count <= high:
        raise ValueError(f"{name}={count}: needs to be {low} to {high}")
    return count


def optional_count(name: str, value: Any) -> int | None:
    """A whole number above 0, or None."""
    return None if value is None else count_of(name, value)


def rank_of(value: Any) -> int | None:
    """A whole number, or None; its range is that of num_replicas."""
    rank = to_whole(value)
    if rank is None and value is not None:
        raise TypeError(f"rank={value!r}: needs a whole number")
    return rank


SOURCES = ("unix:", "dns:", "dns+srv:", "file:", "k8s:")
"""How nodes begin that are not host:port; the agent checks what follows."""


def nodes_of(nodes: str | Sequence[str] | None) -> tuple[str, ...]:
    """Nodes, given with commas or as a list, as the agent takes them (docs/nodes.md). Paths are absolute."""
    if nodes is None:
        return ()
    if not isinstance(nodes, Sequence) or not all(isinstance(name, str) for name in nodes):
        raise TypeError(f'nodes={nodes!r}: pass "host:port", several with commas or as a list')
    names = nodes.split(",") if isinstance(nodes, str) else list(nodes)
    cleaned = tuple(name.strip() for name in names if name.strip())
    if not cleaned:
        raise ValueError(f'nodes={nodes!r} names no node: pass "host:port", or leave it out to work on this machine')
    for name in cleaned:
        host, _, port = name.rpartition(":")
        if not name.startswith(SOURCES) and not (host and port.isdigit() and "/" not in host):
            raise ValueError(
                f"nodes: {name!r} is no address: write host:port (like cpu-1:7070) or unix:/path for one node; "
                "dns:name:port, dns+srv:name, file:path or k8s:namespace/service:port for all that it stands for"
            )
    return tuple(_make_absolute(name) for name in cleaned)


def _make_absolute(name: str) -> str:
    path = name.removeprefix("file:")
    return name if path in (name, "") else "file:" + to_json(os.path.abspath(os.path.expanduser(path)))


def column_of(name: str, value: Any) -> str | None:
    """The name of a column."""
    if value is not None and (not isinstance(value, str) or not value):
        raise TypeError(f"{name}={value!r:.80}: pass the name of a column")
    return value


LAYOUTS = ("folder", "mds", "tar", "parquet", "csv", "tsv", "jsonl")
"""What layout= may be."""


def layout_of(value: Any, source: Any) -> str | None:
    """How a path is laid out."""
    if value is None:
        return None
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"layout={value!r:.80} is for paths: a {type(source).__name__} says itself what it lists")
    return one_of("layout", value, LAYOUTS)


def label_of(value: Any) -> str | None:
    """Where labels are, as label= says it."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.removeprefix("json:"):
        raise TypeError(
            f'label={value!r:.80}: pass the ending of a member, as "cls", a key in one, as "json:label", or the name '
            "of a column"
        )
    return value


def flag_of(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: needs True or False")
    return value


BLOCKS = "blocks:"
"""How a shuffle of blocks begins; the number of neighbours that stay together follows."""
MOST_SAMPLES = 2**32


def shuffle_of(value: Any) -> bool | str:
    """True, False, or "blocks:N" with N as short as it can be written."""
    if isinstance(value, bool):
        return value
    wanted = f'needs True or False, or "{BLOCKS}64", which keeps 64 neighbours of the list together'
    if not isinstance(value, str):
        raise TypeError(f"shuffle={value!r:.80}: {wanted}")
    digits = value.removeprefix(BLOCKS)
    if not value.startswith(BLOCKS) or not (digits.isascii() and digits.isdigit()):
        raise (ValueError if value.startswith("block") else TypeError)(f"shuffle={value!r:.80}: {wanted}")
    count = int(digits[:20])
    if count == 1:
        raise ValueError(f"shuffle={value!r}: blocks of one sample are what shuffle=True permutes")
    if not 2 <= count <= MOST_SAMPLES:
        raise ValueError(f"shuffle={value!r:.80}: needs 2 to {MOST_SAMPLES} neighbours")
    return f"{BLOCKS}{count}"


def run_length_of(shuffle: bool | str) -> int:
    """How many neighbours stay together where the order is permuted, 1 without blocks; 0: it is not."""
    return int(shuffle.removeprefix(BLOCKS)) if isinstance(shuffle, str) else int(shuffle)


def sampler_of(name: str, sampler: Any) -> Any:
    """Something that gives an epoch's indices, or lists of them, every time it is iterated."""
    if sampler is None:
        return None
    if isinstance(sampler, (str, bytes)) or not (isinstance(sampler, Iterable) or hasattr(sampler, "__getitem__")):
        raise TypeError(f"{name}={sampler!r}: pass a sampler of PyTorch, or a list of indices")
    if isinstance(sampler, Iterator):
        raise TypeError(f"{name}={sampler!r} would be used up after one epoch: pass list(…) of it, or a sampler")
    if str(getattr(sampler, "dtype", "")).endswith("bool"):
        raise TypeError(f"{name} is a mask, True and False: pass its places, {PLACES}")
    if _read_length(sampler) == 0:
        raise ValueError(f"{name}={sampler!r} chooses no sample")
    if name == "sampler" and isinstance(sampler, (list, tuple)):
        for item in sampler:
            index_of(item, sampler)
    return sampler


def _read_length(sampler: Any) -> int | None:
    """What it says of its length; None where it says nothing, or does not know it yet."""
    try:
        return len(sampler)
    except Exception:
        return None


def check_mesh(mesh: Any) -> None:
    """Raises TypeError unless mesh has what is used of a DeviceMesh."""
    if mesh is not None and not all(hasattr(mesh, name) for name in ("mesh_dim_names", "get_local_rank", "size")):
        raise TypeError(f"mesh={mesh!r}: pass a torch DeviceMesh, or rank and num_replicas")


def tail_of(tail: str, drop_last: Any) -> Tail:
    """The tail; drop_last is another word for one of them."""
    drop_last = flag_of("drop_last", drop_last)
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
    number = to_whole(seed)
    if number is None or not 0 <= number < 1 << 64:
        raise ValueError(f"seed={seed!r}: needs a whole number from 0 to 2**64 - 1")
    return number


def memory_of(memory: Any) -> int | None:
    """Bytes; None for what the machine has room for."""
    if memory == "auto":
        return None
    return count_of("memory", memory)


def max_errors_of(value: Any) -> float:
    """A count, or a share below 1. 1.0 is refused: it may be meant as either."""
    most = to_number(value)
    if most is None or not most >= 0:  # nor nan
        raise ValueError(f"max_errors={value!r}: needs a count, or a share of the epoch below 1")
    if isinstance(most, float) and most == 1:
        raise ValueError(
            f"max_errors={value!r} may be one sample or all of them: pass 1, an int, for one, or math.inf for all"
        )
    if isinstance(most, float) and most >= 1 and not math.isinf(most) and not most.is_integer():
        raise ValueError(f"max_errors={value!r}: a share is below 1, a count is whole")
    return most


def seconds_of(name: str, value: Any) -> float:
    """Seconds; 0 is for ever, and so is infinity."""
    seconds = to_number(value)
    if seconds is None or not seconds >= 0:  # nor nan
        raise ValueError(f"{name}={value!r}: needs seconds, 0 or more (0: wait for ever)")
    return 0.0 if math.isinf(seconds) else float(seconds)


def workers_of(workers: Any, nodes: tuple[str, ...], local: str | None) -> int:
    """Cores; 0 for all that there are, with nodes for none. local is the folder here that nodes have too."""
    if workers == "auto":
        return 0
    cores = count_of("local_workers", workers)
    if nodes and local is None:
        raise ValueError(
            f"local_workers={workers}: to work beside nodes this machine needs the data too: pass its folder here, "
            "which nodes find by its fingerprint, in place of the name of a root"
        )
    return cores


def device_of(device: Any) -> str | None:
    """A GPU as torch names it, "cuda" or "cuda:1", ROCm's too; None for the CPU. A DeviceMesh stands for its kind."""
    kind = getattr(device, "device_type", None)
    name = f"cuda:{device}" if to_whole(device) is not None else str(kind if isinstance(kind, str) else device)
    if device is None or re.fullmatch(r"cpu(:\d+)?", name):  # "cpu:1" is what some scripts make of LOCAL_RANK
        return None
    if re.fullmatch(r"cuda(:\d+)?", name):
        return name
    shown = device if isinstance(device, (str, int, float)) else name
    raise ValueError(
        f"device={shown!r}: batches come to GPUs of CUDA and ROCm, by the name "
        '"cuda", "cuda:0", "cuda:1" and so on, or to the CPU\'s memory: for another device leave it out, and move each '
        "batch in the loop, as by batch.to(device) or jax.device_put"
    )


def python_workers_of(workers: Any, python: Any) -> int:
    """Processes for python=; 0 for as many as there are cores."""
    if workers == "auto":
        return 0
    processes = count_of("python_workers", workers)
    if python is None:
        raise ValueError("python_workers= counts the processes of python=, which is not given")
    if processes > 512:
        raise ValueError(f"python_workers={processes}: at most 512")
    return processes


def job_of(job: Any) -> str | None:
    """One name for all ranks of a job: given, else what the launcher calls it."""
    if job is not None and not isinstance(job, str):
        raise TypeError(f'job={job!r}: needs a name, like job="{job}"')
    if job is not None:
        return str(job)
    run, allocation = os.environ.get("TORCHELASTIC_RUN_ID"), os.environ.get("SLURM_JOB_ID")
    if run or not allocation:
        return run or None
    step = os.environ.get("SLURM_STEP_ID")  # each srun has one
    return f"{allocation}.{step}" if step else allocation
