"""With real nodes, on unix sockets of this machine: the same bytes as on this machine alone, whoever makes them."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest import make_photos
from digest import Digest, digest
from test_real import USUAL, make

import feedwater
from feedwater import Loader
from feedwater._agent.process import agent

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("real")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated pictures."""
    return make_photos(tmp_path_factory.mktemp("data"), 60)


def remote(nodes: str, source: Any = "photos", **options: Any) -> Loader[Any]:
    return make(source, nodes=nodes, **options)


def test_the_same_bytes_from_no_node_one_and_three(nodes: Any, data: Path) -> None:
    expected = digest(make(data), 2)
    addresses = [nodes.start(data) for _ in range(3)]
    assert digest(remote(addresses[0]), 2) == expected
    assert digest(remote(",".join(addresses)), 2) == expected
    tensors = [list(make(data, dtype=torch.float32)), list(remote(addresses[1], dtype=torch.float32))]
    assert all(torch.equal(a, b) for (a, _), (b, _) in zip(*tensors, strict=True))


def test_a_local_folder_is_found_on_the_nodes_by_its_fingerprint(nodes: Any, data: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "copy"
    shutil.copytree(data, elsewhere)
    address = nodes.start(elsewhere, name="other")
    assert digest(remote(address, data)) == digest(make(data))


def test_a_name_is_a_root_even_where_a_folder_here_has_it(
    nodes: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = digest(make(data))
    address = nodes.start(data)
    (tmp_path / "photos" / "class").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert digest(remote(address)) == expected
    for here in (Path("photos"), "./photos", "./nowhere"):
        with pytest.raises(feedwater.DataError, match=r"photos|nowhere"):
            next(iter(remote(address, here, start_timeout=20)))


def test_a_part_of_a_root(nodes: Any, data: Path, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    shutil.copytree(data, tmp_path / "all" / "train")
    loader = remote(nodes.start(tmp_path / "all", name="mine"), "mine/train")
    assert digest(loader) == digest(make(data))
    assert loader.classes == sorted(p.name for p in data.iterdir())


def test_a_wrong_root_lists_those_there_are(nodes: Any, data: Path) -> None:
    address = nodes.start(data)
    with pytest.raises(feedwater.DataError, match="photos"):
        next(iter(remote(address, "imagenet/train", start_timeout=20)))


def test_a_node_killed_amid_an_epoch_changes_nothing(nodes: Any, data: Path) -> None:
    expected = digest(make(data), 3)
    loader = remote(",".join(nodes.start(data) for _ in range(2)))
    running = Digest()
    for epoch in range(3):
        for step, batch in enumerate(loader):
            running.add(batch, loader)
            if (epoch, step) == (0, 3):
                nodes.running[0].process.kill()
    assert running.hex() == expected


def test_cores_here_are_one_more_node_and_go_on_when_the_others_are_gone(nodes: Any, data: Path) -> None:
    expected = digest(make(data, dtype=torch.float32), 3)
    loader = remote(",".join(nodes.start(data) for _ in range(2)), data, local_workers=1, dtype=torch.float32)
    running = Digest()
    for epoch in range(3):
        for step, batch in enumerate(loader):
            running.add(batch, loader)
            if (epoch, step) == (1, 3):
                for node in nodes.running:
                    node.process.kill()
    assert running.hex() == expected


def test_a_node_that_freezes_changes_nothing(nodes: Any, data: Path) -> None:
    expected = digest(make(data), 3)
    loader = remote(",".join(nodes.start(data) for _ in range(2)))
    running = Digest()
    for epoch in range(3):
        for step, batch in enumerate(loader):
            running.add(batch, loader)
            if (epoch, step) == (0, 3):
                nodes.running[1].process.send_signal(signal.SIGSTOP)
    assert running.hex() == expected


def test_a_node_and_the_agent_killed(nodes: Any, data: Path) -> None:
    expected = digest(make(data), 2)
    loader = remote(",".join(nodes.start(data) for _ in range(2)))
    running = Digest()
    for epoch in range(2):
        for step, batch in enumerate(loader):
            running.add(batch, loader)
            if (epoch, step) == (0, 2):
                nodes.running[0].process.kill()
                assert agent.pid is not None
                os.kill(agent.pid, signal.SIGKILL)
    assert running.hex() == expected


def test_all_nodes_gone_is_a_stall_that_names_each_and_goes_on_when_one_is_back(nodes: Any, data: Path) -> None:
    expected = digest(make(data), 1)
    address = nodes.start(data)
    loader = remote(address, timeout=3)
    running = Digest()
    it = iter(loader)
    running.add(next(it), loader)
    nodes.running[0].process.kill()
    nodes.running[0].process.wait()
    os.unlink(address.removeprefix("unix:"))
    with pytest.raises(feedwater.StallError) as caught:
        for batch in it:  # what is ready still comes
            running.add(batch, loader)
    assert address in str(caught.value)
    again = nodes.start(data)
    os.rename(again.removeprefix("unix:"), address.removeprefix("unix:"))
    while running.batches < len(loader):
        try:
            for batch in iter(loader):
                running.add(batch, loader)
        except feedwater.StallError:  # it is looked for again at growing intervals
            continue
    assert running.hex() == expected


def test_a_list_that_changes_amid_an_epoch(nodes: Any, data: Path, tmp_path: Path) -> None:
    expected = digest(make(data), 3)
    listed = tmp_path / "nodes"

    def write(*addresses: str) -> None:
        (tmp_path / "next").write_text("\n".join(addresses))
        (tmp_path / "next").rename(listed)

    write(nodes.start(data))
    loader = remote(f"file:{listed}")
    running = Digest()
    for epoch in range(3):
        for step, batch in enumerate(loader):
            running.add(batch, loader)
            if (epoch, step) == (0, 2):
                write(nodes.start(data))
                nodes.running[0].process.kill()
            if (epoch, step) == (1, 1):
                write()
    assert running.hex() == expected


def test_a_lost_agents_successor_goes_on_though_a_node_of_other_data_came(
    nodes: Any, data: Path, tmp_path: Path
) -> None:
    expected = digest(make(data))
    other = tmp_path / "other"
    shutil.copytree(data, other)
    next(other.rglob("*.jpg")).unlink()
    good, bad = nodes.start(data), nodes.start(other)
    listed = tmp_path / "nodes"
    listed.write_text(good)
    loader = remote(f"file:{listed}")
    running = Digest()
    for step, batch in enumerate(loader):
        running.add(batch, loader)
        if step == 1:
            listed.write_text(f"{bad}\n{good}")
            assert agent.pid is not None
            os.kill(agent.pid, signal.SIGKILL)
    assert running.hex() == expected


def test_words_for_nodes_that_are_none_are_refused_with_the_right_ones(data: Path) -> None:
    with pytest.raises(feedwater.PlanError, match="write dns:name:port"):
        next(iter(remote("dns:cpu-1")))


def test_no_node_at_all_is_a_stall_at_the_start(tmp_path: Path) -> None:
    loader = remote(f"unix:{tmp_path}/none.sock", start_timeout=2)
    with pytest.raises(feedwater.StallError, match=r"none\.sock"):
        next(iter(loader))


def test_nodes_of_other_numerics_are_left_out_and_named(nodes: Any, testnode: str, data: Path) -> None:
    good = nodes.start(data)
    loader = remote(good)
    it = iter(loader)
    next(it)
    state = loader.state_dict()
    other = nodes.start(data, "--test-numerics", "ab" * 16, binary=testnode)
    resumed = remote(other, start_timeout=5)
    with pytest.raises((feedwater.NumericsError, feedwater.StateMismatchError), match="numerics"):
        resumed.load_state_dict(state)


def test_broken_samples_name_the_node(nodes: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    make_photos(folder, 12)
    file = sorted(folder.rglob("*.jpg"))[5]
    file.write_bytes(file.read_bytes()[:50])
    address = nodes.start(folder)
    with pytest.raises(feedwater.SampleError) as caught:
        list(remote(address, shuffle=False, batch_size=4))
    assert caught.value.key == str(file.relative_to(folder))
    assert caught.value.node == address
    assert address in str(caught.value)
    loader = remote(address, on_error="skip", max_errors=1)
    assert sum(len(label) for _, label in loader) == 11


def test_replay_and_explain(nodes: Any, data: Path) -> None:
    address = nodes.start(data)
    loader = remote(address)
    image, _ = next(iter(loader))
    sample = loader.replay(int(loader.last.indices[2]))
    assert torch.equal(torch.from_numpy(sample.image), image[2].permute(1, 2, 0))
    assert loader.last.keys[2] == sample.key
    assert address in loader.explain()


def test_pictures_of_different_sizes(nodes: Any, data: Path) -> None:
    pairs = zip(Loader(data, batch_size=8), Loader("photos", batch_size=8, nodes=nodes.start(data)), strict=True)
    for (here, _), (there, _) in pairs:
        assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))


def test_a_sampler_and_a_subset(nodes: Any, data: Path) -> None:
    address = nodes.start(data)
    chosen = [3, 1, 4, 1, 5, 9, 2, 6]
    both = [
        list(make(source, nodes=n, sampler=chosen, shuffle=False, batch_size=3))
        for source, n in (("photos", address), (data, None))
    ]
    assert all(torch.equal(a, b) for (a, _), (b, _) in zip(*both, strict=True))
    assert USUAL


def test_insecure_is_asked_again_after_a_refusal(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEEDWATER_INSECURE", raising=False)
    other = make(data)  # keeps the agent, which was started without the variable
    next(iter(other))
    elsewhere = "10.255.255.1:7070"
    refused = remote(elsewhere, start_timeout=1)
    with pytest.raises(feedwater.Error, match=r"is another machine, .*FEEDWATER_INSECURE=1"):
        next(iter(refused))
    serial = agent.serial
    monkeypatch.setenv("FEEDWATER_INSECURE", "1")  # read when a Loader is made
    with pytest.raises(feedwater.Error, match="is another machine"):
        next(iter(refused))
    with pytest.raises(feedwater.StallError, match=elsewhere):
        next(iter(remote(elsewhere, start_timeout=1)))
    assert agent.serial == serial, "the same agent"
    other.close()
