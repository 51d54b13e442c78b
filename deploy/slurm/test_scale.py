"""scale.sh with a scaler and commands of Slurm that are played: what it changes, and when it changes nothing."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from enginetest.pages import ROOT
from enginetest.processes import Process, await_that

SCALE = ROOT / "deploy" / "slurm" / "scale.sh"
WITHIN = 60.0

# The queue is a file of the tasks' numbers. Each command notes how it was called; a file fail.COMMAND has it fail.
FAKE = """#!/usr/bin/env bash
cd "$FAKE_SLURM" || exit 9
name=${0##*/}
[ -f "fail.$name" ] && { cat "fail.$name"; exit 1; }
echo "$name $*" >>calls
case $name in
squeue) cat queue ;;
sbatch)
  for word; do case $word in --array=0-*) last=${word#--array=0-} ;; esac; done
  job=$(($(cat next) + 1)); echo $job >next
  [ -f lost ] || for i in $(seq 0 "$last"); do echo "${job}_$i" >>queue; done
  echo "$job" ;;
scancel) for id; do sed -i "/^$id\\$/d" queue; done ;;
esac
"""


class Fake:
    """Slurm, and the scaler, as a test has them."""

    def __init__(self, folder: Path):
        self.folder, self.answer = folder, (200, '{"wanted":0}')
        (folder / "bin").mkdir()
        for name in ("squeue", "sbatch", "scancel"):
            program = folder / "bin" / name
            program.write_text(FAKE)
            program.chmod(0o755)
        (folder / "next").write_text("100")
        (folder / "queue").touch()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                code, text = fake.answer
                self.send_response(code)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/wanted"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def want(self, n: int) -> None:
        self.answer = (200, json.dumps({"wanted": n}, separators=(",", ":")) + "\n")

    @property
    def queue(self) -> list[str]:
        return (self.folder / "queue").read_text().split()

    @property
    def calls(self) -> list[str]:
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def changes(self) -> list[str]:
        return [call for call in self.calls if not call.startswith("squeue")]


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    fake = Fake(tmp_path)
    yield fake
    fake.server.shutdown()


Scale = Callable[..., Process]


@pytest.fixture
def scale(fake: Fake, tmp_path: Path) -> Iterator[Scale]:
    started: list[Process] = []

    def start(most: str = "5", every: str = "0.05") -> Process:
        path = f"{fake.folder / 'bin'}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "FAKE_SLURM": str(fake.folder), "EVERY": every}
        command = [SCALE, fake.url, most, "nodes.sbatch", "--data", "imagenet=/data"]
        started.append(Process(command, tmp_path / "log", env))
        return started[-1]

    yield start
    for process in started:
        process.stop()


def rounds(fake: Fake, n: int = 3) -> None:
    """Waits for so many further looks at the queue."""
    before = fake.calls.count(LOOK)
    await_that("scale.sh looks at the queue", lambda: fake.calls.count(LOOK) >= before + n, WITHIN)


LOOK = "squeue --me --name=feedwater --array --noheader --states=PD,CF,R,S --format=%i"


def test_it_follows_the_number(fake: Fake, scale: Scale) -> None:
    """Up by one submission, down from the newest, to none when none is wanted, and nothing where nothing changes."""
    fake.want(3)
    scale()
    await_that("three tasks", lambda: len(fake.queue) == 3, WITHIN)
    assert fake.changes() == ["sbatch --parsable --job-name=feedwater --array=0-2 nodes.sbatch --data imagenet=/data"]
    rounds(fake)
    assert len(fake.changes()) == 1
    fake.want(5)
    await_that("five tasks", lambda: len(fake.queue) == 5, WITHIN)
    fake.want(2)
    await_that("two tasks", lambda: len(fake.queue) == 2, WITHIN)
    assert fake.changes()[-1] == "scancel 102_1 102_0 101_2" and fake.queue == ["101_0", "101_1"]
    fake.want(0)
    await_that("no task", lambda: not fake.queue, WITHIN)
    rounds(fake)
    assert len(fake.changes()) == 4


def test_the_cap(fake: Fake, scale: Scale) -> None:
    fake.want(900)
    process = scale(most="4")
    await_that("four tasks", lambda: len(fake.queue) == 4, WITHIN)
    rounds(fake)
    assert "900 are wanted, 4 is the cap" in process.said() and len(fake.changes()) == 1


@pytest.mark.parametrize(
    "answer",
    [
        (503, "2 nodes are there and none answers\n"),
        (200, ""),
        (200, '{"wanted":-1}'),
        (200, '{"wanted":1e9}'),
        (200, '{"wanted":7.5}'),
        (200, '{"wanted":12345678}'),
        (200, "<html>a proxy</html>"),
        (200, '{"wanted":0}\n{"wanted":0}'),
    ],
    ids=["503", "nothing", "negative", "exponent", "fraction", "immense", "proxy", "twice"],
)
def test_a_scaler_that_does_not_know(fake: Fake, scale: Scale, answer: tuple[int, str]) -> None:
    """Its tasks stay, and it says why."""
    (fake.folder / "queue").write_text("7_0\n7_1\n")
    fake.answer = answer
    process = scale()
    await_that("it says so", lambda: process.said().count("nothing is changed: ") >= 3, WITHIN)
    assert not fake.changes() and fake.queue == ["7_0", "7_1"]
    said = process.said()
    assert answer[1].split("\n")[0] in said
    fake.want(3)
    await_that("it goes on", lambda: len(fake.queue) == 3, WITHIN)


def test_a_scaler_that_is_gone(fake: Fake, scale: Scale) -> None:
    (fake.folder / "queue").write_text("7_0\n")
    fake.server.shutdown()
    fake.server.server_close()
    process = scale()
    await_that("it says so", lambda: process.said().count("nothing is changed: the scaler: ") >= 3, WITHIN)
    assert not fake.calls


def test_a_queue_that_fails(fake: Fake, scale: Scale) -> None:
    (fake.folder / "fail.squeue").write_text("slurm_load_jobs error: Unable to contact slurm controller\n")
    fake.want(3)
    process = scale()
    await_that(
        "it says so", lambda: process.said().count("nothing is changed: squeue: slurm_load_jobs error") >= 3, WITHIN
    )
    assert not fake.changes()


@pytest.mark.parametrize(
    "lie", ["squeue: error: something\n7_0\n", "7_[0-3]\n", "7\n"], ids=["error", "range", "no task"]
)
def test_a_queue_that_is_not_understood(fake: Fake, scale: Scale, lie: str) -> None:
    (fake.folder / "queue").write_text(lie)
    fake.want(3)
    process = scale()
    await_that("it says so", lambda: process.said().count("nothing is changed: squeue: ") >= 3, WITHIN)
    assert not fake.changes()


def test_a_queue_that_lacks_what_was_submitted(fake: Fake, scale: Scale) -> None:
    """Tasks that end at once, and a queue that lags, do not fill the cluster: what was submitted is waited for."""
    (fake.folder / "lost").touch()
    fake.want(3)
    process = scale()
    await_that("it says so", lambda: "job 101, submitted last, is not in the queue" in process.said(), WITHIN)
    await_that("it submits again", lambda: len(fake.changes()) == 2, WITHIN)
    assert process.said().count("nothing is changed: job 101, ") == 10
    (fake.folder / "lost").unlink()
    await_that("they are there", lambda: len(fake.queue) == 3, WITHIN)


def test_a_submission_that_is_refused(fake: Fake, scale: Scale) -> None:
    """As by the limit on arrays."""
    (fake.folder / "fail.sbatch").write_text(
        "sbatch: error: Batch job submission failed: Invalid job array specification\n"
    )
    fake.want(3)
    process = scale()
    await_that("it says so", lambda: process.said().count("nothing is changed: sbatch: sbatch: error: ") >= 3, WITHIN)
    assert not fake.queue
    (fake.folder / "fail.sbatch").unlink()
    await_that("it goes on", lambda: len(fake.queue) == 3, WITHIN)


def test_a_cancellation_that_is_refused(fake: Fake, scale: Scale) -> None:
    (fake.folder / "queue").write_text("7_0\n7_1\n")
    (fake.folder / "fail.scancel").write_text("scancel: error: Kill job error on job id 7_1: Access denied\n")
    process = scale()
    await_that("it says so", lambda: process.said().count("scancel: scancel: error: ") >= 3, WITHIN)
    assert fake.queue == ["7_0", "7_1"]


def test_one_change_in_each_interval(fake: Fake, scale: Scale) -> None:
    """The pause between two looks is what separates changes."""
    fake.want(1)
    scale(every="3600")
    await_that("one task", lambda: len(fake.queue) == 1, WITHIN)
    fake.want(5)
    assert len(fake.changes()) == 1
    assert 'sleep "${EVERY:-30}"' in SCALE.read_text()


@pytest.mark.parametrize("arguments", [[], ["http://x"], ["http://x", "many", "nodes.sbatch"]])
def test_wrong_arguments(fake: Fake, tmp_path: Path, arguments: list[str]) -> None:
    process = Process([SCALE, *arguments], tmp_path / "log")
    assert process.wait(WITHIN) == 2
    assert "MOST" in process.said()


def test_it_stays_short() -> None:
    assert len(SCALE.read_text().splitlines()) <= 60
