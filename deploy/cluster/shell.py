"""What `make cluster` runs: the cluster, and a shell with kubectl and helm. The cluster ends with the shell."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cluster import Cluster

folder = Path(tempfile.mkdtemp(prefix="feedwater-cluster-"))
cluster = Cluster(folder / "all")
try:
    print(f"the machine is Ready after {cluster.start():.1f} s")
    cluster.import_trainer()
    print("kubectl and helm know the cluster; it has the image of this tree, and ends with this shell")
    command = sys.argv[1:] or [os.environ.get("SHELL", "bash")]
    code = subprocess.run(command, env=cluster.env, check=False).returncode
finally:
    cluster.stop()
    subprocess.run(["umount", "--recursive", "--lazy", folder / "all" / "kubelet"], check=False, capture_output=True)
    subprocess.run(["rm", "-rf", folder], check=False)
sys.exit(code)
