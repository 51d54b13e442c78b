"""A whole Kubernetes on this machine: control plane, one node that runs real containers, and the image of this tree.

It runs within the namespaces that run.sh makes. Programs are those of build.sh; containerd and CNI's
plugins are Debian's.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from images import write_pause, write_trainer

from enginetest.job import BINARY
from enginetest.pages import ROOT
from enginetest.processes import Process, await_that, running

PROGRAMS = Path(os.environ.get("FEEDWATER_CLUSTER_CACHE", ROOT / ".tools" / "cluster"))
SIX = os.environ.get("FEEDWATER_CLUSTER_FAMILY") == "6"
"""There is IPv6 and nothing else."""
HERE = "fd00:97::1" if SIX else "10.97.0.1"
SERVICES = "fd00:96::/112" if SIX else "10.96.0.0/16"
PODS = "fd00:88::/64" if SIX else "10.88.0.0/16"
ALL = "::" if SIX else "0.0.0.0"  # noqa: S104 - of namespaces that nobody else reaches
DOMAIN = "cluster.local"
PAUSE, TRAINER_IMAGE = "feedwater.test/pause:1", "registry.example.org/train:1"
VERSION = (ROOT / "deploy" / "helm" / "feedwater" / "Chart.yaml").read_text().split("\nappVersion: ")[1].split()[0]
IMAGE, SENT = f"docker.io/library/feedwater:{VERSION}", f"registry.example.org/feedwater:{VERSION}"
"""Our image as `make image` calls it, and where the page sends it."""


def in_url(address: str) -> str:
    """An address as URLs have it."""
    return f"[{address}]" if ":" in address else address


CONTAINERD = """
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{programs}/runc"
      SystemdCgroup = false
