"""What tests run in the cluster: claims, training jobs, and what became of them."""

from __future__ import annotations

import itertools
import json
import re
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster import Cluster, processes_of
from enginetest.job import Told, told_in
from enginetest.pages import ROOT, blocks, replaced
from enginetest.processes import await_that

NAMESPACE, CHART = "feedwater", ROOT / "deploy" / "helm" / "feedwater"
NODES = "k8s:feedwater/feedwater:grpc"
NUMBERS = itertools.count(1)
SMALL = ("--set", "resources.requests.cpu=50m,resources.requests.memory=128Mi,resources.limits.memory=1Gi")
"""The page's pods ask for four cores each, which this machine has not."""


def volume(name: str, folder: Path, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """A folder of this machine as a volume that many pods may read, and a claim of it."""
    spec = {"accessModes": ["ReadOnlyMany"], "storageClassName": "local"}
    where = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["machine"]}]}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{namespace}-{name}"},
            "spec": spec
            | {
                "capacity": {"storage": "1Gi"},
                "local": {"path": str(folder)},
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": namespace, "name": name},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [where]}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec | {"resources": {"requests": {"storage": "1Gi"}}},
        },
    ]


class Training:
    """A Job of the page, with this tree's trainer. `options` are those of enginetest/trainer.py."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        options: Sequence[str],
        nodes: str = NODES,
        namespace: str = NAMESPACE,
        account: str = "default",
        env: Sequence[dict[str, Any]] = (),
    ):
        # Logs of a pod are there for a while after it: no two jobs have one name.
        self.cluster, self.name, self.namespace = cluster, f"{name}-{next(NUMBERS)}", namespace
        command = ["python", "-u", "train.py", "imagenet/train", "--nodes", nodes, *options]
        job = _to_json(
            cluster, replaced(blocks("docs/kubernetes.md", "yaml")[0], {"[python, train.py]": json.dumps(command)})
        )
        job["metadata"] |= {"name": self.name, "namespace": namespace}
        pod = job["spec"]["template"]["spec"]
        pod["serviceAccountName"] = account
        pod["containers"][0]["env"] = list(env)
        cluster.apply(job)

    def log(self) -> str:
        """What its pods have said, read where the kubelet writes it."""
        files = sorted(Path("/var/log/pods").glob(f"{self.namespace}_{self.name}-*/train/*.log"))
        lines = [line for file in files for line in file.read_text(errors="replace").splitlines()]
        return "\n".join(re.sub(r"^\S+ (stdout|stderr) [FP] ", "", line) for line in lines)

    def told(self) -> Told:
        """What it has told of its steps."""
        return told_in(self.log())

    def step(self, n: int, within: float = 120) -> None:
        """Waits until it has taken so many batches."""
        await_that(
            f"step {n} of {self.name}",
            lambda: len(self.told().steps) >= n,
            within,
            lambda: self.log()[-3000:] + self.cluster.tails(),
        )

    def digest(self, within: float = 300) -> str:
        """Waits for its end."""
        return await_that(f"{self.name} ends", lambda: self.told().digest, within, lambda: self.log()[-3000:]) or ""

    def delete(self) -> None:
        """Takes it away, with its pods."""
        self.cluster.kubectl(
            "-n", self.namespace, "delete", "job", self.name, "--wait", "--cascade=foreground", "--grace-period=1"
        )


def helm(cluster: Cluster, *arguments: str) -> str:
    """Runs Helm on the chart's release."""
    return cluster.run("helm", "--namespace", NAMESPACE, *arguments)


def pods(cluster: Cluster, component: str = "node") -> list[dict[str, Any]]:
    """The pods of a component of the chart that do not end."""
    found = cluster.get("-n", NAMESPACE, "pods", "-l", f"app.kubernetes.io/component={component}")["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether a pod is ready."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def ready(cluster: Cluster, component: str = "node") -> list[dict[str, Any]]:
    """The pods that are ready."""
    return [pod for pod in pods(cluster, component) if is_ready(pod)]


def await_nodes(cluster: Cluster, n: int, within: float = 120) -> list[dict[str, Any]]:
    """Waits until so many nodes are ready, and no other is there."""

    def there() -> list[dict[str, Any]]:
        found = pods(cluster)
        return found if len(found) == n == len([p for p in found if is_ready(p)]) else []

    def says() -> str:
        return cluster.kubectl("-n", NAMESPACE, "describe", "pods")[-4000:] + cluster.tails()

    return await_that(f"{n} nodes", there, within, says) if n else []


def program_of(pod: dict[str, Any], word: str = "serve") -> int:
    """The number of the process that a pod runs."""
    return processes_of(pod["metadata"]["uid"], word)[0]


def samples_made(cluster: Cluster) -> int:
    """How many samples the pods have sent, as their metrics say."""
    total = 0.0
    for pod in pods(cluster):
        with urllib.request.urlopen(f"http://{pod['status']['podIP']}:7071/metrics", timeout=10) as answer:
            found = re.search(r"^feedwater_node_samples_total (\S+)", answer.read().decode(), re.MULTILINE)
        total += float(found[1]) if found else 0.0
    return round(total)


def _to_json(cluster: Cluster, text: str) -> dict[str, Any]:
    """An object that stands somewhere as YAML."""
    said = cluster.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", text=text)
    found: dict[str, Any] = json.loads(said)
    return found
