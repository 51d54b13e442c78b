"""Arguments that Loader does not take: what DataLoader means by them, what others call them, what is not there yet."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import NotYetError

__all__ = ["refuse_unknown"]

_HERE = "batches are made by another program, which"
MEANINGLESS = {
    "num_workers": f"{_HERE} uses all cores it may; nodes= adds machines, local_workers= limits this one",
    "pin_memory_device": "pin_memory=True serves every GPU of the process",
    "prefetch_factor": f"{_HERE} decides how far to work ahead, within memory=",
    "persistent_workers": f"{_HERE} lives as long as the Loader",
    "collate_fn": "batch_transform=fn(batch, rng) changes whole batches, python=fn(sample, rng) single samples",
    "worker_init_fn": "only python= runs your Python elsewhere; random numbers depend on seed=, epoch and sample alone",
    "generator": "random numbers depend on seed=, epoch and sample alone; pass seed=",
    "multiprocessing_context": "there are no worker processes of Python, but those of python=, which are spawned",
    "in_order": "batches always come in order, which costs nothing here",
}
"""DataLoader's arguments that have no meaning here, and why."""
HARMLESS: dict[str, Any] = {
    "num_workers": 0,
    "pin_memory_device": "",
    "prefetch_factor": None,
    "persistent_workers": False,
    "collate_fn": None,
    "worker_init_fn": None,
    "generator": None,
    "multiprocessing_context": None,
    "in_order": True,
}
"""Their values that say what happens anyway, which are taken."""
MEANT = {
    "source": ("dataset", "data", "data_dir", "root", "path", "folder"),
    "transform": ("transforms", "augmentations"),
    "batch_size": ("bs", "batch", "batchsize"),
    "num_replicas": ("world_size", "world", "num_shards", "num_ranks"),
    "rank": ("global_rank", "shard_id", "shard"),
    "local_workers": ("workers", "threads", "num_threads", "cores"),
    "nodes": ("hosts", "servers", "addresses", "address", "host", "server"),
    "drop_last": ("drop_remainder",),
    "seed": ("random_seed", "random_state", "shuffle_seed"),
    "steps_per_epoch": ("steps", "epoch_size", "limit_batches"),
    "mesh": ("device_mesh",),
    "targets": ("boxes", "annotations", "bboxes"),
    "batch_transform": ("collate", "batch_fn", "transform_batch"),
    "on_error": ("ignore_errors", "skip_errors", "errors"),
    "tls": ("ssl", "credentials", "ca", "certificate", "tls_ca", "tls_cert", "secure"),
    "token_file": ("token", "api_key", "auth", "password"),
    "insecure": ("plaintext", "verify", "no_tls"),
    "memory_format": ("channels_last", "data_format"),
    "job": ("name", "job_name", "job_id", "run_id"),
}
"""Our arguments, and what others call them."""
NOT_YET = {
    "weights": "a torch WeightedRandomSampler as sampler= does it in this process",
    "fallback": "without nodes= the Loader works on this machine",
}


def refuse_unknown(source: Any, misplaced: Sequence[Any], given: Mapping[str, Any], unknown: Mapping[str, Any]) -> None:
    """Raises for what cannot be meant, all of it in one message; NotYetError for arguments that are not there yet."""
    unexpected = {name: value for name, value in unknown.items() if not _is_harmless(name, value)}
    wrong = [_explain_unknown(name, given) for name in unexpected]
    if misplaced:
        wrong.append(
            f"Loader takes source and transform by place and the rest by name, like batch_size=256, shuffle=True; "
            f"{len(misplaced)} more came by place"
        )
    if wrong:
        raise TypeError("\n".join(wrong))
    if source is None:
        raise TypeError("source is missing: pass the path of a folder of class folders, or an ImageFolder")
    for name, instead in NOT_YET.items():
        if given[name] is not None:
            raise NotYetError(f"{name}= is not there yet: {instead}")


def _is_harmless(name: str, value: Any) -> bool:
    if name not in HARMLESS:
        return False
    same = HARMLESS[name]
    return value is same or (isinstance(value, (int, str)) and value == same)


def _explain_unknown(name: str, given: Mapping[str, Any]) -> str:
    if name in MEANINGLESS:
        return f"Loader has no argument {name}: {MEANINGLESS[name]}"
    ours = next((ours for ours, others in MEANT.items() if name.lower() in others), None)
    if ours is None:
        close = difflib.get_close_matches(name, ["source", "transform", *given], 1, 0.7)
        ours = close[0] if close else None
    return f"Loader got an unexpected argument {name!r}" + (f": is {ours}= meant?" if ours else "")