"""
NETWORK = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": False,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": PODS}]],
                "routes": [{"dst": f"{ALL}/0"}],
                "dataDir": "/run/cni",
            },
        }
    ],
}
KUBECONFIG = f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://{in_url(HERE)}:443", insecure-skip-tls-verify: true}}}}]
users: [{{name: admin, user: {{token: admintoken}}}}]
contexts: [{{name: c, context: {{cluster: c, user: admin}}}}]
current-context: c
"""
NAMES = """
.:53 {{
  errors
  bind {address}
  kubernetes {domain} {{
    kubeconfig {kubeconfig}
  }}
}}
"""
KUBELET = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /{group}
containerRuntimeEndpoint: unix://{folder}/containerd.sock
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
address: "{all}"
failSwapOn: false
nodeStatusUpdateFrequency: 2s
volumeStatsAggPeriod: 2s
evictionHard: {{memory.available: 100Mi, nodefs.available: 200Mi, imagefs.available: 200Mi}}
readOnlyPort: 0
clusterDNS: ["{address}"]
clusterDomain: {domain}
maxPods: 60
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
"""


class Cluster:
    """The cluster. All that it writes lies in one folder, or in memory that is gone with its namespaces."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.parts: dict[str, Process] = {}
        self.kubeconfig = folder / "kubeconfig"
        self.env = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "CONTAINERD_ADDRESS": f"{folder}/containerd.sock",
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "HOME": str(folder),
        }
        (folder / "pki").mkdir(parents=True)
        (folder / "cni").mkdir()
        (folder / "log").mkdir()
        self.kubeconfig.write_text(KUBECONFIG)
        self._write_keys()

    def _write_keys(self) -> None:
        script = """
        cd "$1"
        openssl genrsa -out sa.key 2048 && openssl rsa -in sa.key -pubout -out sa.pub
        for ca in ca proxy-ca; do
          openssl req -x509 -newkey rsa:2048 -nodes -keyout $ca.key -out $ca.crt -days 30 -subj /CN=$ca
        done
        openssl req -newkey rsa:2048 -nodes -keyout proxy.key -out proxy.csr -subj /CN=front-proxy-client
        openssl x509 -req -in proxy.csr -CA proxy-ca.crt -CAkey proxy-ca.key -CAcreateserial -out proxy.crt -days 30
        echo admintoken,admin,admin,system:masters >tokens.csv
        """
        subprocess.run(["bash", "-euc", script, "keys", self.folder / "pki"], check=True, capture_output=True)

    def start(self) -> float:
        """Starts all of it. Returns the seconds until the machine is Ready."""
        began = time.monotonic()
        subprocess.run(["ip", "address", "add", HERE, "dev", "lo"], check=True)
        self._start_etcd()
        self.start_apiserver()
        self._start_controllers()
        self._start_names()
        self._start_containerd()
        self.start_kubelet()
        await_that("the machine is Ready", self._is_ready, 120, self.tails)
        return time.monotonic() - began

    def start_part(
        self, name: str, *arguments: str | Path, program: str | Path | None = None, env: dict[str, str] | None = None
    ) -> Process:
        """Starts a program, with more variables in its environment."""
        command = [program or PROGRAMS / name, *arguments]
        self.parts[name] = Process(command, self.folder / "log" / name, self.env | (env or {}), cwd=self.folder)
        return self.parts[name]

    def _start_etcd(self) -> None:
        url = "http://127.0.0.1:2379"
        self.start_part(
            "etcd",
            "--data-dir",
            self.folder / "etcd",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--log-level=error",
            "--unsafe-no-fsync",
        )

    def start_apiserver(self) -> None:
        """Starts the API server, for the first time or once more."""
        pki = self.folder / "pki"
        self.start_part(
            "kube-apiserver",
            "--etcd-servers=http://127.0.0.1:2379",
            "--secure-port=443",
            f"--bind-address={ALL}",
            f"--advertise-address={HERE}",
            f"--cert-dir={pki}/api",
            f"--service-account-key-file={pki}/sa.pub",
            f"--service-account-signing-key-file={pki}/sa.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={pki}/tokens.csv",
            "--authorization-mode=Node,RBAC",
            f"--client-ca-file={pki}/ca.crt",
            f"--service-cluster-ip-range={SERVICES}",
            "--allow-privileged=true",
            f"--requestheader-client-ca-file={pki}/proxy-ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={pki}/proxy.crt",
            f"--proxy-client-key-file={pki}/proxy.key",
            "--enable-aggregator-routing=true",
            "--kubelet-preferred-address-types=InternalIP",  # for kubectl logs: no DNS has the machine's name
        )
        await_that(
            "the API server is ready",
            lambda: self.kubectl("get", "--raw=/readyz", check=False) == "ok",
            120,
            self.tails,
        )

    def _start_controllers(self) -> None:
        pki = self.folder / "pki"
        self.start_part(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--service-account-private-key-file={pki}/sa.key",
            f"--root-ca-file={pki}/api/apiserver.crt",
            "--use-service-account-credentials=false",
            "--leader-elect=false",
            "--horizontal-pod-autoscaler-sync-period=2s",
            "--node-monitor-grace-period=10s",
            "--bind-address=127.0.0.1",
            "--controllers=*",
            f"--cluster-signing-cert-file={pki}/ca.crt",
            f"--cluster-signing-key-file={pki}/ca.key",
        )
        self.start_part(
            "kube-scheduler", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1"
        )
        self.start_part(
            "kube-proxy",
            f"--kubeconfig={self.kubeconfig}",
            "--proxy-mode=iptables",
            f"--cluster-cidr={PODS}",
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0s",
            "--conntrack-tcp-timeout-close-wait=0s",
        )

    def _start_names(self) -> None:
        """The cluster's DNS, which run.sh names to programs of this machine too."""
        config = self.folder / "Corefile"
        config.write_text(NAMES.format(address=HERE, domain=DOMAIN, kubeconfig=self.kubeconfig))
        self.start_part("coredns", "-conf", config)

    def _start_containerd(self) -> None:
        config = self.folder / "containerd.toml"
        config.write_text(CONTAINERD.format(folder=self.folder, programs=PROGRAMS, pause=PAUSE))
        (self.folder / "cni" / "10-pods.conflist").write_text(json.dumps(NETWORK))
        self.start_part("containerd", "--config", config, program="containerd")
        await_that("containerd answers", lambda: self.ctr("version", check=False), 60, self.tails)
        write_pause(self.folder / "pause.tar", PROGRAMS / "pause", PAUSE)
        self.import_image(self.folder / "pause.tar")
        self.import_image(ROOT / "dist" / "image.tar")
        self.ctr("-n", "k8s.io", "images", "tag", IMAGE, SENT)

    def start_kubelet(self) -> None:
        """Starts the kubelet."""
        config = self.folder / "kubelet.yaml"
        group = os.environ["FEEDWATER_CLUSTER_GROUP"]
        config.write_text(KUBELET.format(folder=self.folder, group=group, address=HERE, all=ALL, domain=DOMAIN))
        self.start_part(
            "kubelet",
            f"--config={config}",
            f"--kubeconfig={self.kubeconfig}",
            f"--root-dir={self.folder}/kubelet",
            "--hostname-override=machine",
            f"--node-ip={HERE}",
        )

    def import_image(self, archive: Path) -> None:
        """Gives an image to containerd, as docs/kubernetes.md has it."""
        self.ctr("-n", "k8s.io", "images", "import", str(archive))

    def import_trainer(self, image: str = TRAINER_IMAGE, program: Path = BINARY) -> None:
        """The image of the page's training job, or one with another program."""
        archive = self.folder / "trainer.tar"
        write_trainer(archive, image, program)
        self.import_image(archive)
        archive.unlink()

    def ctr(self, *arguments: str, check: bool = True) -> str:
        """Runs containerd's client."""
        return self.run("ctr", "--address", f"{self.folder}/containerd.sock", *arguments, check=check)

    def run(self, *command: str | Path, check: bool = True, text: str | None = None) -> str:
        """Runs a command, and returns what it prints; an AssertionError if it fails and check is set."""
        done = subprocess.run(
            [str(w) for w in command], env=self.env, capture_output=True, text=True, timeout=300, input=text, cwd=ROOT
        )
        assert not check or done.returncode == 0, f"{command}: {done.stderr}{done.stdout}\n{self.tails()}"
        return done.stdout if done.returncode == 0 else ""

    def kubectl(self, *arguments: str | Path, check: bool = True, text: str | None = None) -> str:
        """Runs kubectl."""
        return self.run(PROGRAMS / "kubectl", *arguments, check=check, text=text)

    def apply(self, *objects: dict[str, Any] | str) -> None:
        """Applies objects, given as such or as YAML."""
        text = "\n---\n".join(o if isinstance(o, str) else json.dumps(o) for o in objects)
        self.kubectl("apply", "-f", "-", text=text)

    def get(self, *what: str) -> dict[str, Any]:
        """An object, or a list of some."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *what, "-o", "json"))
        return found

    def _is_ready(self) -> bool:
        said = self.kubectl(
            "get", "nodes", "-o", 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}', check=False
        )
        return said == "True"

    def tails(self) -> str:
        """The last words of each part."""
        words = [f"--- {name}\n{part.said()[-700:]}" for name, part in self.parts.items()]
        return "\n".join(words)

    def stop(self) -> None:
        """Ends the parts. The API server takes a minute when it is asked to: it is killed."""
        for part in reversed(self.parts.values()):
            part.stop(9)


def processes_of(uid: str, word: str) -> list[int]:
    """The processes of a pod that have a word in their command line, by the pod's control group."""
    found = []
    for pid, place in running():
        try:
            if uid in (place / "cgroup").read_text() and word in (place / "cmdline").read_text().split("\0"):
                found.append(pid)
        except OSError:  # it has ended
            continue
    return found
