"""Which part of each step is ours: rank and world from arguments, a mesh, torch.distributed or the environment."""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import Any, NamedTuple

from .torch_modes import imported_torch

__all__ = ["Ranks", "chosen_dimensions", "resolve_ranks"]

log = logging.getLogger("feedwater")

DATA_PARALLEL = ("dp", "ddp", "fsdp", "hsdp", "data", "replicate", "shard")

TASKS = ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
"""Where launchers that do not set RANK and WORLD_SIZE say how many processes they started: srun, Open MPI, MPICH.

These may be ranks, or runs of a sweep that know nothing of each other. So none of them is believed.
"""


class Ranks(NamedTuple):
    """This process's place among those that share an epoch."""

    rank: int
    world: int

    def share_evenly(self, count: int) -> int:
        """How many of count things each rank takes, where all take as many: the last ones take repeats, or nothing."""
        return -(-count // self.world)


def resolve_ranks(rank: int | None, num_replicas: int | None, mesh: Any) -> Ranks:
    """The place by arguments, else mesh, else torch.distributed, else RANK and WORLD_SIZE, else the only one."""
    if rank is not None and num_replicas is not None:
        return check_ranks(rank, num_replicas)
    if mesh is not None:
        return _of_mesh(mesh)
    distributed = getattr(imported_torch(), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return Ranks(distributed.get_rank(), distributed.get_world_size())
    if os.environ.get("RANK") and os.environ.get("WORLD_SIZE"):
        return _of_environment()
    for name in TASKS:
        tasks = os.environ.get(name, "")
        if tasks.isdecimal() and int(tasks) > 1:
            _warn_of_tasks(name, tasks)
            break
    return Ranks(0, 1)


@cache
def _warn_of_tasks(name: str, tasks: str) -> None:
    """Once for each process."""
    log.warning(
        "%s=%s, and nothing says which of these tasks this process is: it takes all samples, as the only rank does. If "
        "the tasks are ranks of one run, pass rank= and num_replicas=, or export RANK and WORLD_SIZE, or call "
        "torch.distributed.init_process_group before the Loader is used, len(loader) included. If each is a run of its "
        "own, pass rank=0, num_replicas=1",
        name,
        tasks,
    )


def _of_environment() -> Ranks:
    said = {name: os.environ[name] for name in ("RANK", "WORLD_SIZE")}
    try:
        return check_ranks(*map(int, said.values()))
    except ValueError as error:
        where = " and ".join(f"{name}={value!r}" for name, value in said.items())
        raise ValueError(
            f"the environment has {where}, by which a launcher says this process's place among the ranks ({error}): "
            "set both as whole numbers, or unset them, or pass rank= and num_replicas="
        ) from None


def check_ranks(rank: int, world: int) -> Ranks:
    """Ranks, or a ValueError that names what is wrong."""
    if world < 1 or not 0 <= rank < world:
        raise ValueError(f"rank={rank} and num_replicas={world}: need 0 <= rank < num_replicas")
    return Ranks(rank, world)


def chosen_dimensions(mesh: Any) -> list[int]:
    """Those dimensions of a mesh by which ranks share an epoch. Raises ValueError if that is not clear."""
    names = mesh.mesh_dim_names
    if not names:
        if mesh.ndim != 1:
            raise ValueError('mesh= has several dimensions without names: pass the data-parallel one, mesh["dp"]')
        return [0]
    chosen = [i for i, name in enumerate(names) if name.lower().split("_")[0] in DATA_PARALLEL]
    if not chosen and len(names) == 1:
        chosen = [0]
    if not chosen:
        raise ValueError(f"mesh= has dimensions {tuple(names)}, none of them data-parallel (dp…): pass mesh[name]")
    return chosen


def _of_mesh(mesh: Any) -> Ranks:
    """The data-parallel part of a DeviceMesh; duck-typed, so that torch is not needed to read it."""
    place = Ranks(0, 1)
    for dim in chosen_dimensions(mesh):
        size = mesh.size(dim)
        place = Ranks(place.rank * size + mesh.get_local_rank(dim), place.world * size)
    return place
