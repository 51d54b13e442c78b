"""With the real agent and real nodes: broken pictures, folders that are none, nodes that cannot help."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import make_photos
from digest import digest

import feedwater
from feedwater import Loader
from feedwater._agent.process import agent
from feedwater.transforms import RandomHorizontalFlip, RandomResizedCrop

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("real")

USUAL = [RandomResizedCrop(32), RandomHorizontalFlip()]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """20 pictures of five classes; tests may spoil them."""
    folder = tmp_path / "data"
    folder.mkdir()
    return make_photos(folder, 20)


def pictures(folder: Path) -> list[Path]:
    """Sample i of a folder is the ith of these."""
    return sorted(folder.rglob("*.jpg"))


def make(source: Any, **options: Any) -> Loader[Any]:
    return Loader(source, USUAL, **{"batch_size": 4, **options})


# -- pictures ----------------------------------------------------------------------------------------------------------


def cut_in_the_middle(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_in_the_header(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:40])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def text(file: Path) -> None:
    file.write_text("this is not a picture")


def bomb(file: Path) -> None:
    """A picture whose header claims 65,500 x 65,500 pixels."""
    data = file.read_bytes()
    frame = re.search(rb"\xff[\xc0\xc2]\x00[\x0b\x11]\x08", data)
    assert frame is not None
    side = (65500).to_bytes(2, "big")
    file.write_bytes(data[: frame.end()] + side + side + data[frame.end() + 4 :])


SPOIL: dict[int, tuple[Callable[[Path], None], str]] = {
    3: (empty, "empty"),
    7: (text, "not a picture"),
    11: (cut_in_the_header, "truncated"),
    15: (bomb, "65500×65500"),
    17: (cut_in_the_middle, "truncated"),
}
"""What is wrong with which sample, and what the cause must say."""


@pytest.fixture
def broken(data: Path) -> Path:
    """20 pictures; those of SPOIL do not decode."""
    files = pictures(data)
    for index, (spoil, _) in SPOIL.items():
        spoil(files[index])
    return data


def test_a_broken_file_is_named_with_its_cause(broken: Path) -> None:
    loader = make(broken, batch_size=1)
    found = {}
    for index in range(20):
        loader.load_state_dict({"version": 1, "epoch": 0, "consumed": index})
        try:
            next(iter(loader))
        except feedwater.SampleError as error:
            found[index] = error
    assert sorted(found) == sorted(SPOIL)
    files = pictures(broken)
    for index, error in found.items():
        assert (error.index, error.key) == (index, str(files[index].relative_to(broken)))
        assert (error.op, error.node) == ("decode", "")
        assert SPOIL[index][1] in error.cause
        assert error.key in str(error)
        assert 'on_error="skip"' in str(error)
        sample = loader.replay(index)
        assert sample.image is None
        assert sample.error is not None


def test_a_header_that_lies_is_refused_before_anything_is_allocated(data: Path) -> None:
    loader = make(data)
    list(loader)
    before = peak_bytes()
    for file in pictures(data):
        bomb(file)
    loader.close()
    loader = make(data, on_error="skip", max_errors=20)
    with pytest.raises(feedwater.DataError, match="leaves nothing of epoch 0: none of its 20 samples decodes"):
        list(loader)
    assert loader.stats().skipped == 20
    assert peak_bytes() < before + (1 << 30), "a picture of 65,500 x 65,500 has 12 GiB"


def peak_bytes() -> int:
    """The most memory that the agent has had at once."""
    status = Path(f"/proc/{agent.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def test_skipping_is_deterministic_and_counted(broken: Path) -> None:
    expected = [i for i in range(20) if i not in SPOIL]
    for size in (3, 20):
        loader = make(broken, batch_size=size, on_error="skip", max_errors=5)
        assert [i for _ in loader for i in loader.last.indices.tolist()] == expected
        assert loader.stats().skipped == 5
    loader = make(broken, batch_size=8, on_error="skip", max_errors=5, fields=("image", "valid", "index"))
    held = []
    for image, valid, index in loader:
        assert not image[~valid].any()
        held += index[valid].tolist()
    assert held == expected


def test_substitutes_are_deterministic_and_whole(broken: Path) -> None:
    runs = []
    for size in (3, 20):
        loader = make(broken, batch_size=size, on_error="substitute", max_errors=5)
        runs.append([i for _ in loader for i in loader.last.indices.tolist()])
        assert loader.stats().substituted == 5
    assert runs[0] == runs[1]
    assert len(runs[0]) == 20
    assert not set(SPOIL) & set(runs[0])


@pytest.mark.parametrize("on_error", ["skip", "substitute"])
def test_too_many_broken_files_end_the_run(broken: Path, on_error: str) -> None:
    loader = make(broken, on_error=on_error, max_errors=2)
    with pytest.raises(feedwater.DataError, match="3 broken samples in epoch 0, and max_errors=2 allows 2"):
        list(loader)


@pytest.mark.parametrize("on_error", ["skip", "substitute"])
def test_nodes_agree_on_what_is_broken(nodes: Any, broken: Path, on_error: str) -> None:
    options = {"on_error": on_error, "max_errors": 5, "shuffle": True, "seed": 3}
    expected = digest(make(broken, **options), 2)
    loader = make("photos", nodes=[nodes.start(broken) for _ in range(2)], **options)
    assert digest(loader, 2) == expected
    stats = loader.stats()
    assert (stats.skipped, stats.substituted) == ((10, 0) if on_error == "skip" else (0, 10))


# -- folders -----------------------------------------------------------------------------------------------------------


UNREADABLE = """
import ctypes, os, sys
import feedwater
if os.geteuid() == 0:  # root reads everything: give up that right, for the agent to be started
    CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP = 1, 2, 24
    for right in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, right, 0, 0, 0) == 0
