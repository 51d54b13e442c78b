"""Tests against the real frameworks, in an environment of their own: make test-frameworks."""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

HERE = Path(__file__).parent
BINARY = HERE.parents[1] / "bin" / "feedwater"
PATIENCE_S = 300

os.environ.setdefault("FEEDWATER_BINARY", str(BINARY))
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Nothing is looked for outside this machine.
os.environ.update(
    HF_HUB_OFFLINE="1", NO_ALBUMENTATIONS_UPDATE="1", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="",
    WANDB_MODE="offline", WANDB_ERROR_REPORTING="false", MLFLOW_DISABLE_TELEMETRY="true",
)  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def binary(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The feedwater program, which must be there (make build); lists of files are kept with pytest's."""
    os.environ["FEEDWATER_CACHE_DIR"] = str(tmp_path_factory.mktemp("lists"))
    assert Path(os.environ["FEEDWATER_BINARY"]).is_file(), "run make build, or set FEEDWATER_BINARY"
    return os.environ["FEEDWATER_BINARY"]


def make_pictures(folder: Path, count: int, classes: int = 3) -> Path:
    """A folder of class folders of small JPEGs, of several sizes."""
    for number in range(count):
        place = folder / f"class{number * classes // count}"
        place.mkdir(parents=True, exist_ok=True)
        values = np.random.default_rng(number).integers(0, 256, (20 + number % 5, 24 + number % 3, 3), dtype=np.uint8)
        PIL.Image.fromarray(values).save(place / f"{number:04}.jpg")
    return folder


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 pictures of three classes."""
    return make_pictures(tmp_path_factory.mktemp("pictures"), 30)


def _run_rank(function: Callable[..., Any], rank: int, world: int, port: int, answers: Any, arguments: Any) -> None:
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), ACCELERATE_USE_CPU="true", GLOO_SOCKET_IFNAME="lo",
    )  # fmt: skip
    if world == 1:
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
            del os.environ[name]
    try:
        answers.put((rank, function(*arguments), None))
    except BaseException:
        answers.put((rank, None, traceback.format_exc()))


def run_ranks(world: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What a function of a module returns on each of so many ranks, each a process of its own."""
    context = multiprocessing.get_context("spawn")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    answers = context.Queue()
    made = [
        context.Process(target=_run_rank, args=(function, rank, world, port, answers, arguments))
        for rank in range(world)
    ]
    for process in made:
        process.start()
    try:
        results: dict[int, Any] = {}
        for _ in made:
            rank, result, error = answers.get(timeout=PATIENCE_S)
            assert error is None, f"rank {rank}: {error}"
            results[rank] = result
    finally:
        for process in made:
            process.join(20)
            process.kill()
    return [results[rank] for rank in range(world)]
