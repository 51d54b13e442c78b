"""What a job on pods loses, and how long it waits, while pods die, are replaced and are cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from workload import CHART, NAMESPACE, SMALL, Training, await_nodes, helm, pods, program_of, samples_made

from cluster import Cluster
from enginetest.job import Told, undisturbed
from enginetest.report import report

NODES = 5
BATCH = 32
SHAPE = ("--batch", str(BATCH), "--picture", "224")
HEADROOM = 1.15
SECONDS = 60.0
BEGINS_AFTER = 12.0


@pytest.fixture(scope="module")
def installed(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Five pods, each of which may take a fifth of a core: together they leave the trainer one."""
    limits = ("--set", "resources.limits.cpu=200m,drainTimeout=10")
    helm(
        cluster,
        "install",
        "feedwater",
        str(CHART),
        "--set",
        "data.imagenet.claim=imagenet,insecure=true",
        "--set",
        f"replicas={NODES}",
        *SMALL,
        *limits,
    )
    await_nodes(cluster, NODES)
    yield
    helm(cluster, "uninstall", "feedwater", "--wait")


@pytest.fixture(scope="module")
def period(installed: None, cluster: Cluster) -> float:
    """Seconds between two steps of a job that needs what four pods make, but for a seventh."""
    scale(cluster, NODES - 1)
    job = Training(cluster, "capacity", ["--steps", "150", *SHAPE])
    job.digest()
    steps = job.told().steps
    half = len(steps) // 3
    rate = (len(steps) - half) / (steps[-1]["at"] - steps[half - 1]["at"])
    job.delete()
    scale(cluster, NODES)
    report(f"four pods make {rate * BATCH:.0f} samples a second; the job takes {rate * BATCH / HEADROOM:.0f}")
    return HEADROOM / rate


def scale(cluster: Cluster, n: int) -> None:
    """As many pods as told, all ready."""
    cluster.kubectl("-n", NAMESPACE, "scale", "deployment/feedwater", f"--replicas={n}")
    await_nodes(cluster, n)


@contextmanager
def cut_off(pid: int) -> Iterator[None]:
    """A pod whose packets all vanish, without a word."""

    def rules(action: str) -> None:
        for chain in ("INPUT", "OUTPUT"):
            subprocess.run(
                [
                    "nsenter",
                    "-t",
                    str(pid),
                    "-n",
                    "iptables",
                    action,
                    chain,
                    "!",
                    "-i" if chain == "INPUT" else "-o",
                    "lo",
                    "-j",
                    "DROP",
                ],
                check=True,
            )

    rules("-A")
    try:
        yield
    finally:
        rules("-D")


def a_pod(cluster: Cluster) -> int:
    """The program of one of the pods."""
    return program_of(min(pods(cluster), key=lambda pod: pod["metadata"]["name"]))


def kill_pod(cluster: Cluster) -> None:
    os.kill(a_pod(cluster), signal.SIGKILL)
    await_nodes(cluster, NODES)


def roll_out(cluster: Cluster) -> None:
    cluster.kubectl("-n", NAMESPACE, "rollout", "restart", "deployment/feedwater")
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/feedwater")
    await_nodes(cluster, NODES)


def black_hole(cluster: Cluster) -> None:
    with cut_off(a_pod(cluster)):
        time.sleep(12)
    await_nodes(cluster, NODES)


def nothing(cluster: Cluster) -> None:
    time.sleep(5)


@dataclass
class Row:
    """A fault, and for how long the job is watched."""

    fault: Callable[[Cluster], None]
    seconds: float = SECONDS
    counts: bool = True  # pods stay, and so do their counters


ROWS = {
    "undisturbed": Row(nothing),
    "pod kill -9": Row(kill_pod, counts=False),
    "rollout": Row(roll_out, 90, counts=False),
    "black hole 12 s": Row(black_hole),
}


@pytest.mark.parametrize("name", ROWS)
def test_fault(cluster: Cluster, period: float, pictures: Path, name: str) -> None:
    """The stream is that of a calm machine; no wait is longer than a second."""
    row = ROWS[name]
    steps = ("--steps", str(round(row.seconds / period)), *SHAPE)
    made = samples_made(cluster) if row.counts else 0
    job = Training(cluster, "chaos", [*steps, "--period", str(period)])
    job.step(round(BEGINS_AFTER / period))
    failed: list[BaseException] = []

    def disturb() -> None:
        try:
            row.fault(cluster)
        except BaseException as error:  # shown below
            failed.append(error)

    fault = threading.Thread(target=disturb)
    fault.start()
    digest = job.digest(row.seconds + 240)
    fault.join()
    assert not failed, failed
    told = job.told()
    stall, longest = settled(told, period)
    extra = (samples_made(cluster) - made) / (BATCH * len(told.steps)) - 1 if row.counts else None
    more = "-" if extra is None else f"{extra:.1%}"
    report(f"{name}: stall {stall:.2%}, longest wait {longest:.2f} s, extra work {more}, digest {digest}")
    job.delete()
    assert digest == undisturbed(pictures / "train", *steps)
    assert longest <= 1
    assert extra is None or extra <= 0.05


def settled(told: Told, period: float) -> tuple[float, float]:
    """Stall and longest wait, from when the window of batches was full."""
    return Told(told.steps[round(5 / period) :]).stall()
