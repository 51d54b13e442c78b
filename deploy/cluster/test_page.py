"""What docs/kubernetes.md has people type, on a real cluster."""

from __future__ import annotations

import re
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from keda import CERTIFICATE, definitions
from workload import CHART, NAMESPACE, SMALL, Training, await_nodes, helm, ready

from cluster import Cluster
from enginetest.job import told_in, undisturbed
from enginetest.pages import ROOT, blocks, replaced
from enginetest.processes import Process, await_that
from enginetest.report import report

CLUSTER = ROOT / "deploy" / "cluster"
STEPS = ("--steps", "40", "--batch", "32", "--picture", "64")


def shell_lines() -> list[str]:
    """The lines that the page has people type, continued ones as one."""
    return [line for block in blocks("docs/kubernetes.md", "sh") for line in block.replace("\\\n", " ").splitlines()]


@pytest.fixture(scope="module")
def installed(cluster: Cluster, namespace: str) -> float:
    """The page's first block; seconds until three pods are ready."""
    commands = [
        line
        for line in blocks("docs/kubernetes.md", "sh")[0].replace("\\\n", " ").splitlines()
        if not line.startswith(("make ", "skopeo "))  # cluster.py has the image where these send it
    ]
    assert [c.split()[0] for c in commands] == ["helm", "kubectl"]
    began = time.monotonic()
    cluster.run("bash", "-euc", f"{commands[0]} {' '.join(SMALL)}")
    cluster.run("bash", "-euc", commands[1])
    took = time.monotonic() - began
    await_nodes(cluster, 3)
    return took


def test_three_pods_are_ready(installed: float) -> None:
    report(f"helm install → three Ready pods {installed:.1f} s")
    assert installed <= 15


def test_a_job_gets_its_batches(installed: float, cluster: Cluster, pictures: Path) -> None:
    """The page's Job, found by EndpointSlices with the rights that the chart gives."""
    began = time.time()
    job = Training(cluster, "train", STEPS)
    assert job.digest() == undisturbed(pictures / "train", *STEPS)
    first = job.told().steps[0]["at"] - began
    report(f"Job → first batch {first:.1f} s")
    assert first <= 30
    job.delete()


def test_the_job_to_try_is_the_pages() -> None:
    """train.yaml is the page's Job, but for the command and comments."""

    def bare(text: str) -> list[str]:
        return [line.split(" #")[0].rstrip() for line in text.splitlines() if not line.startswith("#")]

    page, file = bare(blocks("docs/kubernetes.md", "yaml")[0]), bare((CLUSTER / "train.yaml").read_text())
    differ = [(ours, theirs) for ours, theirs in zip(page, file, strict=True) if ours != theirs]
    assert [ours.split(":")[0].strip() for ours, _ in differ] == ["command"], differ


def test_what_is_tried_on_one_machine(installed: float, cluster: Cluster, pictures: Path) -> None:
    """The commands of the page that follow `make cluster`, once the chart is there."""
    tried = [block for block in blocks("docs/kubernetes.md", "sh") if "make cluster" in block]
    lines = tried[0].replace("\\\n", " ").splitlines()
    commands = [line for line in lines if line.startswith("kubectl")]
    assert [line.split()[0] for line in lines] == ["make", "helm", *["kubectl"] * 4, "helm"]
    said = [cluster.run("bash", "-euc", command) for command in commands]
    assert told_in(said[2]).digest == undisturbed(pictures, "--steps", "40")


def test_without_the_role_it_is_named(installed: float, cluster: Cluster) -> None:
    """The error has the rights that are lacking."""
    cluster.kubectl("-n", NAMESPACE, "create", "serviceaccount", "stranger")
    job = Training(cluster, "norole", ["--start-timeout", "6", *STEPS], account="stranger")
    said = await_that("it gives up", lambda: re.search(".*Error: .*", job.log()), 60, job.log)[0]
    report(said[:300])
    assert "403 Forbidden" in said and "Role" in said and "endpointslices" in said, said
    warned = await_that("it warns", lambda: re.search("nodes cannot all be listed.*", job.log()), 5, job.log)[0]
    assert "Role with get, list and watch on endpointslices" in warned, warned
    job.delete()


