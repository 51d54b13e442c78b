"""Faults of pods, links, the kubelet and the API server. Each ends with its function."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from workload import NAMESPACE, await_nodes, pods, program_of

from cluster import SIX, Cluster

NODES = 5
"""Pods that there are before each fault, and after it."""


def scale(cluster: Cluster, n: int) -> None:
    """As many pods as told, all ready."""
    cluster.kubectl("-n", NAMESPACE, "scale", "deployment/feedwater", f"--replicas={n}")
    await_nodes(cluster, n)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that stands still."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def cut_off(pid: int) -> Iterator[None]:
    """A pod whose packets all vanish, without a word."""

    def rules(action: str) -> None:
        for chain, link in (("INPUT", "-i"), ("OUTPUT", "-o")):
            rule = ["ip6tables" if SIX else "iptables", action, chain, "!", link, "lo", "-j", "DROP"]
            subprocess.run(["nsenter", "-t", str(pid), "-n", *rule], check=True)

    rules("-A")
    try:
        yield
    finally:
        rules("-D")


def a_pod(cluster: Cluster) -> int:
    """The program of one of the pods."""
    return program_of(min(pods(cluster), key=lambda pod: pod["metadata"]["name"]))


def nothing(cluster: Cluster) -> None:
    """No fault."""


def kill_pod(cluster: Cluster) -> None:
    """A pod's program dies; the kubelet starts another one."""
    os.kill(a_pod(cluster), signal.SIGKILL)
    await_nodes(cluster, NODES)


def roll_out(cluster: Cluster) -> None:
    """All pods are replaced, one after the other."""
    cluster.kubectl("-n", NAMESPACE, "rollout", "restart", "deployment/feedwater")
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/feedwater")
    await_nodes(cluster, NODES)


def scale_out_and_in(cluster: Cluster) -> None:
    """Four pods more, then five fewer, and back."""
    for n in (9, 4, NODES):
        scale(cluster, n)


def black_hole(cluster: Cluster) -> None:
    """A pod is cut off for 12 s."""
    with cut_off(a_pod(cluster)):
        time.sleep(12)
    await_nodes(cluster, NODES)


def stop_pod(cluster: Cluster) -> None:
    """A pod stands still for 8 s."""
    with stopped(a_pod(cluster)):
        time.sleep(8)
    await_nodes(cluster, NODES)


def freeze_kubelet(cluster: Cluster) -> None:
    """For 20 s: the control plane calls the machine, and so each of its pods, not ready."""
    with stopped(cluster.parts["kubelet"].pid):
        time.sleep(20)
    await_nodes(cluster, NODES)


def freeze_apiserver(cluster: Cluster, seconds: float) -> None:
    """Nobody hears of pods any more."""
    with stopped(cluster.parts["kube-apiserver"].pid):
        time.sleep(seconds)
    await_nodes(cluster, NODES)