for on_error in ("raise", "skip", "substitute"):
    loader = feedwater.Loader(
        sys.argv[1], feedwater.transforms.CenterCrop(8), batch_size=4, on_error=on_error, max_errors=20, timeout=30
    )
    try:
        list(loader)
    except feedwater.Error as error:
        print(type(error).__name__, error, flush=True)
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_may_not_be_read_is_no_broken_picture(data: Path, what: str) -> None:
    # Skipping it would make the order depend on who reads.
    hidden = pictures(data)[5] if what == "file" else data / "class2"
    hidden.chmod(0)
    done = subprocess.run(
        [sys.executable, "-c", UNREADABLE, str(data)], capture_output=True, text=True, timeout=120, check=False
    )
    hidden.chmod(0o755)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3, lines
    for line in lines:
        assert line.startswith("DataError")
        assert str(hidden.relative_to(data)) in line
        assert "permission denied" in line


def a_link_to_nothing(file: Path) -> None:
    file.symlink_to("/nonexistent")


def a_link_to_itself(file: Path) -> None:
    file.symlink_to(file.name)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (a_link_to_nothing, "no such file"),
        (a_link_to_itself, "too many levels of symbolic links"),
        (os.mkfifo, "not a regular file"),
    ],
)
def test_what_is_no_file_is_named_at_once(data: Path, spoil: Callable[[Path], None], why: str) -> None:
    spoil(data / "class3" / "x.jpg")
    for _ in range(2):
        with pytest.raises(feedwater.DataError, match=rf"class3/x\.jpg.*{why}"):
            next(iter(make(data)))


def test_a_folder_that_is_named_like_a_picture_is_a_folder(data: Path) -> None:
    below = data / "class3" / "x.jpg"
    below.mkdir()
    with make(data) as loader:
        assert sum(len(labels) for _, labels in loader) == 20
    shutil.copy(pictures(data)[0], below / "y.jpg")
    loader = make(data)
    assert "class3/x.jpg/y.jpg" in [key for _ in loader for key in loader.last.keys]


def test_a_loader_that_is_refused_keeps_no_agent(tmp_path: Path) -> None:
    """The way out is often a variable of the environment, and the next Loader's agent has to have it."""
    users = set(agent._users)
    (tmp_path / "list.csv").write_text("path\n")
    refused = make(tmp_path / "list.csv")
    with pytest.raises(feedwater.DataError):
        next(iter(refused))
    assert set(agent._users) == users


