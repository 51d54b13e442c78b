"""What pods meet besides test_chaos.py: too little memory, eviction, a full volume, quotas, a read-only root.

Each row has a job, which has to get the batches of one machine, bit for bit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from workload import CHART, NAMESPACE, SMALL, Training, await_nodes, helm, pods, program_of

from cluster import Cluster
from enginetest.job import undisturbed
from enginetest.processes import await_that
from enginetest.report import report

SHAPE = ("--batch", "32", "--picture", "64")
JOB = ("--steps", "300", *SHAPE)
PACE = ("--period", "0.05")
VALUES = "data.imagenet.claim=imagenet,insecure=true,replicas=2,drainTimeout=5,cache.index=1"

HOG = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
held = []
while True:
    held.append(b"x" * (8 << 20))
    time.sleep(0.002)
"""


@contextmanager
def installed(cluster: Cluster, values: str = "", *others: str) -> Iterator[None]:
    """Two nodes."""
    chosen = f"{VALUES},{values}" if values else VALUES
    helm(cluster, "install", "feedwater", str(CHART), *SMALL, "--set", chosen, *others)
    try:
        yield
    finally:
        helm(cluster, "uninstall", "feedwater", "--wait")


@pytest.fixture(scope="module")
def nodes(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Two nodes, ready."""
    with installed(cluster):
        await_nodes(cluster, 2)
        yield


def survives(
    cluster: Cluster, pictures: Path, fault: Callable[[dict[str, Any]], None], what: str, steps: int = 300
) -> None:
    """A job whose first pod meets a fault. All its batches come."""
    options = ("--steps", str(steps), *SHAPE)
    job = Training(cluster, "fault", [*options, *PACE])
    job.step(30)
    fault(min(pods(cluster), key=lambda pod: pod["metadata"]["name"]))
    at = len(job.told().steps)
    assert job.digest() == undisturbed(pictures / "train", *options)
    stall, longest = job.told().stall()
    report(f"{what} at step {at} of {steps}: stall {stall:.2%}, longest wait {longest:.2f} s, digest equal")
    assert at < steps, "the job was over before the fault was"
    job.delete()
    await_nodes(cluster, 2)


def await_end(cluster: Cluster, pod: dict[str, Any]) -> None:
    """Waits until a pod ends."""
    name = pod["metadata"]["name"]
    await_that("it goes", lambda: name not in {p["metadata"]["name"] for p in pods(cluster)}, 30, cluster.tails)


def test_killed_for_its_memory(nodes: None, cluster: Cluster, pictures: Path) -> None:
    """Another process in its control group uses up the pod's limit; the kernel ends the node."""

    def use_up(pod: dict[str, Any]) -> None:
        program = program_of(pod)
        lines = Path(f"/proc/{program}/cgroup").read_text().splitlines()
        group = next(line.split(":")[2] for line in lines if line.split(":")[1] == "memory")
        hog = subprocess.Popen([sys.executable, "-c", HOG, f"/sys/fs/cgroup/memory{group}/cgroup.procs"])
        try:
            await_that("the node is ended", lambda: not Path(f"/proc/{program}/exe").exists(), 60, cluster.tails)
        finally:
            hog.kill()
            hog.wait()

        def is_said() -> bool:
            status = cluster.get("-n", NAMESPACE, "pod", pod["metadata"]["name"])["status"]["containerStatuses"][0]
            return bool(status["lastState"].get("terminated", {}).get("reason") == "OOMKilled")

        await_that("OOMKilled", is_said, 30, cluster.tails)

    survives(cluster, pictures, use_up, "OOMKilled")


def test_evicted(nodes: None, cluster: Cluster, pictures: Path) -> None:
    """As `kubectl drain` does it, in keeping with the budget."""

    def evict(pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        metadata = {"name": name, "namespace": NAMESPACE}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        where = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
        cluster.kubectl("create", f"--raw={where}", "-f", "-", text=json.dumps(eviction))
        await_end(cluster, pod)

    survives(cluster, pictures, evict, "evicted")


def volume_of(cluster: Cluster, pod: dict[str, Any]) -> Path:
    """The pod's cache, as the kubelet has it."""
    return (
        cluster.folder / "kubelet" / "pods" / pod["metadata"]["uid"] / "volumes" / "kubernetes.io~empty-dir" / "cache"
    )


def test_root_is_read_only(nodes: None, cluster: Cluster) -> None:
    """All but the cache."""
    mounts = Path(f"/proc/{program_of(pods(cluster)[0])}/mounts").read_text().splitlines()
    writable = {fields[1] for line in mounts if "rw" in (fields := line.split())[3].split(",")}
    of_system = ("/proc", "/dev", "/sys")
    assert {place for place in writable if not place.startswith(of_system)} == {
        "/var/cache/feedwater",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/etc/hostname",
    } & writable
    assert "/var/cache/feedwater" in writable


@contextmanager
def cache_limited(cluster: Cluster, limit: str) -> Iterator[None]:
    """Pods whose cache may have less than the chart allows at least, which would be much to write."""

    def patch(limit: str) -> str:
        before = cluster.get("-n", NAMESPACE, "deployment", "feedwater")["spec"]["template"]["spec"]["volumes"]
        volume = {"name": "cache", "emptyDir": {"sizeLimit": limit}}
        change = json.dumps({"spec": {"template": {"spec": {"volumes": [volume]}}}})
        cluster.kubectl("-n", NAMESPACE, "patch", "deployment", "feedwater", "-p", change)
        cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/feedwater", "--timeout=90s")
        await_nodes(cluster, 2)
        return next(str(v["emptyDir"]["sizeLimit"]) for v in before if v["name"] == "cache")

    before = patch(limit)
    try:
        yield
    finally:
        patch(before)


def test_evicted_for_a_cache_beyond_its_limit(nodes: None, cluster: Cluster, pictures: Path) -> None:
    """Nodes stop before the limit; where something else writes, the kubelet ends the pod, and another one comes."""

    def exceed(pod: dict[str, Any]) -> None:
        (volume_of(cluster, pod) / "other").write_bytes(bytes(32 << 20))
        name = pod["metadata"]["name"]

        # A node ends without an error when it is told to, so that the pod is called Completed and not Evicted.
        def events() -> str:
            return cluster.kubectl("-n", NAMESPACE, "get", "events", "--field-selector=reason=Evicted")

        said = 'EmptyDir volume "cache" exceeds the limit'
        await_that("the kubelet evicts it", lambda: name in events() and said in events(), 60, events)
        await_end(cluster, pod)

    with cache_limited(cluster, "16Mi"):
        survives(cluster, pictures, exceed, "evicted by the kubelet", steps=800)


def fill(place: Path) -> None:
    """Lets a volume in memory have no more than it has, and no room."""
    there = os.statvfs(place)
    used = (there.f_blocks - there.f_bfree) * there.f_frsize
    subprocess.run(["mount", "-o", f"remount,size={used + (1 << 16)}", place], check=True)
    with (place / "other").open("wb") as file:
        while (free := os.statvfs(place).f_bfree) > 0:
            os.posix_fallocate(file.fileno(), file.tell(), free * there.f_frsize)
            file.seek(0, os.SEEK_END)


def test_a_cache_that_is_full(nodes: None, cluster: Cluster, pictures: Path) -> None:
    """Nothing more can be written: nodes serve without lists and indexes on disk."""
    helm(cluster, "upgrade", "feedwater", str(CHART), "--reuse-values", "--set", "cache.medium=Memory")
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/feedwater", "--timeout=90s")
    for pod in await_nodes(cluster, 2):
        fill(volume_of(cluster, pod))
    job = Training(cluster, "full", JOB)
    assert job.digest() == undisturbed(pictures / "train", *JOB)
    assert all(pod["status"]["containerStatuses"][0]["restartCount"] == 0 for pod in pods(cluster))
    job.delete()


def test_quota(nodes: None, cluster: Cluster) -> None:
    """Where a quota asks for limits, pods with limits.cpu are let in, and the others are refused by its name."""
    hard = {"limits.cpu": "4", "limits.memory": "8Gi", "pods": "20"}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "quota", "namespace": NAMESPACE},
            "spec": {"hard": hard},
        }
    )
    try:
        helm(cluster, "upgrade", "feedwater", str(CHART), "--reuse-values", "--set", "replicas=3")

        def events() -> str:
            return cluster.kubectl("-n", NAMESPACE, "get", "events")

        await_that("it is refused", lambda: "failed quota: quota: must specify limits.cpu" in events(), 60, events)
        helm(cluster, "upgrade", "feedwater", str(CHART), "--reuse-values", "--set", "resources.limits.cpu=500m")
        await_nodes(cluster, 3)
    finally:
        cluster.kubectl("-n", NAMESPACE, "delete", "resourcequota", "quota")
