"""`feedwater top` beside real trainers and nodes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import feedwater
from feedwater._agent.process import agent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where agents of this test put their sockets, apart from all others of this machine."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "feedwater"


def loader_of(photos: Path, **options: Any) -> feedwater.Loader[Any]:
    return feedwater.Loader(photos, feedwater.transforms.CenterCrop(8), batch_size=4, local_workers=1, **options)


def top(binary: str, *arguments: str, code: int = 0) -> str:
    command = [binary, "top", "--once", "--interval", "0.2s", *arguments]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert told.returncode == code, told.stderr
    return told.stdout


def picture(binary: str, *arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(top(binary, "--json", *arguments))
    return told


def until(what: Any) -> Any:
    """What is no longer false; a minute at most."""
    end = time.monotonic() + 60
    while not (found := what()):
        assert time.monotonic() < end
    return found


def test_nothing_runs(binary: str, folder: Path) -> None:
    assert "Nothing is running here" in top(binary)
    assert picture(binary)["jobs"] == []


def test_a_trainer_is_found_by_itself(real: str, folder: Path, photos: Path) -> None:
    with feedwater.Loader(
        photos, feedwater.transforms.CenterCrop(8), batch_size=4, job="rn50", local_workers=1
    ) as loader:
        batches = iter(loader)
        next(batches)
        sockets = list(folder.glob("*.sock"))
        assert [path.stem for path in sockets] == [str(agent.pid)]
        assert folder.stat().st_mode & 0o777 == 0o700

        def steps() -> Any:
            for _ in range(5):
                next(batches)
                time.sleep(0.06)  # a step
            told = picture(real)
            return told if told["jobs"] and told["jobs"][0].get("wait") is not None else None

        told = until(steps)
        (job,) = told["jobs"]
        assert job["job"] == "rn50" and job["world"] == 1 and job["nodes"] == 1
        assert "idle" not in job, "no GPU: unknown"
        (rank,) = job["ranks"]
        assert rank["step_p50"] >= 0.06 and 0 <= rank["wait"] < 1
        assert rank["attempts"], "the wants of a rank are told"
        assert told["processes"][0]["kind"] == "agent" and told["nodes"][0]["state"] == "ready"
        assert "rn50" in top(real)
    until(lambda: not list(folder.glob("*.sock")))


def test_the_socket_of_a_killed_agent_is_cleared_away(real: str, folder: Path, photos: Path) -> None:
    with loader_of(photos) as loader:
        batches = iter(loader)
        next(batches)
        pid = agent.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: agent.pid != pid or not next(batches, True))  # another one takes over
        until(lambda: str(pid) not in [path.stem for path in folder.glob("*.sock")])


def scraped(port: int, name: str) -> list[str]:
    """The lines of a metric of an agent."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
        lines: list[str] = page.read().decode().splitlines()
    return [line for line in lines if line.startswith(f"feedwater_agent_{name}")]


