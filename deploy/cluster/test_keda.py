"""KEDA scales the nodes of the chart by what the scaler says, with jobs that come and go.

Pods have 150m of a core, so that nine of them leave the rest of two cores to the jobs and the cluster. Batches have 32
pictures: one of 256 would take such a pod seconds, and a job's demand is read off 16 steps. What jobs need is told in
such pods, as six of them are measured together.

One job needs half a pod and stays. The other one needs so much more that six are wanted, with the 15 % on top, and goes
again. The tests are in the order of that story. FEEDWATER_CLUSTER_LONG=1 has the jobs be fed for five minutes in place
of one. Scalers are lost in the long run alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path

import pytest
from keda import start_keda
from scaling import Watch, changes, has_stream, watched
from workload import CHART, NAMESPACE, SMALL, Training, await_nodes, helm, pods, steps_a_second

from cluster import SENT, Cluster, processes_of
from enginetest.job import told_undisturbed
from enginetest.pages import ROOT, blocks
from enginetest.plot import Panel, draw
from enginetest.processes import await_that
from enginetest.report import report

LONG = bool(os.environ.get("FEEDWATER_CLUSTER_LONG"))
MANY, SHAPE = 6, ("--batch", "32", "--picture", "224")
STAYS, COMES = 0.5, 4.6
"""What the jobs need, in pods: 1.15 × both are 5.9, and six are wanted."""
FED = 300 if LONG else 60
LOST = 60
"""Seconds for which jobs are fed, and scalers are away."""
COOLDOWN = 30
SCALER = {"FEEDWATER_SCALER": "feedwater-scaler.feedwater.svc:7072"}
FOREVER = 1_000_000
PLOTS = ROOT / "dist"


@pytest.fixture(scope="module")
def upgraded(cluster: Cluster, namespace: str) -> Iterator[tuple[float, Watch]]:
    """Steps a second that one of six pods makes, and what was seen while KEDA got them, as the page says.

    All is taken away afterwards.
    """
    values = f"image.repository={SENT.rpartition(':')[0]},data.imagenet.claim=imagenet,insecure=true"
    values += ",resources.limits.cpu=150m,drainTimeout=5"
    helm(cluster, "install", "feedwater", str(CHART), *SMALL, "--set", f"{values},replicas={MANY}")
    await_nodes(cluster, MANY)
    one = steps_a_second(cluster, 150, *SHAPE) / MANY
    report(f"one of {MANY} pods makes {one * 32:.0f} samples a second")
    start_keda(cluster)
    page = cluster.folder / "values.yaml"
    (text,) = [block for block in blocks("docs/kubernetes.md", "yaml") if "\nkeda:" in block]
    page.write_text(text)
    changed = f"{values},keda.maxReplicas=9,keda.cooldownPeriod={COOLDOWN}"
    with watched() as watch:
        helm(cluster, "upgrade", "feedwater", str(CHART), "--values", str(page), *SMALL, "--set", changed)
        cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/feedwater-scaler", "--timeout=60s")
    yield one, watch
    helm(cluster, "uninstall", "feedwater", "--wait")


@pytest.fixture(scope="module")
def pod(upgraded: tuple[float, Watch]) -> float:
    """Steps a second that one pod makes. KEDA has them."""
    return upgraded[0]


@pytest.fixture(scope="module")
def watch(pod: float) -> Iterator[Watch]:
    """All that is seen from then on."""
    with watched() as watch:
        yield watch


@pytest.fixture(scope="module")
def jobs() -> Iterator[dict[str, Training]]:
    """Those that run, by what they do."""
    found: dict[str, Training] = {}
    yield found
    for job in found.values():
        job.delete()


def train(cluster: Cluster, name: str, pods: float, one: float, *options: str) -> Training:
    """A job that needs so many pods. It ends when it is told to."""
    period = 1 / (pods * one)
    command = ["--steps", str(FOREVER), "--each", "--period", f"{period:.4f}", *SHAPE, *options]
    return Training(cluster, name, command, env=SCALER)


def begins(job: Training) -> float:
    """When it asks for its first batch."""
    lines = await_that("it begins", lambda: [line for line in job.told().lines if "begins" in line], 60, job.log)
    at: float = lines[0]["begins"]
    return at


def waited(job: Training, since: float) -> float:
    """The share of the time since then in which a job waited."""
    steps = [step for step in job.told().steps if step["at"] >= since]
    return sum(step["wait"] for step in steps[1:]) / (steps[-1]["at"] - steps[0]["at"])


def plot(watch: Watch, jobs: dict[str, Training], name: str) -> None:
    """A picture of wanted, replicas and waits, for who reads it."""
    began = watch.samples[0].at
    wanted = [
        (s.at - began, float(max(known)))
        for s in watch.samples
        if (known := [w for w in s.wanted.values() if w is not None])
    ]
    replicas = [(s.at - began, float(s.replicas)) for s in watch.samples if s.replicas is not None]
    waits = {
        job: [(step["at"] - began, step["wait"]) for step in training.told().steps] for job, training in jobs.items()
    }
    PLOTS.mkdir(exist_ok=True)
    panels = [Panel("pods", {"wanted": wanted, "replicas": replicas}), Panel("seconds a step waits", waits)]
    draw(PLOTS / f"{name}.svg", panels)
    report(f"dist/{name}.svg")


def test_the_upgrade_takes_no_pod_away(upgraded: tuple[float, Watch]) -> None:
    """Until a scaler says how many there should be, there are as many as before."""
    seen = upgraded[1].samples
    before = list(takewhile(lambda sample: not any(n is not None for n in sample.wanted.values()), seen))
    report(f"KEDA gets {MANY} pods: {len(before)} looks before a scaler knows, {len(seen)} in all")
    assert {s.replicas for s in before if s.replicas is not None} == {MANY}, upgraded[1].story(seen[0].at)


def test_without_a_job_there_is_no_pod(watch: Watch) -> None:
    watch.first(0, lambda s: s.replicas == 0 and s.pods == 0, 90)
    # KEDA tries again after 2, 4, 8 … seconds where a scaler was not there when it began.
    await_that("KEDA hears of a scaler at once", lambda: any(map(has_stream, watch.samples[-1].wanted)), 90)


def test_from_none_to_one(watch: Watch, cluster: Cluster, pod: float, jobs: dict[str, Training]) -> None:
    """The trainer asks the scaler, by its name, which tells KEDA."""
    asked = time.time()
    jobs["stays"] = train(cluster, "stays", STAYS, pod)
    watch.first(asked, lambda s: s.pods > 0, 60)
    began = begins(jobs["stays"])
    took = watch.first(began, lambda s: s.pods > 0, 5)
    jobs["stays"].step(1)
    first = jobs["stays"].told().steps[0]["at"] - began
    report(f"0 → 1: the pod is there {took:.1f} s after the job's first next, its batch after {first:.1f} s")
    assert took <= 3


def test_from_one_to_six(watch: Watch, cluster: Cluster, pod: float, jobs: dict[str, Training]) -> None:
    # The scaler began with six pods, which it keeps for 120 s.
    watch.first(time.time(), lambda s: s.replicas == 1, 180)
    jobs["comes"] = train(cluster, "comes", COMES, pod)
    began = begins(jobs["comes"])
    took = watch.first(began, lambda s: (s.replicas or 0) >= MANY, 120)
    await_that("they are ready", lambda: len(pods(cluster)) >= MANY, 60, cluster.tails)
    report(f"1 → {MANY}: {took:.1f} s after the other job's first next")
    assert took <= 45


def test_a_job_that_is_fed_gets_no_pod_more(watch: Watch, jobs: dict[str, Training]) -> None:
    """Six pods are 1.18 of what the jobs need."""
    time.sleep(30)  # what it waited before shows until then
    began, before = time.time(), watch.samples[-1].replicas
    time.sleep(FED)
    waits = {name: waited(job, began) for name, job in jobs.items()}
    report(f"fed for {FED} s: {before} pods, then {sorted(watch.seen(began))}; waits {waits}")
    assert before is not None
    assert max(watch.seen(began)) <= before <= MANY + 1


def scaler_pods(cluster: Cluster) -> dict[str, int]:
    """The scalers' processes, by address."""
    found = cluster.get("-n", NAMESPACE, "pods", "-l", "app.kubernetes.io/component=scaler")["items"]
    return {p["status"]["podIP"]: pid for p in found for pid in processes_of(p["metadata"]["uid"], "scaler")}