def test_folders_that_are_no_image_folders(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    with pytest.raises(feedwater.DataError, match=f"{folder}: no such folder"):
        make(folder)
    with pytest.raises(feedwater.DataError, match=r"shard\.tar: no such file or folder"):
        make(tmp_path / "shard.tar")
    folder.mkdir()
    for prepare, why in (
        (lambda: None, "it holds no picture and no folder; pictures of classes lie in a folder for each"),
        (lambda: shutil.copy(pictures(data)[0], folder / "a.jpg"), "1 pictures, a.jpg the first, lie in it directly"),
        (lambda: (folder / "cats").mkdir(), "no picture .* in the folder cats"),
    ):
        prepare()
        with pytest.raises(feedwater.DataError, match=f"{folder}: .*{why}"):
            next(iter(make(folder)))
    loader = make(data)
    shutil.rmtree(data)
    with pytest.raises(feedwater.DataError, match=f"{data}.*no such file"):
        next(iter(loader))


@pytest.mark.parametrize(("batch_size", "ranks"), [(21, 1), (11, 2)])
def test_a_batch_above_the_data_set_with_drop_is_said(data: Path, batch_size: int, ranks: int) -> None:
    loader = make(data, batch_size=batch_size, drop_last=True, rank=0, num_replicas=ranks)
    for use in (len, lambda loader: next(iter(loader)), lambda loader: loader.peek()):
        with pytest.raises(ValueError, match="no batch is left"):
            use(loader)


# -- changes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["grown", "gone"])
def test_a_file_that_changed_since_the_snapshot_is_named(data: Path, change: str) -> None:
    loader = make(data, memory=4 * 20480)
    it = iter(loader)
    next(it)
    for file in pictures(data)[1:]:  # one of each class stays
        if change == "grown":
            file.write_bytes(file.read_bytes() + b"more")
        elif file.name >= "0005":
            file.unlink()
    with pytest.raises(feedwater.DataError, match=r"class\d/\d+\.jpg .*it changed after .* listed anew: .*new Loader"):
        for _ in range(50):  # what was made before is good
            list(it)
            it = iter(loader)


def test_a_file_more_is_another_data_set(data: Path) -> None:
    loader = make(data, shuffle=True)
    it = iter(loader)
    next(it)
    state = loader.state_dict()
    shutil.copy(pictures(data)[0], data / "class0" / "zzz.jpg")
    assert 4 + sum(len(labels) for _, labels in it) == 20, "a running job keeps its snapshot"
    assert agent.pid is not None
    os.kill(agent.pid, signal.SIGKILL)
    with pytest.raises(feedwater.DataError, match="changed while it was in use"):
        for _ in loader:
            pass
    resumed = make(data, shuffle=True)
    with pytest.raises(feedwater.StateMismatchError, match="the data set"):
        resumed.load_state_dict(state)


# -- nodes -------------------------------------------------------------------------------------------------------------


def one_more(folder: Path) -> list[str]:
    shutil.copy(pictures(folder)[0], folder / "class1" / "zz.jpg")
    return ["first difference", "class1/zz.jpg"]


def one_larger(folder: Path) -> list[str]:
    file = pictures(folder)[6]
    before = file.stat().st_size
    file.write_bytes(file.read_bytes() + b"more")
    return [f"first difference: {file.relative_to(folder)} has ", f" {before} ", f" {before + 4} "]


def another_class(folder: Path) -> list[str]:
    (folder / "class4").rename(folder / "class5")
    return ["class 4 is ", '"class4"', '"class5"']


@pytest.mark.parametrize("change", [one_more, one_larger, another_class])
def test_nodes_of_other_data_begin_no_job_and_tell_the_first_difference(
    nodes: Any, data: Path, tmp_path: Path, change: Callable[[Path], list[str]]
) -> None:
    expected = digest(make(data, shuffle=True))
    other = tmp_path / "other"
    shutil.copytree(data, other)
    difference = change(other)
    good = nodes.start(data)
    loader = make("photos", nodes=[good], shuffle=True)
    next(iter(loader))
    state = loader.state_dict()
    bad = nodes.start(other)
    with pytest.raises(feedwater.DataError) as caught:
        next(iter(make("photos", nodes=[good, bad], shuffle=True)))
    for part in (f"{bad} has other data than {good} (", *difference):
        assert part in str(caught.value)
    # A job that is pinned to its data takes no other.
    alone = make("photos", nodes=[bad], shuffle=True, start_timeout=20)
    with pytest.raises(feedwater.StateMismatchError, match="the data set"):
        alone.load_state_dict(state)
    with pytest.raises(feedwater.DataError, match="fingerprint"):
        next(iter(make(data, nodes=[bad], start_timeout=20)))
    assert digest(make(data, nodes=[good, bad], shuffle=True)) == expected


def notices(loader: Loader[Any], caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Goes on until the loader has warned."""
    while not caplog.messages:
        list(loader)
        yield


def test_nodes_of_other_numerics_are_left_out_and_named(
    nodes: Any, testnode: str, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = digest(make(data, shuffle=True))
    good = nodes.start(data)
    loader = make("photos", nodes=[good], shuffle=True)
    next(iter(loader))
    state = {**loader.state_dict(), "consumed": 0}
    other = nodes.start(data, "--test-numerics", "ab" * 16, binary=testnode)
    both = make("photos", nodes=[good, other], shuffle=True)
    both.load_state_dict(state)
    with caplog.at_level(logging.WARNING, "feedwater"):
        assert digest(both) == expected
        for _ in notices(both, caplog):
            pass
    assert other in caplog.messages[0]
    assert "numerics" in caplog.messages[0]
    alone = make("photos", nodes=[other], shuffle=True, start_timeout=20)
    with pytest.raises(feedwater.NumericsError, match="numerics") as caught:
        alone.load_state_dict(state)
    assert other in str(caught.value)


def nobody(ports: list[socket.socket]) -> str:
    """A port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def silent(ports: list[socket.socket]) -> str:
    """A port where connections are accepted, and nothing is ever said."""
    ports.append(socket.create_server(("127.0.0.1", 0)))
    return f"127.0.0.1:{ports[-1].getsockname()[1]}"


def deaf(ports: list[socket.socket]) -> str:
    """A port whose queue is full: what is sent there gets no answer at all, as from a black hole."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    ports.append(server)
    for _ in range(4):
        ports.append(socket.socket())
        ports[-1].setblocking(False)
        ports[-1].connect_ex(server.getsockname())
    return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def ports() -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    yield opened
    for port in opened:
        port.close()


@pytest.mark.parametrize("kind", [nobody, silent, deaf])
def test_nodes_that_do_not_answer_are_a_stall_that_names_them(
    ports: list[socket.socket], kind: Callable[[list[socket.socket]], str]
) -> None:
    address = kind(ports)
    loader = make("photos", nodes=address, start_timeout=1)
    for _ in range(2):
        with pytest.raises(feedwater.StallError) as caught:
            next(iter(loader))
        assert address in str(caught.value)
        assert isinstance(caught.value, TimeoutError)
        for raw in ("rpc error", "desc =", "transport:"):
            assert raw not in str(caught.value)
    if kind is nobody:
        assert "connection refused: nothing listens there. A node listens on 127.0.0.1:7070" in str(caught.value)


@pytest.mark.parametrize("kind", [nobody, silent, deaf])
def test_one_node_that_does_not_answer_stands_in_nobodys_way(
    nodes: Any, data: Path, ports: list[socket.socket], kind: Callable[[list[socket.socket]], str]
) -> None:
    loader = make("photos", nodes=[kind(ports), nodes.start(data)], shuffle=True)
    assert digest(loader) == digest(make(data, shuffle=True))


def test_a_node_that_freezes_alone_is_a_stall_and_goes_on_when_it_thaws(nodes: Any, data: Path) -> None:
    expected = digest(make(data, shuffle=True, batch_size=1))
    address = nodes.start(data)
    loader = make("photos", nodes=address, shuffle=True, batch_size=1, timeout=1, memory=4 * 4096)
    loader.peek()
    nodes.running[0].process.send_signal(signal.SIGSTOP)
    it = iter(loader)
    with pytest.raises(feedwater.StallError) as caught:
        list(it)
    assert address in str(caught.value)
    nodes.running[0].process.send_signal(signal.SIGCONT)
    state = {**loader.state_dict(), "consumed": 0}
    loader.load_state_dict(state)
    made = None
    while made is None:
        try:
            made = digest(loader)
        except feedwater.StallError:  # it is looked for again at growing intervals
            loader.load_state_dict(state)
    assert made == expected
