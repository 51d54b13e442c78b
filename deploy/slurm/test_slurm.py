"""Nodes as jobs of a real Slurm: what docs/slurm.md has people type, and what happens when tasks come, go and die."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from played_scaler import PlayedScaler
from slurm_cluster import MAX_ARRAY, Slurm, free_ports, missing

from enginetest.job import PACED, TRAINER, generate_pictures, told, train_on, undisturbed
from enginetest.pages import blocks, replaced
from enginetest.processes import Process, await_that, parent_of, started_at
from enginetest.report import report

PAGE = "docs/slurm.md"
PACE = "20ms"
CAP = 5
WITHIN = 60.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slurm")


@pytest.fixture(scope="module")
def pictures(place: Path) -> Path:
    return generate_pictures(place / "imagenet" / "train").parent


@pytest.fixture(scope="module")
def slurm(place: Path) -> Iterator[Slurm]:
    lacking = missing()
    assert not lacking, f"this needs a real Slurm: apt-get install {' '.join(lacking)}"
    cluster = Slurm(place, FEEDWATER_CACHE_DIR=str(place / "cache"), FEEDWATER_BINARY=str(PACED))
    try:
        began = time.monotonic()
        cluster.start()
        report(f"six nodes idle after {time.monotonic() - began:.1f} s")
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def folder(slurm: Slurm, place: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The shared folder of a test. Its jobs end with it."""
    folder = place / "shared" / request.node.name
    folder.parent.mkdir(exist_ok=True)
    yield folder
    slurm.run("scancel", "--me")
    await_that("all jobs end", slurm.has_no_job, WITHIN, slurm.tails)


Start = Callable[..., Process]


@pytest.fixture
def start(slurm: Slurm, folder: Path, place: Path) -> Iterator[Start]:
    """Starts programs that end with the test."""
    started: list[Process] = []

    def run(*command: str | Path, log: str, **variables: str) -> Process:
        started.append(Process(command, place / f"{folder.name}.{log}", {**slurm.env, **variables}, cwd=slurm.folder))
        return started[-1]

    yield run
    for process in reversed(started):
        process.stop()


def announced(folder: Path) -> dict[int, Path]:
    """The nodes that are in a shared folder, by the number of their process."""
    return {int(file.name.split(".")[-2]): file for file in folder.glob("[!.]*") if not file.name.endswith(".tmp")}


def shell(slurm: Slurm, text: str, names: dict[str, str]) -> None:
    """Runs a block of the page."""
    slurm.run("bash", "-euc", f"cd {slurm.folder}\n" + replaced(text, names))


def first_block(slurm: Slurm, folder: Path, pictures: Path) -> None:
    """The nodes of the page's first block, each with the pace of one that can be told how fast it is."""
    text = blocks(PAGE, "sh")[0]
    names = {"deploy/slurm": str(Path(__file__).parent), "/shared/nodes": str(folder), "/data/imagenet": str(pictures)}
    shell(slurm, text, names | {"--insecure": f"--insecure --test-sample-time {PACE}"})
    await_that("three nodes", lambda: len(announced(folder)) == 3, WITHIN, slurm.tails)


def add_node(slurm: Slurm, folder: Path, pictures: Path, n: int = 1) -> None:
    """Submits tasks as the page has it."""
    env = f"FEEDWATER_ANNOUNCE={folder}"
    slurm.run(
        "env",
        env,
        "sbatch",
        f"--array=0-{n - 1}",
        "nodes.sbatch",
        "--data",
        f"imagenet={pictures}",
        "--insecure",
        "--test-sample-time",
        PACE,
    )


TRAINING = ("--batch", "32", "--picture", "64")