def test_a_name_does_without_the_role(installed: float, cluster: Cluster, pictures: Path) -> None:
    """The Service's name in DNS stands for its pods."""
    job = Training(cluster, "named", STEPS, nodes="dns:feedwater.feedwater.svc:7070", account="stranger")
    assert job.digest() == undisturbed(pictures / "train", *STEPS)
    job.delete()


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("k8s:feedwater/feedwater:grpcs", "grpcs"),
        ("k8s:feedwater/feedwatr:grpc", "feedwatr"),
        ("k8s:elsewhere/feedwater:grpc", "elsewhere"),
        ("k8s:feedwater/empty:grpc", "Service empty in namespace feedwater has no pod that is ready"),
    ],
    ids=["port", "service", "namespace", "pods"],
)
def test_nodes_that_are_named_wrong(installed: float, cluster: Cluster, nodes: str, said: str) -> None:
    """The error names what was asked for, within start_timeout."""
    empty = {"selector": {"app": "none"}, "clusterIP": "None", "ports": [{"name": "grpc", "port": 7070}]}
    service = {"metadata": {"name": "empty", "namespace": NAMESPACE}, "spec": empty}
    cluster.apply({"apiVersion": "v1", "kind": "Service", **service})
    job = Training(cluster, "wrong", ["--start-timeout", "6", *STEPS], nodes=nodes)
    await_that("it gives up", lambda: "Error: " in job.log(), 60, job.log)
    error = next(line for line in job.log().splitlines() if "Error: " in line)
    report(error[:200])
    assert said in error, error
    job.delete()
    cluster.kubectl("-n", NAMESPACE, "delete", "service", "empty")


def test_rights(installed: float, cluster: Cluster) -> None:
    """Trainers may look up nodes, and nothing else; nodes may nothing."""

    def may(account: str, *what: str) -> bool:
        return (
            cluster.kubectl(
                "auth",
                "can-i",
                *what,
                "-n",
                NAMESPACE,
                f"--as=system:serviceaccount:{NAMESPACE}:{account}",
                check=False,
            ).strip()
            == "yes"
        )

    assert all(may("default", verb, "endpointslices.discovery.k8s.io") for verb in ("get", "list", "watch"))
    assert not any(
        may("default", verb, what)
        for verb, what in [("get", "secrets"), ("list", "pods"), ("delete", "endpointslices.discovery.k8s.io")]
    )
    assert not any(may("feedwater", verb, "endpointslices.discovery.k8s.io") for verb in ("get", "list", "watch"))


def test_a_folder_of_the_machine_is_refused(installed: float, cluster: Cluster, pictures: Path) -> None:
    """Pod Security "restricted" lets no pod with a hostPath in."""
    helm(
        cluster,
        "install",
        "other",
        str(CHART),
        "--set",
        f"data.imagenet.hostPath={pictures}",
        "--set",
        "insecure=true",
        *SMALL,
    )
    await_that(
        "it is refused",
        lambda: "restricted volume types" in cluster.kubectl("-n", NAMESPACE, "get", "events"),
        60,
        cluster.tails,
    )
    helm(cluster, "uninstall", "other", "--wait")


def test_a_secret_that_is_missing(installed: float, cluster: Cluster) -> None:
    """Its pods do not start, and describe says why; the others go on."""
    helm(
        cluster,
        "upgrade",
        "feedwater",
        str(CHART),
        "--reuse-values",
        "--set",
        "buckets.secret=none",
    )
    await_that(
        "it is said",
        lambda: 'secret "none" not found' in cluster.kubectl("-n", NAMESPACE, "get", "events"),
        60,
        cluster.tails,
    )
    assert len(ready(cluster)) == 3
    helm(cluster, "rollback", "feedwater", "1")
    await_nodes(cluster, 3)


def replicas(cluster: Cluster) -> int:
    """How many nodes the Deployment asks for."""
    found: int = cluster.get("-n", NAMESPACE, "deployment", "feedwater")["spec"]["replicas"]
    return found


def test_keda_keeps_the_nodes_that_there_are(installed: float, cluster: Cluster) -> None:
    """KEDA's objects are known and nobody follows them: what changes the number is the upgrade alone."""
    cluster.kubectl("apply", "--server-side", "-f", definitions())
    served = ("scaledobjects", "triggerauthentications")

    def says() -> str:
        return cluster.kubectl("get", "--raw", "/apis/keda.sh/v1alpha1", check=False)

    await_that("the API server has them", lambda: all(f'"name":"{kind}"' in says() for kind in served), 30, says)
    for there in (2, 0):
        cluster.kubectl("-n", NAMESPACE, "scale", "deployment/feedwater", f"--replicas={there}")
        for upgrade in ("first", "next"):
            helm(cluster, "upgrade", "feedwater", str(CHART), "--reuse-values", "--set", "keda.enabled=true")
            assert replicas(cluster) == there, upgrade
    helm(cluster, "rollback", "feedwater", "1")
    await_nodes(cluster, 3)


def test_who_may_edit_installs_it(installed: float, cluster: Cluster) -> None:
    """ClusterRole edit allows all objects of rbac.create=false, and not the Role."""
    account = f"{NAMESPACE}:editor"
    cluster.kubectl("-n", NAMESPACE, "create", "serviceaccount", "editor")
    cluster.kubectl(
        "-n", NAMESPACE, "create", "rolebinding", "editor", "--clusterrole=edit", f"--serviceaccount={account}"
    )

    def apply(create: str) -> str:
        values = ("--values", str(CHART / "ci" / "edit.yaml"), "--set", f"rbac.create={create}")
        objects = helm(cluster, "template", "other", str(CHART), "--kube-version", "1.36", *values)
        return cluster.kubectl(
            "apply", "--dry-run=server", f"--as=system:serviceaccount:{account}", "-f", "-", text=objects
        )

    assert "deployment.apps/other-feedwater-scaler" in apply("false")
    with pytest.raises(AssertionError, match=r'cannot \w+ resource "roles"'):
        apply("true")
    cluster.kubectl("-n", NAMESPACE, "delete", "rolebinding/editor", "serviceaccount/editor")


