"""Nodes of Feedwater as actors of Ray: a FeedwaterPool in the driver, find_nodes() in each trainer. docs/ray.md."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import ray.util.scheduling_strategies

log = logging.getLogger("feedwater.ray")
SPACE = "feedwater"  # of names: drivers have one each, if they name none
LOOK_S = 1.0  # between two looks at nodes, and at the list
ANSWER_S = 30.0  # for which an actor may not answer until it is replaced
# The program ends with the actor, however that ends: what it reads from is closed then. The file $0 gets its error too.
WITH_PARENT = """exec 3<&0; mkfifo "$0.pipe"; sed -u "/^feedwater: /w $0" <"$0.pipe" >&2 3<&- & s=$!
"$@" 2>"$0.pipe" 3<&- & n=$!; (cat <&3 >/dev/null; kill $n) & wait $n; c=$?; kill $! 2>/dev/null; wait $s; exit $c"""


class Node:
    """Runs a node, as an actor, or the scaler. {ip} and {folder} in `options` are filled in where it runs."""

    def __init__(self, command: Sequence[str], *options: str):
        self._ip, self.folder = ray.util.get_node_ip_address(), Path(tempfile.mkdtemp(prefix="feedwater-")) / "node"
        self._command = [*command, *(option.format(ip=self._ip, folder=self.folder) for option in options)]
        self._start()

    def _start(self) -> None:
        if shutil.which(self._command[0]) is None:
            raise FileNotFoundError(f"{self._command[0]} is not on {self._ip}")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        wrapped = ["sh", "-c", WITH_PARENT, str(self.folder / ".error"), *self._command]
        self._program = subprocess.Popen(wrapped, stdin=subprocess.PIPE)

    def address(self) -> str:
        """Where it listens; empty while it starts. Once it has ended it starts again, and a RuntimeError says why."""
        code, error = self._program.poll(), self.folder / ".error"
        if code is not None:
            said = error.read_text(errors="replace").splitlines()[-1:] if error.exists() else []
            self._start()
            raise RuntimeError(": ".join([f"{' '.join(self._command[:2])} on {self._ip} ended with {code}", *said]))
        return next((f.read_text().split()[-1] for f in self.folder.iterdir() if not f.name.startswith(".")), "")


class Pool:
    """The actor that has the nodes, as many as are wanted, and the scaler. It goes on whatever goes wrong."""

    def __init__(self, settings: dict[str, Any]):
        self._settings, self._wanted = settings, settings["nodes"]
        self._nodes: dict[Any, float] = {}  # actor → when it answered last
        self._addresses: dict[Any, str] = {}
        self._errors: dict[str, None] = {}
        self._list = Path(tempfile.mkdtemp(prefix="feedwater-")) / "nodes"
        self._scaler, self._scales, self._asked = None, not settings["most"], time.monotonic()
        threading.Thread(target=self._run, daemon=True).start()

    def state(self) -> tuple[list[str], list[str], str, bool]:
        """Where nodes listen, what went wrong so far, where the scaler is, and whether all is there that has to be."""
        addresses = sorted(filter(None, list(self._addresses.values())))
        begun = self._scales and bool(addresses or not self._settings["nodes"])
        return addresses, list(self._errors), self._settings["scaler"], begun

    def _run(self) -> None:
        while True:
            if self._settings["scaler"]:
                self._try(self._scale)
            self._try(self._adjust)
            for node in list(self._nodes):
                self._try(self._look_at, node)
            time.sleep(LOOK_S)

    def _try(self, step: Callable[..., None], *of: Any) -> None:
        try:
            step(*of)
        except Exception as error:
            text = (str(getattr(error, "cause", None) or error).strip() or repr(error)).splitlines()[-1]
            log.warning("%s", text)
            self._errors[text] = None

    def _scale(self) -> None:
        """Only this actor asks the scaler. What it does not know changes nothing. One change in so many seconds."""
        write_list(self._list, self.state()[0])
        options = (f"--nodes=file:{self._list}", f"--listen={self._settings['scaler']}", "--http=unix:{folder}/.http")
        self._scaler = self._scaler or Node([self._settings["program"], "scaler", "--insecure"], *options)
        self._scaler.address()
        path = self._scaler.folder / ".http"
        self._scales = path.exists()
        if self._scales and time.monotonic() >= self._asked + self._settings["every"]:
            self._asked = time.monotonic()
            client = HTTPConnection("scaler")
            client.sock = socket.socket(socket.AF_UNIX)
            client.sock.settimeout(5)
            client.sock.connect(str(path))
            client.request("GET", "/wanted")
            if (answer := client.getresponse()).status == 200:
                self._wanted = max(self._settings["nodes"], min(json.load(answer)["wanted"], self._settings["most"]))

    def _adjust(self) -> None:
        while len(self._nodes) < self._wanted:
            place = ray.remote(num_cpus=self._settings["cpus"], scheduling_strategy="SPREAD", max_restarts=-1)(Node)
            self._nodes[place.remote(*self._settings["node"])] = time.monotonic()
        for node in list(self._nodes)[self._wanted :]:
            self._forget(node)

    def _look_at(self, node: Any) -> None:
        try:
            self._addresses[node] = ray.get(node.address.remote(), timeout=LOOK_S)
            self._nodes[node] = time.monotonic()
        except ray.exceptions.GetTimeoutError:  # it waits for a place, or its machine is gone
            if self._addresses.get(node) and time.monotonic() > self._nodes[node] + ANSWER_S:
                self._forget(node)
        except ray.exceptions.RayError as error:
            self._addresses.pop(node, None)
            if not isinstance(error, ray.exceptions.RayTaskError):  # else the actor is well
                self._forget(node)
            raise

    def _forget(self, node: Any) -> None:
        del self._nodes[node]
        self._addresses.pop(node, None)
        ray.kill(node)


def write_list(file: Path, addresses: Sequence[str]) -> None:
    """Replaces a list of nodes: nobody reads half of it."""
    part = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    part.write_text("".join(f"{address}\n" for address in addresses))
    part.rename(file)


@dataclass
class FeedwaterPool:
    """Nodes of Feedwater on the machines of a Ray cluster."""

    data: Mapping[str, str]  # name that trainers use: folder, the same on all machines
    cpus: int = 4  # of each node
    nodes: int = 1  # how many there are at least
    most: int = 0  # at most, as trainers need them; 0: always as many
    program: str = "feedwater"  # where it is, on each machine
    flags: Sequence[str] = ()  # further ones of `feedwater serve`
    name: str = "feedwater"  # of the actor that trainers find nodes by
    port: int = 0  # of the scaler, if there is a `most`; 0: a free one
    every: float = 30.0  # seconds between two changes of the number

    def start(self, timeout: float = 120.0) -> FeedwaterPool:
        """Starts it, and returns when a node listens, and the scaler. A RuntimeError or OSError says why not."""
        served = [f"--data={root}={folder}" for root, folder in self.data.items()]
        command = [self.program, "serve", "--insecure", "--workers", str(self.cpus), *served, *self.flags]
        settings = {**asdict(self), "scaler": "", "node": (command, "--listen={ip}:0", "--announce={folder}")}
        if self.most:
            with socket.create_server((ray.util.get_node_ip_address(), self.port)) as free:
                settings["scaler"] = "{}:{}".format(*free.getsockname())
        machine = ray.get_runtime_context().get_node_id()  # the driver's: the pool ends with it
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(machine, soft=False)
        place: Any = {"name": self.name, "namespace": SPACE, "scheduling_strategy": here, "max_concurrency": 8}
        self._actor = ray.remote(num_cpus=0, max_restarts=-1, **place)(Pool).remote(settings)
        end = time.monotonic() + timeout
        while not (state := ray.get(self._actor.state.remote()))[-1]:
            if time.monotonic() > end:
                self.stop()
                raise RuntimeError(f"no node after {timeout:g} s: {'; '.join(state[1]) or 'Ray has no place for one'}")
            time.sleep(LOOK_S / 10)
        return self

    def stop(self) -> None:
        """Ends all nodes: they belong to the actor that started them."""
        ray.kill(self._actor)


def find_nodes(name: str = "feedwater") -> str:
    """The nodes of a pool, for Loader(nodes=…), wherever this process runs: a list here that follows the pool."""
    pool = ray.get_actor(name, namespace=SPACE)
    addresses, _, scaler, _ = ray.get(pool.state.remote())
    os.environ.update({"FEEDWATER_SCALER": scaler} if scaler else {})
    file = Path(tempfile.mkdtemp(prefix="feedwater-")) / "nodes"
    write_list(file, addresses)
    threading.Thread(target=_follow, args=(pool, file), daemon=True).start()
    return f"file:{file}"


def _follow(pool: Any, file: Path) -> None:
    while ray.is_initialized():  # a call would begin another cluster where this one has ended
        try:
            write_list(file, ray.get(pool.state.remote(), timeout=ANSWER_S)[0])
        except Exception as error:  # of Ray, which has no class for all of them; the list stays as it is
            log.info("the pool does not answer: %s", error)
        time.sleep(LOOK_S)