def test_nodes_come_go_and_die_under_a_job(slurm: Slurm, folder: Path, pictures: Path, start: Start) -> None:
    """One job, and all that happens to its nodes: its stream is that of a calm machine, and it hardly waits."""
    first_block(slurm, folder, pictures)
    steps = ("--steps", "450")
    job = start(*train_on(f"file:{folder}", 0.08, *TRAINING, *steps), log="trainer")

    def taken() -> int:
        assert job.ended() in (None, 0), job.tail()
        return len(told(job.log).steps)

    def step(n: int) -> None:
        await_that(f"step {n}", lambda: taken() >= n, WITHIN, lambda: job.tail() + slurm.tails())

    step(30)
    before = set(announced(folder))
    add_node(slurm, folder, pictures)
    new = await_that("a fourth node", lambda: set(announced(folder)) - before, WITHIN, slurm.tails).pop()
    appeared = time.time()
    batch = parent_of(new)
    await_that("it has a stream", lambda: connections(new), WITHIN, slurm.tails)
    joined = time.time() - started_at(batch)
    in_folder = appeared - started_at(batch)
    report(f"task start → in the folder {in_folder:.2f} s, → in the job's stream {joined:.2f} s")
    assert joined <= 2

    step(100)
    newest = max(slurm.tasks(), key=lambda t: [int(n) for n in t.split("_")])
    told_at = time.time()
    slurm.run("scancel", newest)
    await_that("it has drained", lambda: not Path(f"/proc/{new}").exists(), WITHIN, slurm.tails)
    drained = time.time() - told_at
    log = (slurm.folder / f"feedwater-{newest}.log").read_text()
    report(f"scancel → drained {drained:.2f} s")
    assert drained <= 1 and "msg=draining" in log and "msg=stopped" in log and new not in announced(folder), log

    step(150)
    killed = min(announced(folder))
    others = set(announced(folder))
    kill_at = time.time()
    os.kill(killed, signal.SIGKILL)
    back = await_that("it is back", lambda: set(announced(folder)) - others, WITHIN, slurm.tails).pop()
    await_that("it has a stream", lambda: connections(back), WITHIN, slurm.tails)
    returned = time.time() - kill_at
    report(f"kill -9 of a node → in the job's stream again {returned:.2f} s")
    assert returned <= 10 and killed not in announced(folder)

    step(200)
    victim = min(announced(folder))
    for pid in (parent_of(victim), victim):
        os.kill(pid, signal.SIGKILL)
    add_node(slurm, folder, pictures)  # what scale.sh does about a task that is gone
    step(250)
    slurm.daemons["slurmctld"].send(signal.SIGSTOP)
    step(330)
    slurm.daemons["slurmctld"].send(signal.SIGCONT)
    assert job.wait(120) == 0, job.tail()
    said = told(job.log)
    stall, longest = said.stall()
    report(f"{len(said.steps)} steps, stall {stall:.2%}, longest wait {longest:.2f} s, digest {said.digest}")
    assert said.digest == undisturbed(pictures / "train", *TRAINING, *steps)
    assert longest <= 1


def connections(pid: int) -> int:
    """How many TCP connections a process has accepted."""
    sockets = set()
    try:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            sockets.add(os.readlink(fd))
        rows = [
            row.split()
            for name in ("tcp", "tcp6")
            for row in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        ]
    except OSError:  # it has ended
        return 0
    return sum(row[3] == "01" and f"socket:[{row[9]}]" in sockets for row in rows)


def test_one_job_of_two_groups(slurm: Slurm, folder: Path, pictures: Path) -> None:
    """The page's second block. Nodes end with the training, in order, and leave nothing."""
    command = f"{sys.executable} {TRAINER} imagenet/train --steps 60 {' '.join(TRAINING)}"
    text = replaced(
        blocks(PAGE, "sh")[1], {"/data/imagenet": str(pictures), "python train.py": f"trainer.sh {command}"}
    )
    wrapper = slurm.folder / "trainer.sh"
    # As the page's second script has it.
    wrapper.write_text('#!/bin/sh\nexec "$@" --nodes "file:$FEEDWATER_ANNOUNCE"\n')
    wrapper.chmod(0o755)
    began = time.time()
    slurm.run("bash", "-euc", f"cd {slurm.folder}\nPATH=$PATH:{slurm.folder}\n{text}")

    def log() -> Path | None:
        return next(slurm.folder.glob("train-*.log"), None)

    file = await_that("the job begins", log, WITHIN, slurm.tails)
    await_that("it has trained", lambda: told(file).digest, WITHIN, slurm.tails)
    report(f"sbatch → first batch {told(file).steps[0]['at'] - began:.1f} s")
    assert told(file).digest == undisturbed(pictures / "train", "--steps", "60", *TRAINING)
    await_that("the job ends", slurm.has_no_job, WITHIN, slurm.tails)
    text = file.read_text()
    assert text.count("msg=draining") == 3 == text.count("msg=stopped"), text
    assert not list(slurm.folder.glob("nodes-*"))


