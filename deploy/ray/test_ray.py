"""A pool on a real Ray of four machines of one core each, which all are this one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import feedwater_ray
import pytest
from feedwater_ray import FeedwaterPool, find_nodes
from ray.cluster_utils import Cluster

import ray
from enginetest.job import PACED, environment, generate_pictures, told, train_on, undisturbed
from enginetest.pages import ROOT
from enginetest.processes import Process, await_that, parent_of, with_variable
from enginetest.report import report

STEPS = ("--steps", "240", "--batch", "32", "--picture", "64")
MARK = ("FEEDWATER_RAY_TEST", str(os.getpid()))
PACE = ("--test-sample-time", "10ms")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_pictures(tmp_path_factory.mktemp("data") / "train").parent


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Four machines. Everything that Ray starts has the mark, and none of it is left."""
    os.environ.update({**environment(), MARK[0]: MARK[1], "RAY_USAGE_STATS_ENABLED": "0"})
    os.environ["PYTHONPATH"] += f":{Path(feedwater_ray.__file__).parent}:{ROOT / 'deploy'}"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 80 << 20})
    for _ in range(4):
        cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    me = os.getpid()
    await_that("all processes end", lambda: [p for p in with_variable(*MARK) if p != me] == [], 60)


@pytest.fixture
def pool(cluster: Cluster, pictures: Path) -> Iterator[FeedwaterPool]:
    pool = FeedwaterPool({"imagenet": str(pictures)}, cpus=1, nodes=3, program=str(PACED), flags=PACE).start()
    yield pool
    pool.stop()
    await_that("all nodes end", lambda: not serving(), 60)


def serving() -> list[int]:
    """The nodes that run."""
    return running("serve")


def running(command: str, word: str = "") -> list[int]:
    """The programs that run with a command, and a word in its line."""
    lines = {pid: commandline(pid) for pid in with_variable(*MARK)}
    looked_for = (f"\0{command}\0".encode(), word.encode())
    return [pid for pid, line in lines.items() if b"sh\0-c" not in line and all(w in line for w in looked_for)]


def commandline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def listed(name: str = "feedwater") -> list[str]:
    return state(name)[0]


def state(name: str) -> tuple[list[str], list[str], str, bool]:
    """What a pool tells."""
    answer: tuple[list[str], list[str], str, bool] = ray.get(ray.get_actor(name, namespace="feedwater").state.remote())
    return answer


def test_faults_under_a_job(cluster: Cluster, pool: FeedwaterPool, pictures: Path, tmp_path: Path) -> None:
    """A node, an actor and a machine die: each is replaced, and the stream is that of a calm machine."""
    await_that("three nodes", lambda: len(listed()) == 3, 60)
    job = Process(train_on(find_nodes(), 0.2, *STEPS), tmp_path / "trainer", environment())
    try:
        follow(cluster, job)
    finally:
        job.stop()
    said = told(job.log)
    stall, longest = said.stall()
    report(f"stall {stall:.2%}, longest wait {longest:.2f} s, digest {said.digest}")
    assert said.digest == undisturbed(pictures / "train", *STEPS), job.tail()


def follow(cluster: Cluster, job: Process) -> None:
    def step(n: int) -> None:
        await_that(f"step {n}", lambda: len(told(job.log).steps) >= n, 120, job.tail)

    def replaced(what: str, before: list[str], within: float) -> None:
        began = time.time()
        await_that(
            f"{what} is replaced", lambda: len(listed()) == 3 and listed() != before, within, lambda: str(listed())
        )
        report(f"{what} → replaced {time.time() - began:.1f} s")

    step(30)
    before = listed()
    os.kill(serving()[0], signal.SIGKILL)
    replaced("kill -9 of a node", before, 30)
    step(80)
    before = listed()
    os.kill(next(iter(actors())), signal.SIGKILL)
    replaced("kill -9 of an actor", before, 60)
    step(130)
    before = listed()
    raylets = {node.all_processes["raylet"][0].process.pid: node for node in cluster.list_all_nodes()}
    cluster.remove_node(raylets[next(iter(actors().values()))], allow_graceful=False)
    replaced("kill -9 of a machine's raylet", before, 120)
    cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    assert job.wait(240) == 0, job.tail()


def actors() -> dict[int, int]:
    """The processes of actors that have a node, each with the raylet that started it."""
    return {pid: parent_of(pid) for pid in with_variable(*MARK) if b"ray::Node" in commandline(pid)}