def test_the_page_by_port_forward(installed: float, cluster: Cluster) -> None:
    """The command that shows a node's page."""
    (command,) = [line for line in shell_lines() if "port-forward" in line]
    forward = Process(["bash", "-euc", f"exec {command}"], cluster.folder / "log" / "forward", cluster.env)
    try:
        await_that("it forwards", lambda: "Forwarding from" in forward.said(), 30, forward.tail)
        with urllib.request.urlopen("http://127.0.0.1:7071/", timeout=10) as answer:
            assert b"<html" in answer.read().lower()
    finally:
        forward.stop()


def test_who_is_let_in(installed: float, cluster: Cluster, pictures: Path, tmp_path: Path) -> None:
    """The page's Secrets, its values, and what it adds to the Job."""
    (block,) = [block for block in blocks("docs/kubernetes.md", "sh") if "create secret" in block]
    (values,) = [text for text in blocks("docs/kubernetes.md", "yaml") if "\nidentities:" in text]
    (more,) = [text for text in blocks("docs/kubernetes.md", "yaml") if "ca.crt" in text]
    subprocess.run(
        ["bash", "-euc", CERTIFICATE, "keys", tmp_path, "DNS:feedwater.feedwater.svc"], check=True, capture_output=True
    )
    (tmp_path / "tokens").write_text("team-a 0123456789abcdef\nscaler fedcba9876543210\n")
    (tmp_path / "token").write_text("0123456789abcdef\n")
    (tmp_path / "values.yaml").write_text(values)
    *secrets, upgrade = block.splitlines()
    for line in secrets:
        cluster.run("bash", "-euc", f"cd {tmp_path}; {line}")
    upgrade = replaced(upgrade, {"values.yaml": str(tmp_path / "values.yaml")})
    cluster.run("bash", "-euc", f"{upgrade} {' '.join(SMALL)}")
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/feedwater", "--timeout=120s")
    await_nodes(cluster, 3)
    ca, token = {"FEEDWATER_TLS_CA": "/etc/feedwater/ca.crt"}, {"FEEDWATER_TOKEN_FILE": "/etc/feedwater/token"}
    job = Training(cluster, "known", STEPS, env=ca | token, more=more)
    assert job.digest() == undisturbed(pictures / "train", *STEPS)
    job.delete()
    job = Training(cluster, "unknown", ["--start-timeout", "6", *STEPS], env=ca, more=more)
    said = await_that("it gives up", lambda: re.search(".*Error: .*", job.log()), 60, job.log)[0]
    report(said[:300])
    assert "token" in said, said
    job.delete()
    helm(cluster, "rollback", "feedwater", "1")
    await_nodes(cluster, 3)
    cluster.kubectl("-n", NAMESPACE, "delete", "secret", "feedwater-tls", "feedwater-tokens", "feedwater-team-a")


def test_nothing_is_left(installed: float, cluster: Cluster) -> None:
    """Helm takes away what it has brought; pods take until they have drained."""
    helm(cluster, "uninstall", "feedwater", "--wait")
    kinds = "deployments replicasets services endpointslices configmaps serviceaccounts roles rolebindings secrets"
    kinds = ",".join([*kinds.split(), "networkpolicies", "poddisruptionbudgets", "pods"])
    others = {"serviceaccount/default", "serviceaccount/stranger", "configmap/kube-root-ca.crt"}

    def left() -> set[str]:
        return set(cluster.kubectl("-n", NAMESPACE, "get", kinds, "-o", "name").split()) - others

    await_that("nothing is left", lambda: not left(), 90, lambda: str(left()))


def test_manifests_without_helm(installed: float, cluster: Cluster) -> None:
    """What is applied is taken, and deleting it leaves the namespace, with what people have there."""
    apply, delete = [line for line in shell_lines() if "-f deploy/kubernetes" in line]
    assert [line.split()[1] for line in (apply, delete)] == ["apply", "delete"]
    assert "deployment.apps/feedwater created" in cluster.run("bash", "-euc", apply)
    cluster.run("bash", "-euc", delete)
    assert "deletionTimestamp" not in cluster.get("namespace", NAMESPACE)["metadata"]
    claim = cluster.get("-n", NAMESPACE, "persistentvolumeclaim", "imagenet")
    assert claim["status"]["phase"] == "Bound"
    assert "deletionTimestamp" not in claim["metadata"]
