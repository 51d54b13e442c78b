"""KEDA beside the cluster: its operator and its metrics server as processes of this machine."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

from cluster import HERE, Cluster
from enginetest.processes import await_that

MODULE = Path(__file__).parent / "keda"
"""A go.mod with its version."""
NAMESPACE = "keda"
SERVER, OPERATOR = "keda-metrics-apiserver", "keda-operator"
PORT, OPERATOR_PORT = 6444, 9666
METRICS = "v1beta1.external.metrics.k8s.io"

CERTIFICATE = """
cd "$1"
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 30 -subj /CN=keda-ca
openssl req -newkey rsa:2048 -nodes -keyout tls.key -out tls.csr -subj /CN=keda
printf 'subjectAltName=%s' "$2" >names
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out tls.crt -days 30 -extfile names
"""


def start_keda(cluster: Cluster) -> None:
    """Starts it, and waits until the API server has metrics of it."""
    certificates = cluster.folder / "keda"
    certificates.mkdir()
    names = f"DNS:{SERVER}.{NAMESPACE}.svc,IP:127.0.0.1,IP:{HERE}"
    subprocess.run(["bash", "-euc", CERTIFICATE, "keda", certificates, names], check=True, capture_output=True)
    cluster.kubectl("apply", "--server-side", "-f", definitions())
    cluster.apply(*_objects((certificates / "ca.crt").read_bytes()))
    _start_programs(cluster, certificates)

    def is_there() -> bool:
        conditions = cluster.get("apiservice", METRICS)["status"].get("conditions", [])
        return any(c["type"] == "Available" and c["status"] == "True" for c in conditions)

    await_that("KEDA's metrics are there", is_there, 60, cluster.tails)


def definitions() -> Path:
    """The definitions of its objects, as its module has them."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "github.com/kedacore/keda/v2"]
    folder = subprocess.run(command, cwd=MODULE, check=True, capture_output=True, text=True).stdout.strip()
    return Path(folder) / "config" / "crd" / "bases"


def _start_programs(cluster: Cluster, certificates: Path) -> None:
    env = {"KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE, "POD_NAMESPACE": NAMESPACE, "WATCH_NAMESPACE": ""}
    cluster.start_part(
        "keda-operator",
        f"--metrics-service-bind-address=127.0.0.1:{OPERATOR_PORT}",
        "--metrics-bind-address=127.0.0.1:8180",
        "--health-probe-bind-address=127.0.0.1:8181",
        f"--cert-dir={certificates}",
        env=env,
    )
    kubeconfigs = ("", "lister-", "authentication-", "authorization-")
    cluster.start_part(
        "keda-adapter",
        f"--metrics-service-address=127.0.0.1:{OPERATOR_PORT}",
        f"--bind-address={HERE}",
        f"--secure-port={PORT}",
        "--port=8182",
        *(f"--{what}kubeconfig={cluster.kubeconfig}" for what in kubeconfigs),
        f"--client-ca-file={certificates}/ca.crt",
        f"--tls-cert-file={certificates}/tls.crt",
        f"--tls-private-key-file={certificates}/tls.key",
        f"--cert-dir={certificates}",
        env=env,
    )


def _objects(ca: bytes) -> list[dict[str, Any]]:
    """What leads the API server to it: a Service without pods, with its address."""
    in_keda = {"namespace": NAMESPACE}
    labels = {"kubernetes.io/service-name": SERVER}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": in_keda | {"name": SERVER},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": PORT}]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": in_keda | {"name": SERVER, "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": PORT, "protocol": "TCP"}],
            "endpoints": [{"addresses": [HERE], "conditions": {"ready": True}}],
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": METRICS},
            "spec": {
                "service": {"name": SERVER, "namespace": NAMESPACE},
                "group": "external.metrics.k8s.io",
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "caBundle": base64.b64encode(ca).decode(),
            },
        },
    ]
