"""A whole Slurm on this machine: munge, the controller, and six nodes, two of which count a GPU each."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from getpass import getuser
from pathlib import Path

from enginetest.job import environment
from enginetest.processes import Process, await_that, with_variable

PACKAGES = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
NODES = ("cpu0", "cpu1", "cpu2", "cpu3", "gpu0", "gpu1")
CPUS = 4
MAX_ARRAY = 8

CONFIGURATION = """
ClusterName=feedwater
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmctldPort={controller}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmdTimeout=10
InactiveLimit=0
KillWait=30
MaxArraySize={array}
SchedulerParameters=sched_interval=1,bf_interval=1
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
GresTypes=gpu
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def missing() -> list[str]:
    """The packages of Debian that this machine lacks."""
    return sorted({package for program, package in PACKAGES.items() if which(program) is None})


def which(program: str) -> str | None:
    """Where a program is, also where only root looks."""
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def free_ports(n: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm:
    """The cluster. Everything it writes lies in one folder, and every process of it has SLURM_CONF in that folder."""

    def __init__(self, folder: Path, **variables: str):
        self.folder, self.conf = folder, folder / "slurm.conf"
        self.env = environment(SLURM_CONF=str(self.conf), **variables)
        self.daemons: dict[str, Process] = {}
        for name in ("state", "spool", *(f"spool/{node}" for node in NODES)):
            (folder / name).mkdir()
        self._write_configuration()

    def _write_configuration(self) -> None:
        controller, *ports = free_ports(1 + len(NODES))
        lines = [
            f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS}"
            f" RealMemory=2000{' Gres=gpu:1' if name.startswith('gpu') else ''} State=UNKNOWN"
            for name, port in zip(NODES, ports, strict=True)
        ]
        text = CONFIGURATION.format(
            folder=self.folder,
            host=socket.gethostname(),
            user=getuser(),
            controller=controller,
            nodes="\n".join(lines),
            array=MAX_ARRAY,
        )
        self.conf.write_text(text)
        (self.folder / "gres.conf").write_text("NodeName=gpu[0-1] Name=gpu File=/dev/null\n")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)

    def start(self) -> None:
        """Starts all of it, and returns when each node is idle."""
        munge = [
            f"--{name}={self.folder}/munge.{end}"
            for name, end in (
                ("key-file", "key"),
                ("socket", "socket"),
                ("pid-file", "pid"),
                ("log-file", "log"),
                ("seed-file", "seed"),
            )
        ]
        self._start("munged", "--foreground", "--force", "--num-threads=2", *munge)
        await_that("munge listens", (self.folder / "munge.socket").exists, 20, self.tails)
        self.start_controller()
        for node in NODES:
            self._start("slurmd", "-D", "-N", node, name=node)
        await_that("nodes are idle", lambda: self.states() == ["idle"] * len(NODES), 60, self.tails)

    def start_controller(self) -> None:
        """Starts slurmctld, for the first time or once more."""
        self._start("slurmctld", "-D")

    def _start(self, program: str, *arguments: str, name: str = "") -> None:
        place = which(program)
        assert place, program
        self.daemons[name or program] = Process([place, *arguments], self.folder / f"{name or program}.out", self.env)

    def states(self) -> list[str]:
        """What each node is, as sinfo has it."""
        said = self.run("sinfo", "--noheader", "--Node", "--format=%t", check=False)
        return said.stdout.split()

    def run(self, *command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a command of Slurm in the cluster's folder."""
        done = subprocess.run(
            [str(w) for w in command], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=60
        )
        assert not check or done.returncode == 0, f"{command}: {done.stderr}\n{self.tails()}"
        return done

    def tasks(self) -> list[str]:
        """The tasks of arrays that are called feedwater and run."""
        return self.run(
            "squeue", "--me", "--name=feedwater", "--array", "--noheader", "--states=R", "--format=%i"
        ).stdout.split()

    def has_no_job(self) -> bool:
        """Whether nothing waits, runs or ends."""
        return not self.run("squeue", "--me", "--noheader").stdout.strip()

    def tails(self) -> str:
        """The last words of all daemons, and of all jobs."""
        files = sorted([*self.folder.glob("*.out"), *self.folder.glob("*.log")])
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-1500:]}" for file in files)

    def stop(self) -> None:
        """Cancels all jobs, then ends all processes, also those that Slurm has forgotten. None is left."""
        if "slurmctld" in self.daemons:
            self.run("scancel", "--me", check=False)
            self.run("scancel", "--me", "--signal=KILL", check=False)
        for daemon in reversed(self.daemons.values()):
            daemon.stop()
        left = with_variable("SLURM_CONF", str(self.conf))
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        await_that("all processes end", lambda: not with_variable("SLURM_CONF", str(self.conf)), 20)
