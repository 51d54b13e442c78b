"""Nodes of Feedwater as actors of Ray: docs/ray.md.

pool = FeedwaterPool(data={"imagenet": "/data/imagenet"}, cpus=4, nodes=3).start()     # in the driver
loader = feedwater.Loader("imagenet/train", …, nodes=find_nodes(), insecure=True)      # in each trainer
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import ray

log = logging.getLogger("feedwater.ray")
SPACE = "feedwater"  # of names: drivers have one each, if they name none
LOOK_S = 1.0  # between two looks at nodes, and at the list
ANSWER_S = 30.0  # for which an actor may not answer until it is replaced

# The program ends with the actor, however that ends: what it reads from is closed then.
WITH_PARENT = (
    'exec 3<&0; "$@" 3<&- & n=$!; (cat <&3 >/dev/null; kill -TERM $n) & wait $n; c=$?; kill $! 2>/dev/null; exit $c'
)


def start_program(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts a program that gets SIGTERM when this process ends."""
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"{command[0]} is not on {ray.util.get_node_ip_address()}")
    return subprocess.Popen(["sh", "-c", WITH_PARENT, "sh", *command], stdin=subprocess.PIPE)


class Node:
    """An actor that runs one node, and starts it again when it dies."""

    def __init__(self, command: Sequence[str]):
        self._folder = Path(tempfile.mkdtemp(prefix="feedwater-"))
        listen = f"{ray.util.get_node_ip_address()}:0"
        self._command = [*command, "--listen", listen, "--announce", str(self._folder)]
        self._program = start_program(self._command)

    def address(self) -> str:
        """Where the node listens; empty while it starts."""
        code = self._program.poll()
        if code is not None:
            log.warning("a node ended with %d", code)
            shutil.rmtree(self._folder)
            self._folder.mkdir()
            self._program = start_program(self._command)
        announced = next((f for f in self._folder.iterdir() if not f.name.startswith(".")), None)
        return announced.read_text().split()[-1] if announced else ""


class Pool:
    """The actor that has the nodes: as many as are wanted, each with its address."""

    def __init__(self, settings: dict[str, Any]):
        self._settings, self._wanted = settings, settings["nodes"]
        self._nodes: dict[Any, float] = {}  # actor → when it answered last
        self._addresses: dict[Any, str] = {}
        self._errors: dict[str, None] = {}
        self._scaler, self._asked = "", time.monotonic()
        self._folder = Path(tempfile.mkdtemp(prefix="feedwater-"))
        threading.Thread(target=self._run, daemon=True).start()

    def state(self) -> tuple[list[str], list[str], str]:
        """Where nodes listen, what went wrong with nodes so far, and where the scaler is."""
        return sorted(filter(None, list(self._addresses.values()))), list(self._errors), self._scaler

    def _run(self) -> None:
        if self._settings["most"]:
            self._start_scaler()
        while True:
            self._adjust()
            for node in list(self._nodes):
                self._look_at(node)
            write_list(self._folder / "nodes", self.state()[0])
            time.sleep(LOOK_S)

    def _start_scaler(self) -> None:
        """Its port for trainers is on all networks; only this actor asks it how many nodes are wanted."""
        self._scaler = f"{ray.util.get_node_ip_address()}:{self._settings['port']}"
        self._http = f"127.0.0.1:{self._settings['port'] + 1}"
        command = [self._settings["program"], "scaler", "--insecure", "--nodes", f"file:{self._folder}/nodes"]
        self._program = start_program([*command, "--listen", self._scaler, "--http", self._http])

    def _ask_scaler(self) -> None:
        """What it does not know changes nothing. One change in so many seconds."""
        if not self._scaler or time.monotonic() < self._asked + self._settings["every"]:
            return
        self._asked = time.monotonic()
        try:
            with urllib.request.urlopen(f"http://{self._http}/wanted", timeout=5) as answer:
                wanted = int(json.load(answer)["wanted"])
            self._wanted = max(self._settings["nodes"], min(wanted, self._settings["most"]))
        except (OSError, ValueError, KeyError) as error:
            log.info("the number of nodes stays: %s", error)

    def _adjust(self) -> None:
        self._ask_scaler()
        while len(self._nodes) < self._wanted:
            place = ray.remote(num_cpus=self._settings["cpus"], scheduling_strategy="SPREAD", max_restarts=-1)(Node)
            self._nodes[place.remote(self._settings["command"])] = time.monotonic()
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
            self._errors[str(getattr(error, "cause", None) or error).strip().splitlines()[-1]] = None
            self._forget(node)

    def _forget(self, node: Any) -> None:
        ray.kill(node)
        del self._nodes[node]
        self._addresses.pop(node, None)


def write_list(file: Path, addresses: Sequence[str]) -> None:
    """Replaces a list of nodes: nobody reads half of it."""
    part = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    part.write_text("".join(f"{address}\n" for address in addresses))
    part.rename(file)


class FeedwaterPool:
    """Nodes of Feedwater on the machines of a Ray cluster.

    data     {name that trainers use: folder, the same on all machines}
    cpus     of each node; nodes  how many there are at least; most  at most, as trainers need them. 0: always as many
    program  where the program is, on each machine; flags  further ones of `feedwater serve`
    name     of the actor that trainers find nodes by
    port     of the scaler, if there is a `most`, and the one above it; every  seconds between two changes of the number
    """

    def __init__(self, data: Mapping[str, str], cpus: int = 4, nodes: int = 1, most: int = 0, **options: Any):
        program, self.name = options.get("program", "feedwater"), options.get("name", "feedwater")
        served = [f"--data={root}={folder}" for root, folder in data.items()]
        command = [program, "serve", "--insecure", "--workers", str(cpus), *served, *options.get("flags", ())]
        self._settings = {"command": command, "cpus": cpus, "nodes": nodes, "most": most, "program": program}
        self._settings |= {"port": options.get("port", 7072), "every": options.get("every", 30.0)}

    def start(self, timeout: float = 120.0) -> FeedwaterPool:
        """Starts it, and returns when one node listens. A RuntimeError says why none does."""
        machine = ray.get_runtime_context().get_node_id()
        here = NodeAffinitySchedulingStrategy(machine, soft=False)  # ends with the driver
        place: Any = {"name": self.name, "namespace": SPACE, "scheduling_strategy": here, "max_concurrency": 8}
        self._actor = ray.remote(num_cpus=0, max_restarts=-1, **place)(Pool).remote(self._settings)
        end, addresses = time.monotonic() + timeout, []
        while self._settings["nodes"] and not addresses:
            addresses, errors, _ = ray.get(self._actor.state.remote())
            if not addresses and time.monotonic() > end:
                self.stop()
                why = "; ".join(errors) or "Ray has no place for one"
                raise RuntimeError(f"no node listens after {timeout:g} s: {why}")
            time.sleep(LOOK_S / 10)
        return self

    def stop(self) -> None:
        """Ends all nodes: they belong to the actor that started them."""
        ray.kill(self._actor)


def find_nodes(name: str = "feedwater") -> str:
    """The nodes of a pool, for Loader(nodes=…), wherever this process runs: a list here that follows the pool."""
    pool = ray.get_actor(name, namespace=SPACE)
    addresses, _, scaler = ray.get(pool.state.remote())
    if scaler:
        os.environ["FEEDWATER_SCALER"] = scaler
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