def stays(watch: Watch, what: str, since: float) -> None:
    """The pods that there are stay."""
    seen = watch.seen(since)
    before = [s.replicas for s in watch.samples if s.at < since and s.replicas is not None][-1]
    report(f"{what}: replicas {before}, then {sorted(seen)}")
    assert before is not None
    assert min(seen) >= before, watch.story(since - 10)


@pytest.mark.long
def test_scaler_killed(watch: Watch, cluster: Cluster) -> None:
    """The kubelet starts it again."""
    (killed,) = scaler_pods(cluster).values()
    since = time.time()
    os.kill(killed, signal.SIGKILL)
    time.sleep(LOST / 2)
    stays(watch, "scaler killed", since)


@pytest.mark.long
def test_scaler_away(watch: Watch, cluster: Cluster) -> None:
    since = time.time()
    for pid in scaler_pods(cluster).values():
        os.kill(pid, signal.SIGKILL)
    cluster.kubectl("-n", NAMESPACE, "scale", "deployment/feedwater-scaler", "--replicas=0")
    time.sleep(LOST)
    cluster.kubectl("-n", NAMESPACE, "scale", "deployment/feedwater-scaler", "--replicas=1")
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/feedwater-scaler", "--timeout=60s")
    time.sleep(LOST / 2)
    stays(watch, f"no scaler for {LOST} s", since)


