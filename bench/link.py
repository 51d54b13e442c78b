"""What a link between nodes and trainers leaves of its speed, and whether it is named as what holds a job up.

Two networks, one of them this process's, are joined by two pairs of devices whose queues let 1 or 10 Gbit/s through.
One pair is far: what it carries takes 5 ms each way. Run it by bench/link.sh, within namespaces of its own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAMESPACE = "/run/netns/nodes"
LEAST = 0.9
"""Of what a plain socket gets, where that fills so much of the link. Else cores are what is short: it is told alone."""
SAMPLES = {1: 32, 10: 256}
ROUNDS = 3
CAUSES = ("the way between", "this host's CPU")
PROGRAM = ROOT / "bin" / "feedwater-testnode"


@dataclass(frozen=True)
class Pair:
    """Two devices that are joined: one in the nodes' network, one in the trainers'."""

    name: str
    nodes: str
    trainers: str
    delay: str = "0"


NEAR = Pair("near", "10.79.0.1", "10.79.0.2")
FAR = Pair("far", "10.80.0.1", "10.80.0.2", "5ms")
LINKS = ((NEAR, 1), (NEAR, 10), (FAR, 1), (FAR, 10))
"""Each pair with what it lets through, in Gbit/s."""


def run(command: str) -> None:
    """Runs a command of the shell."""
    subprocess.run(["/bin/bash", "-euc", command], check=True)


def join_networks() -> subprocess.Popen[str]:
    """Makes the nodes' network, and the devices between the two. Returns the program that the far pair ends with."""
    run(
        """
        mount -t tmpfs tmpfs /run
        ip link set lo up
        ip netns add nodes
        ip -n nodes link set lo up
        ip link add near-trainers type veth peer name near-nodes
        """
    )
    command = [ROOT / "bin" / "bench-delay", "-by", FAR.delay, "far-trainers", "far-nodes"]
    delay = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert delay.stdout and delay.stdout.readline() == "ready\n", "the devices with a delay were not made"
    for pair in (NEAR, FAR):
        run(
            f"""
            ip link set {pair.name}-nodes netns nodes
            ip address add {pair.trainers}/24 dev {pair.name}-trainers
            ip link set {pair.name}-trainers up
            ip -n nodes address add {pair.nodes}/24 dev {pair.name}-nodes
            ip -n nodes link set {pair.name}-nodes up
            """
        )
    return delay


def limit_speed(pair: Pair, gigabits: int) -> None:
    """Both directions from now on."""
    rule = f"root tbf rate {gigabits}gbit burst {gigabits * 512}kb latency 20ms"
    run(f"tc qdisc replace dev {pair.name}-trainers {rule}; tc -n nodes qdisc replace dev {pair.name}-nodes {rule}")


def measure_shares(pair: Pair, gigabits: int) -> list[str]:
    """The share of what a plain socket gets in the same round, by congestion control. Returns what is wrong."""
    limit_speed(pair, gigabits)
    command = [ROOT / "bin" / "bench-wire", "--json", "--rounds", str(ROUNDS), "--samples", str(SAMPLES[gigabits])]
    command += ["--via", f"nsenter --net={NAMESPACE}", "--host", pair.nodes]
    said = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    report = json.loads(said)
    speeds: dict[str, list[float]] = {}
    for one in report["rounds"]:
        speeds.setdefault(one["contestant"], []).append(one["gb_per_second"])
    wrong = []
    for name, ours in speeds.items():
        if not name.startswith("node "):
            continue
        raw = speeds["raw " + name.removeprefix("node ")]
        share = statistics.median(a / b for a, b in zip(ours, raw, strict=True))
        speed, plain = statistics.median(ours), statistics.median(raw)
        print(
            f"| {gigabits} Gbit/s | {pair.delay} | {name.removeprefix('node ')} | {8 * plain:.2f} | {8 * speed:.2f} |"
            f" {share:.2f} | {report['others']:.1f} |",
            flush=True,
        )
        if share < LEAST and 8 * plain >= LEAST * gigabits:
            wrong.append(f"{gigabits} Gbit/s, delay {pair.delay}, {name}: {share:.2f} of a plain socket")
    return wrong


