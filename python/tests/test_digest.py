"""One digest: the same batches, byte for byte, whoever makes them, however they travel and whatever goes wrong.

The committed values pin order, draws, decoding and resizing all at once. They change only when the pixels that a plan
means change on purpose; a state of a running job means something else from then on.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from conftest import HERE, photographs, stop_agent
from digest import Digest, digest

from feedwater import Loader
from feedwater.transforms import RandomHorizontalFlip, RandomResizedCrop

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("real")

REPOSITORY = HERE.parents[1]
TRAIN = [RandomResizedCrop(224), RandomHorizontalFlip()]
PLAN = {
    "source": {"root": "photos"},
    "seed": 17,
    "shuffle": True,
    "transforms": [{"op": "RandomResizedCrop", "size": [224, 224]}, {"op": "RandomHorizontalFlip"}],
}
GENERATED = "f877cb5ec27688523ef04727ac9be5c96a39c89442664c343cf507096fee9d33"
"""Of `jpegfolder -classes 5 -images 24`, epochs 0 and 1 of PLAN."""
PHOTOGRAPHS = "694d158ccedcb5d5df897a95d6530b7c456d76178e86828394ebc5be80ea21e4"
"""Of the 500 photographs that FEEDWATER_PHOTOS names where the project is built; other photographs have another one."""
OF_PHOTOGRAPHS = 500


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of the repository: digest, a trainer written in Go; and jpegfolder."""
    folder = tmp_path_factory.mktemp("tools")
    packages = ["./bench/digest", "./pipeline/codec/jpeg/jpegtest/jpegfolder"]
    subprocess.run(["go", "build", "-o", f"{folder}/", *packages], cwd=REPOSITORY, check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def generated(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pictures that is the same everywhere."""
    folder = tmp_path_factory.mktemp("generated")
    subprocess.run([tools / "jpegfolder", "-classes", "5", "-images", "24", folder], check=True, timeout=300)
    return folder


@pytest.fixture(scope="module", params=["generated", *(["photographs"] if photographs() else [])])
def data(request: pytest.FixtureRequest, generated: Path) -> Path:
    """A folder of pictures."""
    given = photographs()
    return generated if given is None or request.param == "generated" else given


@pytest.fixture(scope="module")
def expected(data: Path, binary: str) -> str:
    """What every way must give: the committed value, or for other photographs what this machine gives."""
    if data != photographs():
        return GENERATED
    if sum(1 for _ in data.rglob("*.*")) == OF_PHOTOGRAPHS:
        return PHOTOGRAPHS
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEEDWATER_BINARY", binary)
        made = digest(make(data), 2)
        stop_agent()
    return made


def make(source: Any, **options: Any) -> Loader[Any]:
    return Loader(source, TRAIN, **{"batch_size": 32, "shuffle": True, "seed": 17, **options})


def remote(addresses: list[str], **options: Any) -> Loader[Any]:
    return make("photos", nodes=addresses, **options)


# -- on this machine ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 8])
def test_with_any_number_of_workers(data: Path, expected: str, workers: int) -> None:
    loader = make(data, local_workers=workers)
    assert digest(loader, 2) == expected
    assert loader._engine.opening.open_plan().workers == workers


def kernels() -> list[str]:
    """The kernel levels of this processor."""
    flags = set(re.findall(r"\w+", Path("/proc/cpuinfo").read_text()))
    needed = {
        "avx2": {"avx2", "bmi2"},
        "avx512": {"avx2", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi", "avx512_vnni"},
    }
    return ["scalar", *(level for level, names in needed.items() if names <= flags)]


@pytest.mark.parametrize("level", kernels())
def test_with_any_kernels(data: Path, expected: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDWATER_KERNELS", level)
    loader = make(data)
    assert digest(loader, 2) == expected
    assert loader._engine.opening.open_plan().kernels == level


def test_with_an_index_and_without(data: Path, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in ("off", str(tmp_path), str(tmp_path), "/dev/null/nowhere"):
        monkeypatch.setenv("FEEDWATER_INDEX", index)
        assert digest(make(data), 2) == expected, index
        stop_agent()
    [kept] = tmp_path.glob("*.index")
    damaged = bytearray(kept.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    kept.write_bytes(damaged)
    monkeypatch.setenv("FEEDWATER_INDEX", str(tmp_path))
    assert digest(make(data), 2) == expected


def test_with_kept_pixels(nodes: Any, data: Path, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDWATER_KEEP", "1GiB")  # for the node, which then has it from here, and the Loader
    assert digest(make(data), 2) == expected
    address = nodes.start(data, listen="127.0.0.1:0")
    kept = 0
    for _ in range(2):
        loader = remote([address])
        assert digest(loader, 2) == expected
        kept += loader.stats().index.kept
    node = nodes.running[0]
    assert 0 < kept <= node.metric("feedwater_node_pixel_cache_hits_total")
    assert node.metric("feedwater_node_pixel_cache_used_bytes") > 0


def test_a_node_counts_what_has_an_index(
    nodes: Any, data: Path, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDWATER_INDEX", str(tmp_path))
    address = nodes.start(data, listen="127.0.0.1:0")
    node = nodes.running[0]
    seen = []
    for _ in range(2):
        assert digest(remote([address]), 2) == expected
        seen.append([node.metric(f"feedwater_node_image_index_{what}_total") for what in ("hits", "misses")])
    (first_hits, first_misses), (hits, misses) = seen
    assert hits > 2 * first_hits > 0
    assert first_misses > misses - first_misses  # those that can have none are few


def test_who_lacks_copies_hears_of_it(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """From the codec to the trainer's counts, of a node and here."""
    pictures = tmp_path / "data" / "class"
    pictures.mkdir(parents=True)
    kinds: list[tuple[str, dict[str, Any]]] = [("lossy.webp", {}), ("lossless.webp", {"lossless": True})]
    kinds += [("progressive.jpg", {"progressive": True}), ("baseline.jpg", {}), ("plain.png", {})]
    for name, options in kinds:
        PIL.Image.effect_noise((120, 90), 50).convert("RGB").save(pictures / name, **options)
    missing = sum((pictures / name).stat().st_size for name in ("lossy.webp", "progressive.jpg"))
    monkeypatch.setenv("FEEDWATER_INDEX", str(tmp_path / "index"))
    address = nodes.start(pictures.parent, listen="127.0.0.1:0")
    for loader in (make(pictures.parent), remote([address])):
        for _ in range(2):
            list(loader)
        use = loader.stats().index
        assert (use.decoded, use.copies, use.missing_copies, use.missing_copy_bytes) == (10, 0, 4, 2 * missing)
        assert "40 % could have had a copy" in loader.explain()
        stop_agent()
    assert nodes.running[0].metric("feedwater_node_image_index_missing_copies_total") >= 4
    assert not any("copies of pictures" in said for said in caplog.messages)
    caplog.clear()
    monkeypatch.setenv("FEEDWATER_INDEX_COPIES", "1kB")
    loader, full = make(pictures.parent), "copies of pictures take as much as they may"
    while not caplog.messages and loader.stats().batches < 100:
        list(loader)
    list(loader)
    assert [full in said for said in caplog.messages] == [True], "once"
    stop_agent()
    monkeypatch.setenv("FEEDWATER_INDEX_COPIES", "1GiB")
    loader = make(pictures.parent)
    while not loader.stats().index.copies and loader.stats().batches < 100:
        list(loader)
    use = loader.stats().index
    assert use.copies and not use.missing_copies
    assert 2 <= use.made_copies <= use.decoded - use.copies


@pytest.mark.parametrize("batch_size", [1, 7, 500])
def test_with_any_batch_size(data: Path, expected: str, batch_size: int) -> None:
    assert digest(make(data, batch_size=batch_size), 2) == expected


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_in_any_type_and_layout(data: Path, expected: str, dtype: Any, memory_format: Any) -> None:
    loader = make(data, dtype=dtype, memory_format=memory_format)
    image, _ = loader.peek()
    assert image.dtype == dtype
    assert image.is_contiguous(memory_format=memory_format)
    assert digest(loader, 2) == expected


# -- on nodes ----------------------------------------------------------------------------------------------------------


def test_from_one_node(nodes: Any, data: Path, expected: str) -> None:
    address = nodes.start(data, listen="127.0.0.1:0")
    assert digest(remote([address]), 2) == expected
    assert digest(remote([address], dtype=torch.float32), 2) == expected


def test_from_three_nodes_of_different_kernels(nodes: Any, data: Path, expected: str) -> None:
    levels = [*kernels(), "scalar", "scalar"][:3]
    addresses = [nodes.start(data, listen="127.0.0.1:0", FEEDWATER_KERNELS=level) for level in levels]
    loader = remote(addresses, batch_size=8)
    assert digest(loader, 2) == expected
    assert all(made(node) > 0 for node in nodes.running), "each had its part"


def test_from_three_nodes_of_which_one_is_killed_and_one_comes_late(nodes: Any, data: Path, expected: str) -> None:
    late = free_port()
    addresses = [nodes.start(data, listen="127.0.0.1:0") for _ in range(2)]
    killed = nodes.running[0]
    loader = remote([*addresses, late], batch_size=8)
    running = Digest()
    for epoch in range(2):
        for step, batch in enumerate(loader):
            running.add(batch, loader)
            if (epoch, step) == (0, 3):
                assert made(killed) > 0
                killed.process.kill()
            if (epoch, step) == (0, 6):
                assert nodes.start(data, listen=late) == late
                until_ready(loader, late)
    assert running.hex() == expected
    assert made(nodes.running[2]) > 0, "the one that came late had its part"


def test_by_a_trainer_written_in_go(nodes: Any, data: Path, expected: str, tools: Path) -> None:
    addresses = ",".join(nodes.start(data, listen="127.0.0.1:0") for _ in range(2))
    command = [tools / "digest", "-nodes", addresses, "-plan", json.dumps(PLAN), "-epochs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == [expected], done.stderr


def made(node: Any) -> float:
    """Samples that a node has made for trainers."""
    return node.metric("feedwater_node_samples_total")


def free_port() -> str:
    """An address of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def until_ready(loader: Loader[Any], address: str) -> None:
    """Waits until the agent has found the node; it looks again at growing intervals."""
    for _ in states(loader, address):
        os.sched_yield()


def states(loader: Loader[Any], address: str) -> Iterator[str]:
    """A node's state, again and again until it is ready."""
    while True:
        answer, _ = loader._engine.feed.session.call("status", {}, 60)
        state = next(node["state"] for node in answer["nodes"] if node["addr"] == address)
        if state == "ready":
            return
        yield state


# -- what it depends on ------------------------------------------------------------------------------------------------


def test_another_seed_epoch_or_argument_has_another_digest(generated: Path) -> None:
    found = {
        "the plan": GENERATED,
        "another seed": digest(make(generated, seed=18), 2),
        "other epochs": digest(make(generated), [1, 2]),
        "epochs in another order": digest(make(generated), [1, 0]),
        "no shuffle": digest(make(generated, shuffle=False), 2),
    }
    for name, steps in {
        "another size": [RandomResizedCrop(223), RandomHorizontalFlip()],
        "another scale": [RandomResizedCrop(224, scale=(0.08, 0.99)), RandomHorizontalFlip()],
        "another ratio": [RandomResizedCrop(224, ratio=(0.75, 1.3)), RandomHorizontalFlip()],
        "another p": [RandomResizedCrop(224), RandomHorizontalFlip(0.49)],
        "no flip": [RandomResizedCrop(224)],
    }.items():
        found[name] = digest(Loader(generated, steps, batch_size=32, shuffle=True, seed=17), 2)
    assert len(set(found.values())) == len(found), found
    assert digest(make(generated), [0, 1]) == GENERATED
