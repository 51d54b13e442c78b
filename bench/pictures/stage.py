"""A staged job: real nodes of fixed speed, trainers with scripted figures, and `feedwater top` that serves the page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

HERE = Path(__file__).resolve().parent
WORLD, WORKERS = 4, 16
PATIENCE_S = 180


class State(NamedTuple):
    """What is to be seen, and the script that leads to it."""

    name: str
    words: tuple[str, ...]
    """That the page and the terminal have to show."""
    nodes: int
    sample_s: float
    """Time that a node's worker takes for a sample."""
    step_s: float
    idle_s: float
    busy: float
    """Of the GPUs."""
    dead: int = 0
    """Nodes that are killed once the job runs."""


# A step takes 0.2 s of GPU and 4 × 16 samples: 320 images/s. A node makes 16 / sample_s of them. Workers sleep for most
# of that time, so that a busy machine stages the same states.
STATES = (
    State("healthy", ("rn50-a", "healthy", "ready"), 2, 0.064, 0.2, 0.0006, 0.97),
    State("starving", ("rn50-a", "data-bound", "node CPU", "under 2 %", "worst", "rank 3"), 2, 0.145, 0.29, 0.09, 0.66),
    State("dead", ("rn50-a", "data-bound", "2 of 3 nodes", "refused"), 3, 0.13, 0.26, 0.06, 0.74, dead=1),
)


def named(host: str) -> list[str]:
    """What begins a command whose processes believe to be on that host; nothing where that cannot be had."""
    for way in (["unshare", "--uts"], ["unshare", "--map-root-user", "--uts"]):
        enter = [*way, "sh", "-c", 'hostname "$0" && exec "$@"', host]
        if subprocess.run([*enter, "true"], capture_output=True).returncode == 0:
            return enter
    return []


def pictures(folder: Path) -> Path:
    """A data set of 64 small JPEGs."""
    for number in range(64):
        file = folder / f"class{number % 4}" / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), (4 * number, 128, 255 - 4 * number)).save(file)
    return folder


class Stage:
    """Everything of one state; close ends it all."""

    def __init__(self, state: State, scratch: Path) -> None:
        self.state = state
        self.binary, self.test_node = os.environ["FEEDWATER_BINARY"], os.environ["TEST_NODE_BINARY"]
        nvml = scratch / "nvml"
        nvml.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "nvml.py"}"\n')
        nvml.chmod(0o755)
        self.environment = {
            **os.environ,
            "XDG_RUNTIME_DIR": str(scratch),  # agents of this stage, and no others
            "TMPDIR": str(scratch),
            "FEEDWATER_NVML": str(nvml),
            "SCRIPTED_BUSY": str(state.busy),
        }
        self._all: list[subprocess.Popen[str]] = []
        photos = pictures(scratch / "photos")
        try:
            self.nodes = [self._node(number, photos) for number in range(state.nodes)]
            for rank in range(WORLD):
                self._start(
                    "gpu-1", sys.executable, str(HERE / "rank.py"), ",".join(self.nodes), *map(str, self._script(rank))
                )
            page = self._start(
                "gpu-1", self.binary, "top", *self.nodes, "--page", "127.0.0.1:0", stdout=subprocess.PIPE
            )
            assert page.stdout is not None
            self.page = page.stdout.readline().strip()
            if state.dead:
                self.until(lambda told: self._steps(told) > 20)
                for process in self._all[: state.dead]:
                    process.send_signal(signal.SIGKILL)
            self.until(self._shown)
        except BaseException:
            self.close()
            raise

    def _script(self, rank: int) -> tuple[object, ...]:
        return rank, WORLD, self.state.step_s, self.state.idle_s

    def _start(self, host: str, *command: str, **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen([*named(host), *command], env=self.environment, text=True, **options)
        self._all.append(process)
        return process

    def _node(self, number: int, photos: Path) -> str:
        """A node of fixed speed; its address. All of 127/8 is this machine."""
        process = self._start(
            f"cpu-{number + 1}", self.test_node, "serve", "--data", f"photos={photos}",
            "--listen", f"127.7.0.{number + 1}:0",
            "--workers", str(WORKERS), "--test-sample-time", f"{self.state.sample_s}s", "--index", "off",
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            if "msg=listening" in line:
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return line.split("addr=", 1)[1].split()[0]
        raise SystemExit("a node did not start")

    def until(self, reached: Callable[[dict[str, Any]], bool]) -> None:
        """Waits for a state of the page's document."""
        end = time.monotonic() + PATIENCE_S
        while True:
            with urllib.request.urlopen(self.page + "/watch.json", timeout=60) as answer:  # noqa: S310
                told = json.load(answer)
            if reached(told):
                return
            if time.monotonic() > end:
                raise SystemExit(f"{self.state.name} is not reached: {json.dumps(told, indent=1)}")
            time.sleep(0.5)

    def job(self) -> dict[str, str]:
        """Name and plan of the job."""
        with urllib.request.urlopen(self.page + "/watch.json", timeout=60) as answer:  # noqa: S310
            job = json.load(answer)["jobs"][0]
        return {"job": job["job"], "plan": job["plan"]}

    def _steps(self, told: dict[str, Any]) -> int:
        """Of the rank that is behind all others."""
        ranks = told["jobs"][0]["ranks"] if told["jobs"] else []
        return min((int(rank["step"]) for rank in ranks), default=0) if len(ranks) == WORLD else 0

    def _shown(self, told: dict[str, Any]) -> bool:
        """Whether the state's words are told, after steps enough for the figures."""
        told = {**told, "worst": ""}
        text = json.dumps(told, ensure_ascii=False)
        missing = [word for word in self.state.words if word not in text and not word.startswith("rank ")]
        return self._steps(told) > (150 if self.state.dead else 60) and not missing and len(told["gpus"]) == WORLD

    def close(self) -> None:
        """Ends all processes."""
        for process in reversed(self._all):
            process.kill()
        for process in self._all:
            process.wait(60)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
