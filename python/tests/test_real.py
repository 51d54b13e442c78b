"""With the real agent on this machine: the pixels are torchvision's, and stay so whatever happens."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HERE, children, stop_agent
from digest import Digest, digest

import feedwater
from feedwater import Loader, transforms
from feedwater._agent.process import agent
from feedwater._agent.replay import keys_of

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
PIL = pytest.importorskip("PIL.Image")

pytestmark = pytest.mark.usefixtures("real")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
USUAL = [transforms.RandomResizedCrop(96), transforms.RandomHorizontalFlip()]


@pytest.fixture(scope="module")
def few(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 of the pictures, in their class folders."""
    folder = tmp_path_factory.mktemp("few")
    files = sorted(photos.rglob("*.*"))
    for file in files[:: max(1, len(files) // 60)][:60]:
        place = folder / file.parent.name
        place.mkdir(exist_ok=True)
        shutil.copy(file, place)
    return folder


def open_picture(folder: Path, key: str) -> Any:
    return PIL.open(folder / key).convert("RGB")


# -- pixels ------------------------------------------------------------------------------------------------------------


def test_plain_decoding_is_pillows(few: Path) -> None:
    loader = Loader(few, batch_size=16)
    assert loader.classes == sorted(p.name for p in few.iterdir())
    seen = 0
    for images, labels in loader:
        for image, label, key in zip(images, labels, loader.last.keys, strict=True):
            assert np.array_equal(image.permute(1, 2, 0), np.asarray(open_picture(few, key))), key
            assert loader.classes[label] == Path(key).parent.name
            seen += 1
    assert seen == 60


@pytest.mark.parametrize(
    "steps",
    [
        [v2.Resize((90, 120))],
        [v2.CenterCrop(100)],
        [v2.Resize(80), v2.CenterCrop(72)],
        [v2.Resize(80, max_size=100)],
    ],
    ids=str,
)
def test_fixed_transforms_are_torchvisions(few: Path, steps: Any) -> None:
    loader = Loader(few, v2.Compose(steps), batch_size=20)
    apply = v2.Compose([*steps, v2.PILToTensor()])
    for images, _ in loader:
        for image, key in zip(images, loader.last.keys, strict=True):
            assert torch.equal(image, apply(open_picture(few, key))), key


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_usual_training_transform_is_torchvisions_with_the_same_draws(few: Path, dtype: Any) -> None:
    tail = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    steps = v2.Compose([v2.RandomResizedCrop(96), v2.RandomHorizontalFlip(), v2.RandomVerticalFlip(0.3), *tail])
    loader = Loader(few, steps, batch_size=20, shuffle=True, seed=7, dtype=dtype)
    flips = 0
    for images, _ in loader:
        for row, sample in enumerate(loader.replay_batch(loader.last.position)):
            crop, *rest = sample.draws
            assert [draw["op"] for draw in sample.draws] == [
                "RandomResizedCrop",
                "RandomHorizontalFlip",
                "RandomVerticalFlip",
            ]
            picture = open_picture(few, sample.key)
            box = [crop[name] for name in ("top", "left", "height", "width")]
            picture = v2.functional.resized_crop(picture, *box, [96, 96], antialias=True)
            for draw, flip in zip(rest, (v2.functional.horizontal_flip, v2.functional.vertical_flip)):
                picture = flip(picture) if draw["applied"] else picture
                flips += draw["applied"]
            assert np.array_equal(sample.image, np.asarray(picture)), sample.key
            assert torch.equal(images[row], v2.Compose(tail)(picture).to(dtype)), sample.key
    assert 20 < flips < 80


def test_epochs_hold_every_sample_once_in_orders_of_their_own(few: Path) -> None:
    loader = Loader(few, USUAL, batch_size=7, shuffle=True)
    orders = [[i for _ in loader for i in loader.last.indices.tolist()] for _ in range(3)]
    assert all(sorted(order) == list(range(60)) for order in orders)
    assert len(set(map(tuple, orders))) == 3


def test_explain_tells_the_dialect(few: Path) -> None:
    text = Loader(few, [transforms.ToImage(), *USUAL], batch_size=7).explain()
    (line,) = (line for line in text.splitlines() if line.startswith("RandomResizedCrop"))
    assert line.split()[:4] == ["RandomResizedCrop", "node", "tensor", "A"]
    assert "dialect=" not in text


def test_explain_names_every_op(few: Path) -> None:
    text = Loader(few, [*USUAL, transforms.ToImage()], batch_size=7).explain()
    for name in ("RandomResizedCrop", "RandomHorizontalFlip", "ToImage", "pil", "tier"):
        assert name in text


def test_explain_has_the_order_in_which_things_run(few: Path) -> None:
    tail: list[Any] = [transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)]
    erasing = transforms.RandomErasing(p=1)
    for steps in ([*tail, erasing], [tail[0], erasing, tail[1]]):
        text = Loader(few, [transforms.Resize((9, 9)), *steps], batch_size=7).explain()
        rows = [line.split()[0] for line in text.split("\n\n")[0].splitlines()]
        assert rows == ["op", "Resize", *(type(step).__name__ for step in steps)]


# -- the same whatever happens -----------------------------------------------------------------------------------------


def make(folder: Path, **options: Any) -> Loader[Any]:
    return Loader(folder, USUAL, **{"batch_size": 8, "shuffle": True, "seed": 3, **options})


def test_the_same_with_any_number_of_workers_and_batch_size(few: Path) -> None:
    expected = digest(make(few), 2)
    for options in (
        {"local_workers": 1},
        {"local_workers": 5},
        {"batch_size": 1},
        {"batch_size": 33},
        {"memory": 8 << 20},
    ):
        loader = make(few, **options)
        assert digest(loader, 2) == expected, options
        loader.close()


def test_the_same_with_an_agent_killed_between_batches(few: Path) -> None:
    expected = digest(make(few))
    for kill_at in range(8):
        loader = make(few)
        running = Digest()
        for step, batch in enumerate(loader):
            running.add(batch, loader)
            if step == kill_at:
                assert agent.pid is not None
                os.kill(agent.pid, signal.SIGKILL)
        assert running.hex() == expected
        loader.close()
        agent._deaths.clear()


def test_the_same_with_agents_killed_at_any_time(few: Path) -> None:
    expected = digest(make(few), 12)
    loader, stop, chance = make(few), threading.Event(), random.Random(1)

    def kill() -> None:
        for longest_s in range(1, 100):  # a busy machine needs longer to start one
            if stop.wait(chance.uniform(0.02, 0.2 * longest_s)):
                return
            agent._deaths.clear()
            pid = agent.pid
            if pid is not None:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        assert digest(loader, 12) == expected
    finally:
        stop.set()
        thread.join()
    assert loader.stats().agent_restarts > 0


def test_ranks_together_read_what_one_reads(few: Path) -> None:
    whole = make(few, batch_size=60)
    image, _ = next(iter(whole))
    loaders = [make(few, rank=rank, num_replicas=3) for rank in range(3)]
    rows: dict[int, Any] = {}
    for step in zip(*loaders, strict=True):
        for loader, (images, _) in zip(loaders, step):
            rows |= {loader.last.position + i: row.clone() for i, row in enumerate(images)}
    assert len(rows) == 60
    assert torch.equal(torch.stack([rows[place] for place in range(60)]), image)


def test_a_resumed_run_has_the_same_bytes_on_another_world(few: Path) -> None:
    whole, _ = next(iter(make(few, batch_size=60)))
    loader = make(few)
    it = iter(loader)
    next(it)
    next(it)
    state = json.loads(json.dumps(loader.state_dict()))
    assert len(json.dumps(state)) < 1024
    loaders = [make(few, batch_size=5, rank=rank, num_replicas=2) for rank in range(2)]
    for resumed in loaders:
        resumed.load_state_dict(state)
        for images, _ in resumed:
            places = [(resumed.last.position + i) for i in range(len(images))]
            keep = [i for i, place in enumerate(places) if place < 60]
            assert torch.equal(images[keep], whole[[places[i] for i in keep]])


def test_a_sampler_gets_the_samples_it_names(few: Path) -> None:
    indices = [5, 59, 5, 0, 17, 5]
    loader = make(few, sampler=indices, batch_size=4, shuffle=False)
    seen = [(int(i), image.clone()) for images, _ in loader for i, image in zip(loader.last.indices, images)]
    assert [i for i, _ in seen] == indices
    fives = [image for i, image in seen if i == 5]
    assert not torch.equal(fives[0], fives[1]), "every appearance has draws of its own"
    again = [image.clone() for images, _ in make(few, sampler=indices, batch_size=3, shuffle=False) for image in images]
    assert all(torch.equal(image, other) for (_, image), other in zip(seen, again, strict=True))


def test_looking_at_large_batches(few: Path) -> None:
    """At more names, and more pixels, than a node tells at once."""
    with Loader(few, batch_size=1) as loader:
        assert len(loader.dataset) == 60
        keys = keys_of(loader._engine.feed.session, 0, np.arange(6000) % 60)
        assert keys == keys[:60] * 100 and len(set(keys)) == 60
        assert keys[7] == loader.replay(7).key
    with Loader(few, [transforms.CenterCrop((3000, 4000))], batch_size=1) as loader:
        assert loader.replay(3).image.shape == (3000, 4000, 3), "a picture of 12 megapixels"
    with Loader(few, [transforms.CenterCrop(1700)], batch_size=8) as loader:
        images, _ = next(iter(loader))
        assert images.nbytes > 60 << 20
        for image, sample in zip(images, loader.replay_batch(0), strict=True):
            assert np.array_equal(image.permute(1, 2, 0), sample.image)


def test_steps_per_epoch_repeats_with_draws_of_their_own(few: Path) -> None:
    loader = make(few, batch_size=60, steps_per_epoch=2)
    (first, _), (second, _) = [(image.clone(), label) for image, label in loader]
    assert loader.last.position == 60
    assert not torch.equal(first, second)
    sample = loader.replay_batch(60)[7]
    assert sample.repeat == 1
    assert np.array_equal(sample.image, second[7].permute(1, 2, 0))


def test_valid_tails(few: Path) -> None:
    loader = make(few, batch_size=16, tail="valid", fields=("image", "label", "valid", "key"))
    keys = []
    for image, label, valid, key in loader:
        assert image.shape == (16, 3, 96, 96)
        assert not image[~valid].any()
        keys += [k for k, v in zip(key, valid) if v]
        assert [loader.classes[i] for i in label[valid]] == [Path(k).parent.name for k, v in zip(key, valid) if v]
    assert len(keys) == len(set(keys)) == 60


def test_data_that_changed_are_named_where_keys_are_a_field(few: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(few, folder)
    loader = make(folder, fields=("image", "key"))
    assert len(list(loader)) == 8
    for file in folder.rglob("*.*"):
        os.utime(file, (1e9, 1e9))
    with pytest.raises(feedwater.DataError, match=r"/\S+ .*it changed"):
        list(loader)


# -- plans -------------------------------------------------------------------------------------------------------------


def test_a_plan_the_agent_refuses(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforms.CenterCrop, "plan", lambda self: {"op": "CentreCrop", "size": [8, 8]})
    with pytest.raises(feedwater.PlanError, match="CentreCrop") as caught:
        next(iter(Loader(few, transforms.CenterCrop(8), batch_size=4)))
    assert "CenterCrop" in str(caught.value), "the nearest valid form"


# -- the process -------------------------------------------------------------------------------------------------------


def test_loaders_share_one_agent_and_close_leaves_nothing(few: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    loaders = [make(few), make(few, batch_size=3, dtype=torch.float32), Loader(few, batch_size=2)]
    for loader in loaders:
        next(iter(loader))
    assert len([pid for pid in children() if pid == agent.pid]) == 1
    pid = agent.pid
    for loader in loaders:
        loader.close()
    assert pid not in children()
    assert len(os.listdir("/proc/self/fd")) == before


def test_kept_batches_stay_as_they_were(few: Path) -> None:
    loader = make(few, memory=2 << 20, shuffle=False)
    kept = [(image[:, :, ::2], image.clone()) for _ in range(3) for image, _ in loader]
    for view, copy in kept:
        assert torch.equal(view, copy[:, :, ::2])
    assert loader.stats().copied_batches > 0


PROGRAM = """
import ctypes, os, sys
import feedwater
from feedwater._agent.process import agent
loader = feedwater.Loader(sys.argv[1], feedwater.transforms.RandomResizedCrop(224), batch_size=16, shuffle=True)
it = iter(loader)
image, _ = next(it)
child = 0
if sys.argv[2] != "alone":
    child = os.fork() if sys.argv[2] == "fork" else ctypes.CDLL(None).fork()
    if child == 0:
        image.sum()
        os.write(1, b"touched\\n")  # one write for a line: two processes share the pipe
        sys.stdin.read()
        os._exit(0)
for _ in it:
    pass
os.write(1, f"{agent.pid} {child}\\n".encode())
while True:
    for _ in loader:
        pass
"""


@pytest.mark.parametrize("how", ["alone", "fork", "fork of C"])
def test_the_trainer_killed_takes_agent_and_memory_along(few: Path, how: str) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(few), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout is not None
        lines = sorted(program.stdout.readline() for _ in range(1 if how == "alone" else 2))
        pid, child = map(int, lines[0].split())
        handle = os.pidfd_open(pid)
        if child:
            assert held_by(child) > 1 << 20
        program.kill()
        assert select.select([handle], [], [], 30)[0], "the agent lives on"
        os.close(handle)
        if child:
            assert held_by(child) == 0, "the child keeps the memory"
    finally:
        program.kill()
        program.communicate()


def held_by(pid: int) -> int:
    """Bytes of slots that are in memory, as that process maps them."""
    total, ours = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            ours = "feedwater-slots" in line
        elif ours and line.startswith("Pss:"):
            total += int(line.split()[1]) * 1024
    return total


def test_without_memfd_and_pidfd(few: Path) -> None:
    from test_memory import PREAMBLE

    if os.uname().machine != "x86_64":
        pytest.skip("the filter is written for one architecture")
    script = (
        PREAMBLE
        + f"""
refuse(MEMFD_CREATE, PIDFD_OPEN)
import feedwater
loader = feedwater.Loader({str(few)!r}, feedwater.transforms.CenterCrop(64), batch_size=16)
assert sorted(i for _ in loader for i in loader.last.indices.tolist()) == list(range(60))
assert loader._engine.feed.session.slots.reserved
"""
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_a_binary_on_a_noexec_mount_runs_from_memory(
    few: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "feedwater"
    shutil.copy(os.environ["FEEDWATER_BINARY"], program)
    program.chmod(0o644)  # what execve says is the same as on such a mount
    monkeypatch.setenv("FEEDWATER_BINARY", str(program))
    monkeypatch.setattr("feedwater._agent.child._on_noexec", lambda path: True)
    stop_agent()
    assert len(list(make(few))) == 8


def test_arrays_in_a_program_without_torch(few: Path) -> None:
    script = f"""
import sys, numpy, feedwater
t = feedwater.transforms
loader = feedwater.Loader({str(few)!r}, [t.CenterCrop(64)], batch_size=16)
image, label = next(iter(loader))
assert type(image) is numpy.ndarray and image.shape == (16, 64, 64, 3) and image.dtype == "uint8"
steps = [t.CenterCrop(64), t.ToImage(), t.ToDtype("float32", scale=True)]
other, _ = next(iter(feedwater.Loader({str(few)!r}, steps, batch_size=16)))
assert other.shape == (16, 3, 64, 64)
assert numpy.array_equal(other.transpose(0, 2, 3, 1), image * numpy.float32(1 / 255))
assert not {{"torch", "grpc", "google.protobuf"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_the_agent_is_fast_to_start(few: Path) -> None:
    # No time is asserted: what is asked of the agent before the first batch is.
    loader = make(few)
    assert agent.pid is None
    next(iter(loader))
    assert agent.pid is not None
    assert (HERE / "conftest.py").exists()
