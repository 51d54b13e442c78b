"""Rank and world: who is asked, in which order."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from feedwater._common import ranks
from feedwater._common.ranks import TASKS, Ranks, resolve_ranks


class Mesh:
    """What is used of a DeviceMesh."""

    def __init__(self, names: Any, sizes: tuple[int, ...], here: tuple[int, ...]) -> None:
        self.mesh_dim_names, self._sizes, self._here = names, sizes, here
        self.ndim = len(sizes)

    def size(self, dim: int) -> int:
        return self._sizes[dim]

    def get_local_rank(self, dim: int) -> int:
        return self._here[dim]


@pytest.mark.parametrize(
    ("mesh", "place"),
    [
        (Mesh(("dp",), (8,), (5,)), (5, 8)),
        (Mesh(None, (8,), (5,)), (5, 8)),
        (Mesh(("whatever",), (8,), (5,)), (5, 8)),
        (Mesh(("dp", "tp"), (4, 2), (3, 1)), (3, 4)),
        (Mesh(("pp", "dp_replicate", "dp_shard", "tp"), (2, 3, 4, 2), (1, 2, 1, 0)), (9, 12)),
        (Mesh(("replicate", "shard"), (2, 4), (1, 3)), (7, 8)),
    ],
)
def test_the_data_parallel_part_of_a_mesh(mesh: Mesh, place: tuple[int, int]) -> None:
    assert resolve_ranks(None, None, mesh) == place


@pytest.mark.parametrize(("names", "why"), [(None, "without names"), (("pp", "tp"), "none of them data-parallel")])
def test_a_mesh_without_a_data_parallel_part(names: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        resolve_ranks(None, None, Mesh(names, (2, 2), (0, 0)))


def test_arguments_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert resolve_ranks(None, None, None) == (3, 4)
    assert resolve_ranks(1, 2, None) == (1, 2)
    monkeypatch.delenv("WORLD_SIZE")
    assert resolve_ranks(None, None, None) == (0, 1)


@pytest.mark.parametrize(("rank", "world"), [(2, 2), (-1, 2), (0, 0)])
def test_a_rank_outside_of_the_world(rank: int, world: int) -> None:
    with pytest.raises(ValueError, match=f"rank={rank} and num_replicas={world}"):
        resolve_ranks(rank, world, None)


def test_torch_distributed_is_asked_when_it_is_initialised() -> None:
    script = """
import os, tempfile, torch, torch.distributed as dist
from feedwater._common.ranks import resolve_ranks
os.environ.update(RANK="3", WORLD_SIZE="4")
assert resolve_ranks(None, None, None) == (3, 4)
with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    assert resolve_ranks(None, None, None) == (0, 1), "not the environment"
    dist.destroy_process_group()
"""
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", script], check=True)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize("name", TASKS)
def test_tasks_that_were_not_told_their_rank_are_told_once(
    fake: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Before the first batch: a schedule of the learning rate asks for the length alone."""
    ranks._warn_of_tasks.cache_clear()
    monkeypatch.setenv(name, "8")
    loader = fake.loader()
    assert not warnings_of(caplog), "a group may come yet"
    assert len(loader) == len(fake.loader()) and next(iter(loader)) is not None
    (said,) = warnings_of(caplog)
    assert said.startswith(f"{name}=8, ") and "num_replicas=, or export RANK and WORLD_SIZE" in said
    assert "init_process_group before" in said and "rank=0, num_replicas=1" in said


@pytest.mark.parametrize(
    ("variables", "arguments"),
    [
        ({"SLURM_STEP_NUM_TASKS": "8"}, (0, 1, None)),
        ({"SLURM_STEP_NUM_TASKS": "8"}, (None, None, Mesh(("dp",), (8,), (5,)))),
        ({"SLURM_STEP_NUM_TASKS": "8", "RANK": "3", "WORLD_SIZE": "8"}, (None, None, None)),
        ({"SLURM_STEP_NUM_TASKS": "1", "OMPI_COMM_WORLD_SIZE": "1", "PMI_SIZE": ""}, (None, None, None)),
        ({"SLURM_STEP_NUM_TASKS": "many"}, (None, None, None)),
        ({"SLURM_NTASKS": "8"}, (None, None, None)),  # of the whole job, which a script without srun has too
    ],
)
def test_who_knows_its_rank_is_not_warned(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], arguments: Any
) -> None:
    ranks._warn_of_tasks.cache_clear()
    for name in ("RANK", "WORLD_SIZE", *TASKS):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    resolve_ranks(*arguments)
    assert not warnings_of(caplog)


def test_a_group_is_not_warned_of_tasks() -> None:
    script = """
import logging, os, tempfile, torch.distributed as dist
from feedwater._common.ranks import resolve_ranks
said = []
logging.getLogger("feedwater").addFilter(lambda record: said.append(record.getMessage()) or True)
os.environ["SLURM_STEP_NUM_TASKS"] = "8"
with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    assert resolve_ranks(None, None, None) == (0, 1) and not said, said
    dist.destroy_process_group()
assert resolve_ranks(None, None, None) == (0, 1) and len(said) == 1, said
"""
    pytest.importorskip("torch")
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", *TASKS)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_the_first_step_tells_rank_and_global_batch(fake: Any, caplog: pytest.LogCaptureFixture) -> None:
    loader = fake.loader(rank=3, num_replicas=64, batch_size=256)
    with caplog.at_level(logging.INFO, "feedwater"):
        next(iter(loader))
        next(iter(loader))
    assert [record.message for record in caplog.records] == ["rank 3/64, global batch 16,384"]
    assert Ranks(3, 64) == loader._engine.ranks


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, True),
        ({"tail": "drop"}, True),
        ({"shuffle": True}, False),
        ({"tail": "valid", "fields": ("image", "label", "valid")}, False),
        ({"sampler": range(100)}, False),
        ({"rank": 0, "num_replicas": 2}, False),
        ({"rank": 0, "num_replicas": 1}, False),
    ],
)
def test_a_pass_in_order_that_is_split_unasked_is_told(
    fake: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], told: bool
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = fake.loader(**options)
    for _ in range(2):
        next(iter(loader))
    said = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == told, "once"
    assert all("split among 2 ranks" in message and "num_replicas=1" in message for message in said)


def test_ranks_may_be_numpys_numbers_and_the_state_is_json(fake: Any) -> None:
    loader = fake.loader(rank=np.int64(1), num_replicas=np.int32(2))
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["consumed"] == 20
    loader.load_state_dict({**state, "consumed": np.int64(40)})
    assert type(loader.state_dict()["consumed"]) is int
    next(iter(loader))
    assert loader.last.position == 50