@pytest.mark.parametrize(
    ("what", "options", "says"),
    [
        ("program", {"program": "/opt/none/feedwater"}, r"/opt/none/feedwater is not on \S+"),
        ("scaler", {"program": "/opt/none/feedwater", "nodes": 0, "most": 1}, r"/opt/none/feedwater is not on \S+"),
        ("folder", {"data": {"imagenet": "/nowhere"}}, r"ended with 2: feedwater: --data imagenet: .*/nowhere"),
        ("flag", {"flags": ["--max-memori", "8GiB"]}, r"ended with 2: feedwater: unknown flag: --max-memori"),
    ],
)
def test_why_none_starts(cluster: Cluster, pictures: Path, what: str, options: dict[str, Any], says: str) -> None:
    """The error names what is wrong, and the machine."""
    given = {"data": {"imagenet": str(pictures)}, "cpus": 1, "program": str(PACED), "name": f"wrong-{what}", **options}
    with pytest.raises(RuntimeError, match=says):
        FeedwaterPool(**given).start(timeout=15)


def test_a_port_that_is_taken(cluster: Cluster, pictures: Path) -> None:
    """It is another's: nothing starts."""
    with socket.create_server((ray.util.get_node_ip_address(), 0)) as other, pytest.raises(OSError, match="in use"):
        FeedwaterPool({"imagenet": str(pictures)}, most=1, port=other.getsockname()[1], name="taken").start()


def test_no_place(cluster: Cluster, pictures: Path) -> None:
    with pytest.raises(RuntimeError, match="Ray has no place for one"):
        FeedwaterPool({"imagenet": str(pictures)}, cpus=64, program=str(PACED), name="large").start(timeout=5)


@contextmanager
def scaled(pictures: Path, name: str, **options: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """A pool that begins with none: its nodes, each of 100 samples a second, and the environment of its trainers."""
    options = {"program": str(PACED), "flags": PACE, "name": name, "every": 1.0, **options}
    pool = FeedwaterPool({"imagenet": str(pictures)}, cpus=1, nodes=0, **options).start()
    try:
        yield find_nodes(name), environment(FEEDWATER_SCALER=os.environ.pop("FEEDWATER_SCALER"))
    finally:
        pool.stop()


def test_the_number_is_followed(cluster: Cluster, pictures: Path, tmp_path: Path) -> None:
    """From none to what a trainer needs, four at most: 32 samples in 0.2 s are 160 a second."""
    name = "wanted"
    steps = ("--steps", "200", "--batch", "32", "--picture", "64")
    with scaled(pictures, name, most=4, port=17072) as (nodes, env):
        assert env["FEEDWATER_SCALER"].endswith(":17072")
        began = time.time()
        job = Process(train_on(nodes, 0.2, *steps), tmp_path / "job", env)
        try:
            await_that("a first node", lambda: len(listed(name)) >= 1, 60, job.tail)
            report(f"trainer → first node {time.time() - began:.1f} s")
            await_that("a second node", lambda: len(listed(name)) >= 2, 60, job.tail)
            report(f"trainer → second node {time.time() - began:.1f} s")
            assert job.wait(180) == 0, job.tail()
        finally:
            job.stop()
    assert told(job.log).digest == undisturbed(pictures / "train", *steps)


def test_two_pools(cluster: Cluster, pictures: Path, tmp_path: Path) -> None:
    """Each has a scaler of its own, which is started again when it dies. A trainer on one does not move the other."""
    with scaled(pictures, "first", most=2) as (_, others), scaled(pictures, "second", most=2) as (nodes, env):
        scaler = env["FEEDWATER_SCALER"]
        assert scaler != others["FEEDWATER_SCALER"]
        replace_scaler("second", scaler)
        job = Process(train_on(nodes, 0.2, "--steps", "40", "--batch", "32", "--picture", "64"), tmp_path / "job", env)
        try:
            assert job.wait(180) == 0, job.tail()
        finally:
            job.stop()
        assert listed("second") and not listed("first")


def replace_scaler(name: str, address: str) -> None:
    """Kills a pool's scaler, and waits for the next one."""
    (before,) = running("scaler", address)
    os.kill(before, signal.SIGKILL)
    began = time.time()
    await_that("the scaler is started again", lambda: set(running("scaler", address)) - {before}, 60)
    report(f"kill -9 of the scaler → the next one {time.time() - began:.1f} s")
    await_that(
        "the pool tells",
        lambda: any("scaler on" in e and "ended with 137" in e for e in state(name)[1]),
        10,
        lambda: str(state(name)),
    )


def test_the_example(cluster: Cluster, pool: FeedwaterPool) -> None:
    """The page's script, with Ray Train."""
    env = {**environment(), "RAY_ADDRESS": cluster.address}
    command = [sys.executable, str(ROOT / "deploy/ray/train.py"), "imagenet/train"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and "loss" in done.stdout, done.stdout[-2000:] + done.stderr[-3000:]
