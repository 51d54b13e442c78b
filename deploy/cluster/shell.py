"""What `make cluster` runs: the cluster, and a shell with kubectl and helm. The cluster ends with the shell.

shell.py [--data FOLDER] [COMMAND ARGUMENT…]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from workload import make_namespace

from cluster import Cluster

parse = argparse.ArgumentParser(description="A Kubernetes on this machine, and a shell in it.")
parse.add_argument(
    "--data", type=Path, metavar="FOLDER", help="pictures: the claim imagenet in the namespace feedwater"
)
parse.add_argument("command", nargs=argparse.REMAINDER, help="in place of the shell")
asked = parse.parse_args()
if asked.data and not asked.data.is_dir():
    sys.exit(f"{asked.data} is no folder")
folder = Path(tempfile.mkdtemp(prefix="feedwater-cluster-"))
cluster = Cluster(folder / "all")
try:
    print(f"the machine is Ready after {cluster.start():.1f} s")
    cluster.import_trainer()
    if asked.data:
        make_namespace(cluster, asked.data.resolve())
    print("kubectl and helm know the cluster; it has the image of this tree, and ends with this shell")
    command = asked.command or [os.environ.get("SHELL", "bash")]
    code = subprocess.run(command, env=cluster.env, check=False).returncode
finally:
    cluster.stop()
    subprocess.run(["umount", "--recursive", "--lazy", folder / "all" / "kubelet"], check=False, capture_output=True)
    subprocess.run(["rm", "-rf", folder], check=False)
sys.exit(code)