ALL_ANNOUNCED = 'until [ "$(ls "$FEEDWATER_ANNOUNCE" | wc -l)" = 3 ]; do sleep 0.1; done; '


@pytest.mark.parametrize(("name", "first", "nodes"), [("at-once", "", 0), ("later", ALL_ANNOUNCED, 3)])
def test_the_training_fails(slurm: Slurm, folder: Path, pictures: Path, name: str, first: str, nodes: int) -> None:
    """Its code is the job's, and nodes end in order, as many as there were by then."""
    done = slurm.run(
        "env",
        f"FEEDWATER_DATA=imagenet={pictures}",
        "sbatch",
        "--wait",
        f"--output=failed-{name}.log",
        "hetjob.sbatch",
        "sh",
        "-c",
        f"{first}exit 7",
        check=False,
    )
    await_that("the job ends", slurm.has_no_job, WITHIN, slurm.tails)
    text = (slurm.folder / f"failed-{name}.log").read_text()
    assert done.returncode == 7, text
    assert nodes <= text.count("msg=listening") == text.count("msg=stopped") <= 3, text
    assert not list(slurm.folder.glob("nodes-*"))


def test_options_that_are_wrong(slurm: Slurm, folder: Path) -> None:
    """A task whose node does not understand its options ends, with 2, and is not tried for ever."""
    folder.mkdir()
    done = slurm.run(
        "env",
        f"FEEDWATER_ANNOUNCE={folder}",
        "sbatch",
        "--wait",
        "--array=0-0",
        "--output=wrong.log",
        "nodes.sbatch",
        "--data",
        "imagenet=/nowhere/at/all",
        "--insecure",
        check=False,
    )
    assert done.returncode == 2, done
    assert "/nowhere/at/all" in (slurm.folder / "wrong.log").read_text()


def test_a_machine_without_the_program(slurm: Slurm, folder: Path) -> None:
    folder.mkdir()
    done = slurm.run(
        "env",
        f"FEEDWATER_ANNOUNCE={folder}",
        "FEEDWATER_BINARY=/opt/none/feedwater",
        "sbatch",
        "--wait",
        "--array=0-0",
        "--output=none.log",
        "nodes.sbatch",
        check=False,
    )
    assert done.returncode == 2 and "/opt/none/feedwater is not on " in (slurm.folder / "none.log").read_text()


def test_no_folder(slurm: Slurm, folder: Path) -> None:
    done = slurm.run("sbatch", "--wait", "--array=0-0", "--output=folder.log", "nodes.sbatch", check=False)
    assert (
        done.returncode != 0
        and "the shared folder where trainers find nodes" in (slurm.folder / "folder.log").read_text()
    )


