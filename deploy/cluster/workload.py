"""What tests run in the cluster: claims, training jobs, and what became of them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

from cluster import TRAINER_IMAGE, Cluster, processes_of
from enginetest.job import Told, told_in
from enginetest.pages import ROOT, blocks, replaced
from enginetest.processes import await_that

NAMESPACE, CHART = "feedwater", ROOT / "deploy" / "helm" / "feedwater"
NODES = "k8s:feedwater/feedwater:grpc"
NUMBERS = itertools.count(1)
SMALL = ("--set", "resources.requests.cpu=50m,resources.requests.memory=128Mi,resources.limits.memory=1Gi")
"""The page's pods ask for four cores each, which this machine has not."""


def volume(name: str, folder: Path) -> list[dict[str, Any]]:
    """A folder of this machine as a volume that many pods may read, and a claim of it."""
    spec = {"accessModes": ["ReadOnlyMany"], "storageClassName": "local"}
    where = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["machine"]}]}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{NAMESPACE}-{name}"},
            "spec": spec
            | {
                "capacity": {"storage": "1Gi"},
                "local": {"path": str(folder)},
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": NAMESPACE, "name": name},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [where]}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec | {"resources": {"requests": {"storage": "1Gi"}}},
        },
    ]


def make_namespace(cluster: Cluster, folder: Path) -> str:
    """Makes the namespace of the page, with Pod Security "restricted", and its claim `imagenet` of a folder."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}},
        *volume("imagenet", folder),
    )
    return NAMESPACE


class Training:
    """A Job of the page, with this tree's trainer. `options` are those of enginetest/trainer.py.

    `more` is what the page adds below spec.template.spec of it.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        options: Sequence[str],
        nodes: str = NODES,
        account: str = "default",
        image: str = TRAINER_IMAGE,
        env: dict[str, str] | None = None,
        more: str = "",
    ):
        # Logs of a pod are there for a while after it: no two jobs have one name.
        self.cluster, self.name = cluster, f"{name}-{next(NUMBERS)}"
        command = ["python", "-u", "train.py", "imagenet/train", "--nodes", nodes, *options]
        text = blocks("docs/kubernetes.md", "yaml")[0]
        job = _to_json(cluster, replaced(text, {"[python, train.py]": json.dumps(command), TRAINER_IMAGE: image}))
        job["metadata"] |= {"name": self.name, "namespace": NAMESPACE}
        pod = job["spec"]["template"]["spec"]
        pod["serviceAccountName"] = account
        # Python as the first process of a pod does not hear SIGTERM: without this it trains on for 30 s.
        pod["terminationGracePeriodSeconds"] = 1
        pod["containers"][0]["env"] = [{"name": name, "value": value} for name, value in (env or {}).items()]
        if more:
            head = "apiVersion: v1\nkind: Pod\nmetadata: {name: more}\nspec:\n"
            added = _to_json(cluster, head + indent(more, "  "))["spec"]
            pod["volumes"] = added["volumes"]
            pod["containers"][0]["volumeMounts"] = added["containers"][0]["volumeMounts"]
        cluster.apply(job)

    def log(self) -> str:
        """What its pods have said, read where the kubelet writes it."""
        files = sorted(Path("/var/log/pods").glob(f"{NAMESPACE}_{self.name}-*/train/*.log"))
        lines = [line for file in files for line in file.read_text(errors="replace").splitlines()]
        return "\n".join(re.sub(r"^\S+ (stdout|stderr) [FP] ", "", line) for line in lines)

    def told(self) -> Told:
        """What it has told of its steps."""
        return told_in(self.log())

    def _running(self) -> Told:
        """What it has told. It must not have failed."""
        log = self.log()
        assert "Traceback (most recent call last)" not in log, log[-3000:]
        return told_in(log)

    def step(self, n: int, within: float = 120) -> None:
        """Waits until it has taken so many batches."""
        await_that(
            f"step {n} of {self.name}",
            lambda: len(self._running().steps) >= n,
            within,
            lambda: self.log()[-3000:] + self.cluster.tails(),
        )

    def digest(self, within: float = 300) -> str:
        """Waits for its end."""
        return await_that(f"{self.name} ends", lambda: self._running().digest, within, lambda: self.log()[-3000:]) or ""

    def delete(self) -> None:
        """Takes it away, with its pods."""
        self.cluster.kubectl("-n", NAMESPACE, "delete", "job", self.name, "--wait", "--cascade=foreground")


def steps_a_second(cluster: Cluster, steps: int, *options: str) -> float:
    """What the pods that there are make, for a job that takes all it gets."""
    job = Training(cluster, "capacity", ["--steps", str(steps), *options])
    job.digest()
    told = job.told().steps
    first = len(told) // 3
    job.delete()
    return (len(told) - first) / (told[-1]["at"] - told[first - 1]["at"])


def helm(cluster: Cluster, *arguments: str) -> str:
    """Runs Helm on the chart's release."""
    return cluster.run("helm", "--namespace", NAMESPACE, *arguments)


def pods(cluster: Cluster) -> list[dict[str, Any]]:
    """The nodes of the chart that do not end, and have not."""
    found = cluster.get("-n", NAMESPACE, "pods", "-l", "app.kubernetes.io/component=node")["items"]
    over = ("Succeeded", "Failed")
    return [p for p in found if "deletionTimestamp" not in p["metadata"] and p["status"].get("phase") not in over]


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether a pod is ready."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def ready(cluster: Cluster) -> list[dict[str, Any]]:
    """The pods that are ready."""
    return [pod for pod in pods(cluster) if is_ready(pod)]


def await_nodes(cluster: Cluster, n: int, within: float = 120) -> list[dict[str, Any]]:
    """Waits until so many nodes are ready, and no other is there."""

    def there() -> list[dict[str, Any]]:
        found = pods(cluster)
        return found if len(found) == n and all(map(is_ready, found)) else []

    def says() -> str:
        return cluster.kubectl("-n", NAMESPACE, "describe", "pods")[-4000:] + cluster.tails()

    return await_that(f"{n} nodes", there, within, says) if n else []


def program_of(pod: dict[str, Any]) -> int:
    """The number of the process of a node's pod."""
    return processes_of(pod["metadata"]["uid"], "serve")[0]


def _to_json(cluster: Cluster, text: str) -> dict[str, Any]:
    """An object that stands somewhere as YAML."""
    said = cluster.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", text=text)
    found: dict[str, Any] = json.loads(said)
    return found
