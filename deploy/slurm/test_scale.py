"""The scripts without Slurm: the scaler and the commands of Slurm are played, and fail and lie."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from played_scaler import PlayedScaler

from enginetest.job import BINARY
from enginetest.pages import ROOT, blocks, replaced
from enginetest.processes import Process, await_that

FOLDER = ROOT / "deploy" / "slurm"
SCALE = FOLDER / "scale.sh"
WITHIN = 60.0

# The queue is a file of the tasks' numbers. Each command notes how it was called. A file fail.COMMAND has it fail, one
# that is called warn.COMMAND is said beside the answer, and banner.COMMAND before it.
FAKE = """#!/usr/bin/env bash
cd "$FAKE_SLURM" || exit 9
name=${0##*/}
[ -f "fail.$name" ] && { cat "fail.$name" >&2; exit 1; }
echo "$name $*" >>calls
[ -f "warn.$name" ] && cat "warn.$name" >&2
[ -f "banner.$name" ] && cat "banner.$name"
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
        self.folder, self.scaler = folder, PlayedScaler(folder)
        (folder / "bin").mkdir()
        for name in ("squeue", "sbatch", "scancel"):
            program = folder / "bin" / name
            program.write_text(FAKE)
            program.chmod(0o755)
        (folder / "next").write_text("100")
        (folder / "queue").touch()

    def want(self, n: int) -> None:
        self.scaler.want(n)

    @property
    def env(self) -> dict[str, str]:
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "FAKE_SLURM": str(self.folder), "EVERY": "0.05"}

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
    fake.scaler.fall_silent()


Scale = Callable[..., Process]


@pytest.fixture
def scale(fake: Fake, tmp_path: Path) -> Iterator[Scale]:
    started: list[Process] = []

    def start(most: str = "5", every: str = "0.05", scaler: list[str | Path] | None = None) -> Process:
        scaler = scaler or [fake.scaler.program, "--listen", ":1"]
        command = [SCALE, most, *scaler, "--", "nodes.sbatch", "--data", "imagenet=/data"]
        terminal = ["env", "--default-signal=HUP,INT"]  # whatever the test was started by
        started.append(Process([*terminal, *command], tmp_path / "log", {**fake.env, "EVERY": every}))
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
    fake.scaler.answer = answer
    process = scale()
    await_that("it says so", lambda: process.said().count("nothing is changed: ") >= 3, WITHIN)
    assert not fake.changes() and fake.queue == ["7_0", "7_1"]
    said = process.said()
    assert answer[1].split("\n")[0] in said
    fake.want(3)
    await_that("it goes on", lambda: len(fake.queue) == 3, WITHIN)


def test_a_scaler_that_does_not_answer(fake: Fake, scale: Scale) -> None:
    (fake.folder / "queue").write_text("7_0\n")
    fake.scaler.fall_silent()
    process = scale()
    await_that("it says so", lambda: process.said().count("nothing is changed: the scaler: ") >= 3, WITHIN)
    assert not fake.calls


def test_a_queue_that_fails(fake: Fake, scale: Scale) -> None:
    (fake.folder / "fail.squeue").write_text("slurm_load_jobs error: Unable to contact slurm controller\n")
    fake.want(3)
    process = scale()
    await_that("it says so", lambda: process.said().count("nothing is changed: squeue has failed") >= 3, WITHIN)
    assert "slurm_load_jobs error" in process.said() and not fake.changes()


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
    await_that("it says so", lambda: process.said().count("nothing is changed: sbatch has failed") >= 3, WITHIN)
    assert "Invalid job array" in process.said() and not fake.queue
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


def test_a_job_that_ends_is_replaced_in_the_next_round(fake: Fake, scale: Scale) -> None:
    """As at its time limit. Nobody waits for a job that was there for long."""
    fake.want(3)
    process = scale()
    await_that("three tasks", lambda: len(fake.queue) == 3, WITHIN)
    rounds(fake, 20)
    (fake.folder / "queue").write_text("")
    await_that("three others", lambda: fake.queue == ["102_0", "102_1", "102_2"], WITHIN)
    assert "nothing is changed" not in process.said()


def test_tasks_that_are_wanted_again_are_not_waited_for(fake: Fake, scale: Scale) -> None:
    """That the queue lacks a job which was cancelled here is known."""
    fake.want(3)
    process = scale()
    await_that("three tasks", lambda: len(fake.queue) == 3, WITHIN)
    fake.want(0)
    await_that("no task", lambda: not fake.queue, WITHIN)
    fake.want(2)
    await_that("two tasks", lambda: len(fake.queue) == 2, WITHIN)
    assert "nothing is changed" not in process.said()


@pytest.mark.parametrize("file", ["warn.sbatch", "banner.sbatch", "warn.squeue"])
def test_what_a_site_says_beside_an_answer(fake: Fake, scale: Scale, file: str) -> None:
    """As a site does by a job_submit plugin, or a wrapper. It is in the log, and is not taken for the answer."""
    (fake.folder / file).write_text("sbatch: no account was given; [default] is used\n")
    fake.want(3)
    process = scale()
    await_that("three tasks", lambda: len(fake.queue) == 3, WITHIN)
    fake.want(5)
    await_that("five tasks", lambda: len(fake.queue) == 5, WITHIN)
    assert "nothing is changed" not in process.said()
    assert ("; [default] is used" in process.said()) == file.startswith("warn")