@pytest.mark.long
def test_scaler_that_reaches_no_node(watch: Watch, cluster: Cluster) -> None:
    """What it sends to nodes vanishes."""
    since = time.time()
    rule = ["OUTPUT", "-p", "tcp", "--dport", "7070", "-j", "DROP"]

    def enter(pid: int, action: str) -> None:
        subprocess.run(["nsenter", "-t", str(pid), "-n", "iptables", action, *rule], check=True)

    with ExitStack() as undo:
        for pid in scaler_pods(cluster).values():
            enter(pid, "-A")
            undo.callback(enter, pid, "-D")
        time.sleep(LOST)
    stays(watch, f"the scaler reaches no node for {LOST} s", since)


def test_from_six_to_one(watch: Watch, cluster: Cluster, jobs: dict[str, Training]) -> None:
    plot(watch, jobs, "keda")
    began = time.time()
    jobs.pop("comes").delete()
    took = watch.first(began, lambda s: s.replicas == 1, 300)
    report(f"{MANY} → 1: {took:.0f} s after the other job")
    assert took <= 180


def test_from_one_to_none(watch: Watch, cluster: Cluster, jobs: dict[str, Training], pictures: Path) -> None:
    """The job that stayed got each batch once, in order, bit for bit."""
    plot(watch, jobs, "keda")
    job = jobs.pop("stays")
    steps = job.told().steps
    began = time.time()
    job.delete()
    took = watch.first(began, lambda s: s.replicas == 0, COOLDOWN + 90)
    report(f"1 → 0: {took:.0f} s after the last job")
    alone = told_undisturbed(pictures / "train", "--steps", str(len(steps)), "--each", *SHAPE)
    assert [step["batch"] for step in steps] == [step["batch"] for step in alone.steps]
    assert took <= COOLDOWN + 30


@pytest.mark.long
def test_a_demand_that_changes(watch: Watch, cluster: Cluster, pod: float, jobs: dict[str, Training]) -> None:
    """Every 15 s it is another one, up to 15 % more or less. Pods follow at most four times in 20 minutes."""
    watch.samples.clear()
    jobs["noise"] = train(cluster, "noise", STAYS + COMES, pod, "--noise", "0.15")
    time.sleep(120)  # until there are as many as it needs
    began = time.time()
    time.sleep(20 * 60)
    plot(watch, jobs, "keda-noise")
    n = changes(watch.since(began))
    report(f"demand ± 15 %: {n} changes in 20 minutes, replicas {sorted(watch.seen(began))}")
    assert n <= 4
