"""What a job on pods loses, and how long it waits, while pods, links, the kubelet and the API server fail.

Each row is a job of its own: it runs undisturbed for a while, then the fault comes. Both parts are measured, since the
machine may have other work. The longest of these jobs is run on one machine too, for the digests of them all.
FEEDWATER_CLUSTER_LONG=1 has each row twice, and the API server stand still for three minutes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import faults
import pytest
from counters import counted
from faults import NODES, scale
from workload import CHART, SMALL, Training, await_nodes, helm, steps_a_second

from cluster import TRAINER_IMAGE, Cluster
from enginetest.job import Told, told_undisturbed
from enginetest.report import report

BATCH = 256
SHAPE = ("--batch", str(BATCH), "--picture", "224")
HEADROOM = 1.15
SETTLED, CALM, DISTURBED = 5.0, 10.0, 60.0
"""Seconds until the window of batches is full, of the undisturbed part, and from the fault on."""
LONG = bool(os.environ.get("FEEDWATER_CLUSTER_LONG"))
FROZEN = 180 if LONG else 30
TURNS = range(2 if LONG else 1)
STALL, WAIT, EXTRA = 0.005, 1.0, 0.05
"""What a row may have more than the undisturbed one: a share of its time, seconds, a share of its work."""
EXCUSED = 0.02
"""What other work on this machine may add to any share."""


@dataclass
class Row:
    """A fault, and for how many seconds the job goes on from then on, at least."""

    fault: Callable[[Cluster], None]
    seconds: float = DISTURBED


ROWS = {
    "undisturbed": Row(faults.nothing),
    "pod kill -9": Row(faults.kill_pod),
    "5 to 9 to 4 nodes": Row(faults.scale_out_and_in),
    "rollout": Row(faults.roll_out, 90),
    "black hole 12 s": Row(faults.black_hole),
    "SIGSTOP 8 s": Row(faults.stop_pod),
    "kubelet frozen 20 s": Row(faults.freeze_kubelet),
    f"API server frozen {FROZEN} s": Row(partial(faults.freeze_apiserver, seconds=FROZEN), FROZEN + 30),
}
MUTANT = "kubelet frozen 20 s"


@dataclass
class Result:
    """What became of a row's job."""

    calm: tuple[float, float]
    """Stall and longest wait before the fault."""
    disturbed: tuple[float, float]
    extra: float
    digest: str
    steps: int

    def line(self, name: str) -> str:
        """A row of the table."""
        (calm, calm_wait), (stall, wait) = self.calm, self.disturbed
        return (
            f"| {name} | {calm:.2%} | {stall:.2%} | {calm_wait:.2f} s | {wait:.2f} s | {self.extra:.1%} |"
            f" {self.steps} | {self.digest} |"
        )


@pytest.fixture(scope="module")
def installed(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Five pods, each of which may take a fifth of a core: together they leave the trainer one."""
    values = f"data.imagenet.claim=imagenet,insecure=true,replicas={NODES},resources.limits.cpu=200m,drainTimeout=10"
    helm(cluster, "install", "feedwater", str(CHART), *SMALL, "--set", values)
    await_nodes(cluster, NODES)
    yield
    helm(cluster, "uninstall", "feedwater", "--wait")


@pytest.fixture(scope="module")
def period(installed: None, cluster: Cluster) -> float:
    """Seconds between two steps of a job that needs what four pods make, but for a seventh."""
    scale(cluster, NODES - 1)
    rate = steps_a_second(cluster, 60, *SHAPE)
    scale(cluster, NODES)
    report(f"four pods make {rate * BATCH:.0f} samples a second; the job takes {rate * BATCH / HEADROOM:.0f}")
    return HEADROOM / rate


@pytest.fixture(scope="module")
def alone(period: float, pictures: Path) -> list[str]:
    """The digest after each step of the longest job, undisturbed on one machine."""
    most = max(steps_of(row, period) for row in ROWS.values())
    told = told_undisturbed(pictures / "train", "--steps", str(most), *SHAPE)
    return [step["so_far"] for step in told.steps]


def steps_of(row: Row, period: float) -> int:
    """How many steps its job takes."""
    return round((SETTLED + CALM) / period) + round(row.seconds / period)


def run(cluster: Cluster, row: Row, period: float, image: str = TRAINER_IMAGE) -> Result:
    """Runs a row's job, with its fault after the undisturbed part."""
    begin = round((SETTLED + CALM) / period)
    steps = steps_of(row, period)
    with counted() as counter:
        before = counter.samples()
        job = Training(cluster, "chaos", ["--steps", str(steps), *SHAPE, "--period", str(period)], image=image)
        job.step(begin)
        _during(partial(row.fault, cluster), partial(job.digest, row.seconds + 240))
        told = job.told()
    job.delete()
    taken = [step for step in told.steps if step["step"] >= round(SETTLED / period)]
    at = told.steps[begin - 1]["at"]
    return Result(
        calm=Told([step for step in taken if step["at"] <= at]).stall(),
        disturbed=Told([step for step in taken if step["at"] >= at]).stall(),
        extra=(counter.samples() - before) / (BATCH * steps) - 1,
        digest=told.digest or "",
        steps=steps,
    )


def _during(fault: Callable[[], None], job: Callable[[], object]) -> None:
    """A fault beside a job. Either's error is raised."""
    failed: list[BaseException] = []

    def disturb() -> None:
        try:
            fault()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        job()
    finally:
        thread.join()
    if failed:
        raise failed[0]


def exceeded(result: Result, calm: Result) -> list[str]:
    """What a row has more of than it may, beside the undisturbed parts of its own job and of the undisturbed row."""
    stall = result.disturbed[0] - max(result.calm[0], calm.disturbed[0])
    wait = result.disturbed[1] - max(result.calm[1], calm.disturbed[1])
    extra = result.extra - max(calm.extra, 0.0)
    told = []
    if stall > STALL + EXCUSED:
        told.append(f"stall {stall:.2%} more")
    if wait > WAIT:
        told.append(f"a wait {wait:.2f} s longer")
    if extra > EXTRA + EXCUSED:
        told.append(f"extra work {extra:.1%} more")
    return told


@pytest.fixture(scope="module")
def calm(cluster: Cluster, period: float) -> Result:
    """The row without a fault, first of the table."""
    result = run(cluster, ROWS["undisturbed"], period)
    report("| fault | stall before | stall | longest wait before | longest wait | extra work | steps | digest |")
    report("|---|--:|--:|--:|--:|--:|--:|---|")
    report(result.line("undisturbed"))
    return result


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("turn", TURNS)
def test_fault(cluster: Cluster, period: float, calm: Result, alone: list[str], name: str, turn: int) -> None:
    """The stream is that of one calm machine, bit for bit; waits and work are hardly more than without the fault."""
    result = calm
    if name != "undisturbed" or turn:
        result = run(cluster, ROWS[name], period)
        report(result.line(name))
    assert result.digest == alone[result.steps - 1]
    assert not exceeded(result, calm)


@pytest.mark.long
def test_client_that_believes_not_ready(
    cluster: Cluster, period: float, calm: Result, alone: list[str], not_ready_image: str
) -> None:
    """The rows can fail: a trainer that leaves all pods which are called not ready stands still with the kubelet."""
    result = run(cluster, ROWS[MUTANT], period, image=not_ready_image)
    report(result.line(f"{MUTANT}, mutant"))
    assert result.digest == alone[result.steps - 1]
    assert exceeded(result, calm)