def test_a_submission_without_a_number(fake: Fake, scale: Scale) -> None:
    """Nobody knows whether the queue has it: it is waited for."""
    program = fake.folder / "bin" / "sbatch"
    program.write_text(FAKE.replace('echo "$job" ;;', "echo submitted ;;"))
    (fake.folder / "lost").touch()
    fake.want(3)
    process = scale()
    await_that("it submits again", lambda: len(fake.changes()) == 2, WITHIN)
    assert process.said().count("nothing is changed: job unknown, ") == 10


def test_it_ends_with_its_scaler(fake: Fake, scale: Scale) -> None:
    """Its tasks stay: nobody knows how many are wanted."""
    fake.want(3)
    process = scale(every="3600")
    await_that("three tasks", lambda: len(fake.queue) == 3, WITHIN)
    fake.scaler.end()
    assert process.wait(WITHIN) == 1
    assert "the scaler has ended, and so does this" in process.said() and len(fake.queue) == 3
    assert not fake.scaler.asked_in.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_its_scaler_ends_with_it(fake: Fake, scale: Scale, number: signal.Signals) -> None:
    """Also as the connection of a terminal breaks, which a scaler alone takes for a word to read files again."""
    fake.want(1)
    process = scale(every="3600")
    await_that("one task", lambda: len(fake.queue) == 1, WITHIN)
    folder, pid = fake.scaler.asked_in, fake.scaler.pid
    assert folder.stat().st_mode & 0o777 == 0o700
    process.send(number)
    assert process.wait(WITHIN) == 143
    assert not Path(f"/proc/{pid}").exists() and not folder.exists() and len(fake.queue) == 1


def test_a_scaler_that_does_not_start(fake: Fake, scale: Scale) -> None:
    process = scale(scaler=["bash", "-c", "echo it is wrong >&2; exit 2"])
    assert process.wait(WITHIN) == 1
    assert "it is wrong" in process.said() and "the scaler has ended" in process.said() and not fake.calls


def test_a_scaler_with_a_certificate(fake: Fake, scale: Scale) -> None:
    """It is asked by https. This one has none, so that fails."""
    fake.scaler.answer = (400, "Client sent an HTTP request to an HTTPS server.\n")
    process = scale()
    await_that("it says so", lambda: "nothing is changed: the scaler: curl: (35) " in process.said(), WITHIN)


def test_the_page_where_another_user_has_the_port(fake: Fake, tmp_path: Path) -> None:
    """The page's block ends and says why. It follows nobody else's number."""
    text = next(block for block in blocks("docs/slurm.md", "sh") if "./scale.sh 16" in block)
    (shared := tmp_path / "shared").mkdir()
    with socket.create_server(("", 0)) as taken:
        port = str(taken.getsockname()[1])
        text = replaced(text, {"$((20000 + $(id -u) % 10000))": port})
        env = fake.env | {"PATH": f"{BINARY.parent}:{fake.env['PATH']}", "FEEDWATER_ANNOUNCE": str(shared)}
        process = Process(["bash", "-euc", text], tmp_path / "page", env, cwd=FOLDER)
        assert process.wait(WITHIN) == 1
    said = process.said()
    assert f":{port}: bind: address already in use" in said and "the scaler has ended, and so does this" in said
    assert not fake.changes()


def test_a_job_that_is_put_back_into_the_queue_keeps_its_log() -> None:
    for script in sorted(FOLDER.glob("*.s*")):
        options = "\n".join(line for line in script.read_text().splitlines() if line.startswith("#SBATCH"))
        assert "--output=" in options and "--open-mode=append" in options, script


# A signal comes just before a line of a script that is called AT.
SIGNAL_AT = """set -T
trap '[ "$BASH_COMMAND" != "$AT" ] || kill -TERM $$' DEBUG
. "$0" "$@"
"""


@pytest.mark.parametrize(("script", "at"), [("nodes.sbatch", "node=$!"), ("hetjob.sbatch", "training=$!")])
def test_a_signal_that_comes_while_something_is_started(fake: Fake, tmp_path: Path, script: str, at: str) -> None:
    """What is being started is told, and not waited for until it ends by itself."""
    for name in ("node", "srun"):
        program = fake.folder / "bin" / name
        program.write_text("#!/usr/bin/env bash\nexec sleep 1000\n")
        program.chmod(0o755)
    (fake.folder / "fail.scancel").touch()
    env = fake.env | {"AT": at, "FEEDWATER_BINARY": "node", "FEEDWATER_ANNOUNCE": str(tmp_path)}
    env |= {"FEEDWATER_DATA": "imagenet=/data", "SLURM_SUBMIT_DIR": str(tmp_path)}
    env |= {"SLURM_JOB_ID": "7", "SLURM_JOB_ID_HET_GROUP_1": "8"}
    process = Process(["bash", "-c", SIGNAL_AT, FOLDER / script, "python", "train.py"], tmp_path / "job", env)
    try:
        assert process.wait(WITHIN) == {"nodes.sbatch": 0, "hetjob.sbatch": 143}[script]
    finally:
        process.stop()
    assert not list(tmp_path.glob("nodes-*"))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["3"],
        ["3", "feedwater"],
        ["3", "--", "nodes.sbatch"],
        ["3", "feedwater", "--"],
        ["x", "feedwater", "--", "x"],
    ],
)
def test_wrong_arguments(fake: Fake, tmp_path: Path, arguments: list[str]) -> None:
    process = Process([SCALE, *arguments], tmp_path / "log")
    assert process.wait(WITHIN) == 2
    assert "MOST" in process.said()


def test_it_stays_short() -> None:
    assert len(SCALE.read_text().splitlines()) <= 60