class Node:
    """A node of the other network whose samples are cheap: small pictures made large."""

    def __init__(self, folder: Path):
        pictures = folder / "pictures"
        generate = ["go", "run", "./pipeline/codec/jpeg/jpegtest/jpegfolder", "-classes", "2", "-images", "64"]
        subprocess.run([*generate, str(pictures)], check=True, cwd=ROOT, capture_output=True)
        self.log = (folder / "node.log").open("wb")
        command = ["nsenter", f"--net={NAMESPACE}", PROGRAM, "serve", "--listen", f"{NEAR.nodes}:7070", "--insecure"]
        command += ["--data", f"pictures={pictures}", "--cache-dir", folder / "cache"]
        self.process = subprocess.Popen([str(c) for c in command], stdout=self.log, stderr=self.log)

    def stop(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


TRAINING = f"""
import feedwater
from feedwater import transforms

loader = feedwater.Loader("pictures", [transforms.Resize((640, 640))], batch_size=16, shuffle=True, seed=1,
                          tail="drop", rank=0, num_replicas=1, nodes="{NEAR.nodes}:7070", insecure=True)
steps = 0
while steps < 100000:
    for batch in loader:
        steps += 1
        if steps == 100:
            print(loader.doctor(), flush=True)
"""


def verdicts(folder: Path) -> tuple[dict[str, Any], str]:
    """What `top` and the doctor say of a job that only takes batches."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "FEEDWATER_BINARY": str(PROGRAM)}
    script = folder / "train.py"
    script.write_text(TRAINING)
    with (folder / "train.log").open("wb") as log:
        job = subprocess.Popen([sys.executable, script], env=environment, stdout=log, stderr=log)
    top = [str(PROGRAM), "top", f"{NEAR.nodes}:7070", "--insecure", "--once", "--json"]
    found: dict[str, Any] = {}

    def said_by_doctor() -> str:
        return (folder / "train.log").read_text()

    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and not (said_by_doctor() and "the way between" in found.get("cause", "")):
            time.sleep(1)
            said = subprocess.run(top, capture_output=True, text=True, check=False).stdout
            jobs = json.loads(said).get("jobs", []) if said else []
            found = jobs[0] if jobs else found
    finally:
        job.terminate()
        job.wait(30)
    assert found, (folder / "train.log").read_text()[-2000:] + (folder / "node.log").read_text()[-2000:]
    return found, said_by_doctor()


def ask_for_verdicts() -> list[str]:
    """Of `top` and the doctor, at 1 Gbit/s. Returns what is wrong."""
    limit_speed(NEAR, 1)
    with tempfile.TemporaryDirectory(prefix="feedwater-link-") as name:
        node = Node(Path(name))
        try:
            found, doctor = verdicts(Path(name))
        finally:
            node.stop()
    print(f"\ntop, at 1 Gbit/s: {found.get('verdict')}: {found.get('cause')}; {found.get('action')}")
    print(f"\ndoctor, at 1 Gbit/s:\n{doctor}")
    wrong = []
    # Both devices are on this machine: where its cores are all in use, top names these.
    if found.get("verdict") != "data-bound" or not any(c in found.get("cause", "") for c in CAUSES):
        wrong.append(f"top does not name the link: {found.get('cause')}")
    if "DATA-BOUND" not in doctor or "network" not in doctor:
        wrong.append("the doctor does not name the link")
    return wrong


def main() -> None:
    """All of it, or the verdicts alone."""
    with join_networks():
        wrong = measure()
    sys.exit("; ".join(wrong) or 0)


def measure() -> list[str]:
    """Returns what is wrong."""
    wrong = ask_for_verdicts()
    if sys.argv[1:] == ["--verdicts"]:
        return wrong
    print("\n| link | delay | congestion control | plain socket, Gbit/s | batches, Gbit/s | share | others' cores |")
    print("|---|--:|---|--:|--:|--:|--:|")
    wrong += [one for pair, gigabits in LINKS for one in measure_shares(pair, gigabits)]
    return wrong


if __name__ == "__main__":
    main()