def test_an_agent_is_scraped(real: str, folder: Path, monkeypatch: pytest.MonkeyPatch, photos: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("FEEDWATER_AGENT_HTTP", f"127.0.0.1:{port - 1}")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("FEEDWATER_KEEP", "3MiB")
    monkeypatch.setenv("FEEDWATER_LOG_FORMAT", "json")
    monkeypatch.setenv("FEEDWATER_AGENT_LOG_FILE", str(folder.parent / "agent.log"))
    with loader_of(photos, job="scraped") as loader:
        for _ in loader:
            pass
        end = time.monotonic() + 60
        # A batch is counted once it was sent.
        while not (told := scraped(port, "batches_total{")) or int(told[0].split()[-1]) == 0:
            assert time.monotonic() < end, told
        (limit,) = scraped(port, "pixel_cache_limit_bytes ")
    assert len(told) == 1 and 'run="scraped"' in told[0]
    assert float(limit.split()[-1]) == 3 << 20
    said = [json.loads(line) for line in (folder.parent / "agent.log").read_text().splitlines()]
    assert f"127.0.0.1:{port}" in [line.get("addr") for line in said if line["msg"] == "http"]


def test_a_wrong_variable_is_told(
    real: str, folder: Path, monkeypatch: pytest.MonkeyPatch, photos: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FEEDWATER_INDEX_LIMITS", "1GiB")
    with loader_of(photos) as loader, loader_of(photos) as other:
        next(iter(loader))
        next(iter(other))
    told = [record for record in caplog.records if "FEEDWATER_INDEX_LIMITS" in record.getMessage()]
    assert len(told) == 1 and "did you mean FEEDWATER_INDEX_LIMIT?" in told[0].getMessage()


def test_variables_that_nodes_do_not_hear_of_are_told(
    nodes: Any, real: str, monkeypatch: pytest.MonkeyPatch, photos: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = nodes.start(photos)
    monkeypatch.setenv("FEEDWATER_KEEP", "5MB")
    for _ in range(2):
        with feedwater.Loader("photos", feedwater.transforms.CenterCrop(8), batch_size=4, nodes=address) as loader:
            next(iter(loader))
            with feedwater.Loader("photos", feedwater.transforms.CenterCrop(8), batch_size=4, nodes=address) as other:
                next(iter(other))
        told = [record for record in caplog.records if "FEEDWATER_KEEP: nothing here uses" in record.getMessage()]
        assert [record.levelname for record in told] == ["WARNING"], "once for each agent, where something is said"
        caplog.clear()


def test_a_wrong_value_ends_in_what_variables_take(real: str, monkeypatch: pytest.MonkeyPatch, photos: Path) -> None:
    monkeypatch.setenv("FEEDWATER_INDEX_COPIES", "much")
    with loader_of(photos) as loader, pytest.raises(feedwater.AgentError, match="write it like 4GiB") as caught:
        next(iter(loader))
    assert "'feedwater agent --help'" in str(caught.value)
    told = subprocess.run([real, "agent", "--help"], capture_output=True, text=True, check=True).stdout
    assert "  FEEDWATER_INDEX_COPIES  size\n" in told


def test_nobody_elses_folder_is_used(real: str, folder: Path, photos: Path) -> None:
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with loader_of(photos) as loader:
        next(iter(loader))
        assert not list(folder.iterdir())
        assert list((folder.parent / f"feedwater-{os.getuid()}").glob("*.sock")), "the next place is taken"


def test_an_agent_works_where_it_cannot_be_watched(real: str, monkeypatch: pytest.MonkeyPatch, photos: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nowhere")
    monkeypatch.setenv("TMPDIR", "/nowhere")
    with loader_of(photos) as loader:
        assert len(next(iter(loader))) == 2


def test_nodes_tell_of_all_ranks(nodes: Any, real: str, folder: Path, photos: Path) -> None:
    address = nodes.start(photos)
    script = """
import sys, time, feedwater
loader = feedwater.Loader("photos", feedwater.transforms.CenterCrop(8), batch_size=4, nodes=sys.argv[1], job="two",
    rank=int(sys.argv[2]), num_replicas=2, steps_per_epoch=10**6)
for _ in loader:
    time.sleep(0.05)
"""
    ranks = [subprocess.Popen([sys.executable, "-c", script, address, str(rank)]) for rank in range(2)]
    try:

        def both() -> Any:
            told = picture(real, address)
            stepped = [r for job in told["jobs"][:1] for r in job["ranks"] if int(r["step"]) > 10]
            return told if len(stepped) == 2 and len(told["processes"]) == 3 else None

        told = until(both)
        assert told["jobs"][0]["world"] == 2 and [r["rank"] for r in told["jobs"][0]["ranks"]] == [0, 1]
        assert sorted(p["kind"] for p in told["processes"]) == ["agent", "agent", "node"]
        assert [n["addr"] for n in told["nodes"]] == [address], "what is told of one node is put together"
        for process in ranks:
            process.kill()
            process.wait()
        until(lambda: picture(real, address)["jobs"] == [])
    finally:
        for process in ranks:
            process.kill()
            process.wait()


TRAINING = """
import sys, feedwater
options = {"nodes": sys.argv[2]} if sys.argv[2] else {"local_workers": 1}
crop = feedwater.transforms.CenterCrop(8)
for _ in feedwater.Loader(sys.argv[1], crop, batch_size=4, steps_per_epoch=10**9, **options):
    pass
"""


@contextmanager
def training(nodes: Any, pictures: Path, elsewhere: bool) -> Iterator[list[str]]:
    """A loop over pictures that a node makes, elsewhere, which alone is watched, or this machine; whom to ask."""
    data, address, environment = str(pictures), "", dict(os.environ)
    if elsewhere:
        data, address = "photos", nodes.start(pictures)
        environment |= {"XDG_RUNTIME_DIR": "/nowhere", "TMPDIR": "/nowhere"}
    trainer = subprocess.Popen([sys.executable, "-c", TRAINING, data, address], env=environment)
    try:
        yield [address] if address else []
    finally:
        trainer.kill()
        trainer.wait()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_pictures_that_lack_a_copy_are_told(
    nodes: Any, real: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    pictures = tmp_path / "data" / "class"
    pictures.mkdir(parents=True)
    for number in range(4):
        picture_of = PIL.Image.effect_noise((96 + number, 64), 50).convert("RGB")
        picture_of.save(pictures / f"{number}.jpg", progressive=number % 2 == 0)
    monkeypatch.setenv("FEEDWATER_INDEX", str(tmp_path / "index"))
    with training(nodes, pictures.parent, elsewhere) as addresses:

        def shares() -> Any:
            told = [n for n in picture(real, *addresses)["nodes"] if "missing_copies" in n]
            return [round(n["missing_copies"], 1) for n in told]

        assert until(shares) == [0.5]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_pictures_that_are_kept_are_told(
    nodes: Any, real: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    pictures = tmp_path / "data" / "class"
    pictures.mkdir(parents=True)
    for number in range(4):
        PIL.Image.effect_noise((200, 150), 50).convert("RGB").save(pictures / f"{number}.png")
    monkeypatch.setenv("FEEDWATER_INDEX", "off")
    monkeypatch.setenv("FEEDWATER_KEEP", "1GiB")
    with training(nodes, pictures.parent, elsewhere) as addresses:

        def is_told() -> Any:
            shares = [n.get("kept", 0.0) for n in picture(real, *addresses)["nodes"]]
            assert all(share <= 1 for share in shares)
            return shares == [pytest.approx(1, abs=0.01)]

        assert until(is_told)


def test_a_node_that_is_not_there(binary: str, folder: Path) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{s.getsockname()[1]}"
        (error,) = json.loads(top(binary, "--json", address, code=1))["errors"]
    assert error["addr"] == address and "refused" in error["error"]
    bad = subprocess.run([binary, "top", "--once", "nonsense"], capture_output=True, text=True)
    assert bad.returncode == 2 and "host:port" in bad.stderr


def test_the_page_of_all_that_top_sees(real: str, folder: Path, photos: Path) -> None:
    page = subprocess.Popen([real, "top", "--page", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        assert page.stdout is not None
        address = page.stdout.readline().strip()
        with loader_of(photos, job="rn50") as loader:
            next(iter(loader))

            def shown() -> Any:
                with urllib.request.urlopen(address + "/watch.json", timeout=60) as answer:
                    return json.load(answer)["jobs"]

            assert until(shown)[0]["job"] == "rn50"
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert "<title>Feedwater</title>" in answer.read().decode()
    finally:
        page.terminate()
        assert page.wait(60) == 0
        assert page.stdout is not None
        page.stdout.close()
