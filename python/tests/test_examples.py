"""The examples run as their first lines say."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE, make_photos

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

pytestmark = pytest.mark.usefixtures("real")

TRAIN = str(HERE.parents[1] / "examples" / "train.py")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated pictures."""
    return make_photos(tmp_path_factory.mktemp("data"), 60)


def run(*command: str) -> list[tuple[int, float]]:
    """Runs a program; epoch and loss of each line it prints."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^epoch (\d+): loss ([\d.]+), [\d,]+ images/s, \d+% of the time", done.stdout, re.MULTILINE)
    return [(int(epoch), float(loss)) for epoch, loss in lines]


SEEDED = """
import runpy, sys, torch
torch.manual_seed(1)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_train_on_this_machine_or_with_a_node_and_resume(nodes: Any, data: Path, tmp_path: Path) -> None:
    options = ["--batch-size", "16", "--checkpoint", str(tmp_path / "state.pt")]
    here = run(sys.executable, "-c", SEEDED, TRAIN, "--data", str(data), *options, "--epochs", "1")
    assert [epoch for epoch, _ in here] == [0]
    rest = run(sys.executable, TRAIN, "--data", str(data), *options, "--epochs", "3")
    assert [epoch for epoch, _ in rest] == [1, 2]
    remote = ["--data", "photos", "--nodes", nodes.start(data)]
    there = run(sys.executable, "-c", SEEDED, TRAIN, *remote, "--batch-size", "16", "--epochs", "1")
    assert here == there, "the same training"


def test_train_on_two_ranks(data: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    lines = run(*launch, TRAIN, "--data", str(data), "--batch-size", "8", "--epochs", "2")
    assert [epoch for epoch, _ in lines] == [0, 1]


def device_diff() -> tuple[str, str]:
    """The line of examples/train.py that docs/device.md changes: before, and with batches on the GPU."""
    page = (HERE.parents[1] / "docs" / "device.md").read_text()
    (old,), (new,) = (re.findall(rf"^\{sign}(    .*)$", page, re.MULTILINE) for sign in "-+")
    assert new == f"{old}, device=device", "one argument"
    return old, new


def test_train_moves_to_batches_on_the_gpu_by_one_argument(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With torch.cuda in this process's memory: the same losses, and no batch is copied by the script."""
    import cpu_cuda

    old, new = device_diff()
    ours = Path(TRAIN).read_text()
    loop = "    for images, labels in train:\n"
    assert ours.count(f"\n{new}\n") == ours.count(loop) == 1
    copying = ours.replace(loop, f"{loop}        images, labels = images.to(device), labels.to(device)\n")
    scripts = {"before": copying.replace(new, old), "after": copying, "ours": ours}
    told, copies = {}, {}
    for name, text in scripts.items():
        script = tmp_path / f"{name}.py"
        script.write_text(text)
        options = ["--data", str(data), "--batch-size", "16", "--epochs", "1"]
        monkeypatch.setattr(sys, "argv", [str(script), *options])
        torch.manual_seed(1)
        with monkeypatch.context() as patch, cpu_cuda.installed(patch) as gpu:
            runpy.run_path(str(script), run_name="__main__")
        copies[name] = len(gpu.copied)
        told[name] = re.findall(r"epoch 0: loss [\d.]+", capsys.readouterr().out)
    assert len(told["ours"]) == 1 and told["before"] == told["after"] == told["ours"]
    assert copies["before"] == 0
    assert min(copies["after"], copies["ours"]) >= 8, "pictures and labels of four batches"


def test_stages(data: Path) -> None:
    script = str(HERE.parents[1] / "examples" / "stages.py")
    done = subprocess.run(
        [sys.executable, script, "--data", str(data), "--batch-size", "10"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    tables = done.stdout.strip().split("\n\n")
    assert [table.split("\n")[0] for table in tables] == ["torch.utils.data.dataloader", "feedwater._loader"]
    for table in tables:
        assert "11 steps by the" in table and "left out: 1 warm-up" in table
        for stage in ("data wait", "forward", "backward", "optimizer", "other", "step"):
            row = re.search(rf"^{stage} +([\d.]+) .*%$", table, re.MULTILINE)
            assert row is not None and float(row[1]) > 0, table