def test_the_number_is_followed(slurm: Slurm, folder: Path, pictures: Path, start: Start) -> None:
    """The page's third block: the first node for a trainer that waits, as many as it needs, and none behind it."""
    folder.mkdir()
    port = str(free_ports(1)[0])
    names = {"$((20000 + $(id -u) % 10000))": port, "scale.sh 16": f"scale.sh {CAP}", "/data/imagenet": str(pictures)}
    text = replaced(blocks(PAGE, "sh")[2], names).replace(
        "nodes.sbatch --data", f"nodes.sbatch --test-sample-time {PACE} --data"
    )
    start(
        "bash",
        "-euc",
        f"trap 'kill %1; wait' TERM\n{text.rstrip()} &\nwait",
        log="scaling",
        FEEDWATER_ANNOUNCE=str(folder),
        EVERY="1",
    )
    assert not slurm.tasks()
    began = time.time()
    # Four workers of 20 ms make 200 samples a second. 32 each 70 ms are 457, and 15 % more than that takes three.
    steps = ("--steps", "600")
    job = start(
        *train_on(f"file:{folder}", 0.07, *TRAINING, *steps), log="trainer", FEEDWATER_SCALER=f"127.0.0.1:{port}"
    )
    most = 0

    def count() -> int:
        nonlocal most
        most = max(most, len(slurm.tasks()))
        return most

    await_that("a first node", lambda: count() >= 1, WITHIN, slurm.tails)
    report(f"trainer → first task {time.time() - began:.1f} s")
    await_that("three nodes", lambda: count() >= 3, WITHIN, slurm.tails)
    report(f"trainer → third task {time.time() - began:.1f} s")
    await_that("the job ends", lambda: count() and job.ended() is not None, 180, slurm.tails)
    assert told(job.log).digest == undisturbed(pictures / "train", *TRAINING, *steps), job.tail()
    ended = time.time()
    # What the trainer lacks of cores looks like waiting for data; nodes that have time left are not what it waits for.
    assert most == 3
    await_that("no node", lambda: not slurm.tasks(), 240, slurm.tails)
    report(f"at most {most} tasks; none {time.time() - ended:.0f} s after the job")


def test_more_than_an_array_may_have(slurm: Slurm, folder: Path, start: Start) -> None:
    """Nothing is submitted; then a controller that is gone, which is said too."""
    folder.mkdir()
    scaler = PlayedScaler(folder)
    scaler.want(MAX_ARRAY + 12)
    command = (slurm.folder / "scale.sh", "99", scaler.program, "--", "nodes.sbatch")
    scale = start(*command, log="scale", FEEDWATER_ANNOUNCE=str(folder), EVERY="0.2")

    def refused() -> int:
        return scale.said().count("nothing is changed: sbatch has failed")

    await_that("it says so", refused, WITHIN, scale.tail)
    assert "array" in scale.said() and not slurm.tasks()
    slurm.daemons["slurmctld"].stop()
    await_that("it says so", lambda: "nothing is changed: squeue has failed" in scale.said(), WITHIN, scale.tail)
    slurm.start_controller()
    before = refused()
    await_that("it goes on", lambda: refused() > before, WITHIN, scale.tail)
    scaler.fall_silent()


def test_it_runs_as_a_job(slurm: Slurm, folder: Path, pictures: Path) -> None:
    """The page's fourth block. It submits from there, and its scaler ends with it."""
    folder.mkdir()
    scaler = PlayedScaler(folder)
    scaler.want(1)
    text = replaced(blocks(PAGE, "sh")[3], {"/data/imagenet": str(pictures)})
    text, found = re.subn(r"feedwater scaler .* --\s", f"{scaler.program} -- ", text)
    assert found == 1, text
    slurm.run("env", f"FEEDWATER_ANNOUNCE={folder}", "bash", "-euc", f"cd {slurm.folder}\n{text}")
    await_that("a node", slurm.tasks, WITHIN, slurm.tails)
    pid = scaler.pid
    slurm.run("scancel", "--me", "--name=scale.sh")
    await_that("the scaler ends", lambda: not Path(f"/proc/{pid}").exists(), WITHIN, slurm.tails)
    assert slurm.tasks()
    scaler.fall_silent()


def test_one_task_for_each_rank(slurm: Slurm, folder: Path) -> None:
    """The page's script says to each task of an srun which rank it is."""
    folder.mkdir()
    script = folder / "ranks.sh"
    script.write_text(next(block for block in blocks(PAGE, "sh") if block.startswith("#!/bin/sh")))
    script.chmod(0o755)
    code = "from feedwater._common.ranks import resolve_ranks; print('rank', *resolve_ranks(None, None, None))"
    done = slurm.run("srun", "--nodes=1", "--ntasks=2", script, sys.executable, "-c", code)
    assert sorted(done.stdout.split("\n")) == ["", "rank 0 2", "rank 1 2"]
