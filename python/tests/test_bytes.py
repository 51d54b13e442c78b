"""Bytes: what a program reads by itself gives the batches of the same files, and what goes wrong in it is named."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import feedwater
from feedwater import Loader
from feedwater.errors import DataError

pytestmark = pytest.mark.usefixtures("real")


class Pictures:
    """Pictures in one file, which read opens when it is first called."""

    def __init__(self, path: Path, *, labels: bool = True, fails: str = "") -> None:
        self.path, self.labels, self.fails = path, labels, fails

    def __len__(self) -> int:
        return 20

    def read(self, number: int) -> tuple[Any, Any]:
        if self.fails and number == 7:
            return fail(self.fails)
        if not hasattr(self, "all"):
            self.all = pickle.loads(self.path.read_bytes())
        data = self.all[number]
        return memoryview(data) if number % 2 else data, np.int64(number % 3) if self.labels else None


def fail(how: str) -> Any:
    if how == "raise":
        raise OSError("the database is locked")
    if how == "end":
        os.kill(os.getpid(), signal.SIGKILL)
    return how


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """20 pictures as files, and in one."""
    rng, everything = np.random.default_rng(1), []
    for number in range(20):
        out = io.BytesIO()
        PIL.Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).save(out, "PNG")
        everything.append(out.getvalue())
        (tmp_path / f"{number:02}.png").write_bytes(out.getvalue())
    (tmp_path / "all").write_bytes(pickle.dumps(everything))
    return tmp_path


def digest(source: Any, **options: Any) -> str:
    """Two epochs, the second one of a Loader that goes on in the middle of the first."""
    total, state = hashlib.sha256(), {}
    for steps in (2, 4):
        with Loader(
            source, feedwater.transforms.RandomCrop(8), batch_size=7, seed=3, shuffle=True, **options
        ) as loader:
            loader.load_state_dict(state)
            for step, batch in enumerate(loader, 1):
                total.update(b"".join(np.asarray(field).tobytes() for field in batch))
                if step == steps:
                    break
            state = loader.state_dict()
    return total.hexdigest()


def table_of(folder: Path) -> feedwater.Table:
    return feedwater.Table([f"{n:02}.png" for n in range(20)], [n % 3 for n in range(20)], root=folder)


def test_bytes_give_the_batches_of_files(pictures: Path) -> None:
    source = feedwater.Bytes(Pictures(pictures / "all"), version="1", workers=2)
    assert digest(source) == digest(table_of(pictures))
    source.close()
    bare = feedwater.Bytes(Pictures(pictures / "all", labels=False), version="1", workers=1)
    assert digest(bare, fields=("image", "index")) == digest(table_of(pictures), fields=("image", "index"))
    bare.close()


def test_processes_end_with_their_source_and_with_the_program(pictures: Path) -> None:
    """Also where the program is killed."""
    script = (
        "import sys, time, feedwater, test_bytes\n"
        "from pathlib import Path\n"
        "source = feedwater.Bytes(test_bytes.Pictures(Path(sys.argv[1])), version='1', workers=2)\n"
        "loader = feedwater.Loader(source, feedwater.transforms.CenterCrop(8), batch_size=7)\n"
        "next(iter(loader))\n"
        "print(source._served.socket, *[process.pid for process in source._served._processes], flush=True)\n"
        "time.sleep(600)\n"
    )
    program = pictures / "program.py"
    program.write_text("if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in script.splitlines()))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, str(program), str(pictures / "all")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        listening, *words = running.stdout.readline().split()
        workers = [int(word) for word in words]
        assert os.path.exists(listening)
        running.kill()
    assert len(workers) == 2
    while any(os.path.exists(f"/proc/{pid}/cmdline") and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in workers):
        time.sleep(0.01)
    assert not os.path.exists(os.path.dirname(listening)), "the socket's folder is left"


@pytest.mark.parametrize(
    ("fails", "says"),
    [
        ("raise", r"sample 7: read\(7\) raised OSError: the database is locked \(.*test_bytes.py, line \d+\)"),
        ("text", r"sample 7: read\(7\) raised TypeError: it returned str, and should return \(bytes, label\)"),
        ("end", "sample 7: processes that read the data have ended"),
    ],
)
def test_what_goes_wrong_in_read_is_named(pictures: Path, fails: str, says: str) -> None:
    source = feedwater.Bytes(Pictures(pictures / "all", fails=fails), version=fails, workers=2)
    with pytest.raises(DataError, match=says):
        digest(source)
    source.close()


def test_other_bytes_under_the_same_version_are_not_mixed_in(pictures: Path) -> None:
    source = feedwater.Bytes(Pictures(pictures / "all"), version="1", workers=1)
    digest(source)
    source.close()
    everything = pickle.loads((pictures / "all").read_bytes())
    (pictures / "all").write_bytes(pickle.dumps([*everything[:5], everything[5] + b"more", *everything[6:]]))
    with pytest.raises(DataError, match=r"5 has \d+ bytes, had \d+"):
        digest(source)
    source.close()


SCRIPT = """
import sys
import feedwater
{imports}
def run():
    source = feedwater.Bytes(Pictures({path!r}), version="1")
    with feedwater.Loader(source, feedwater.transforms.CenterCrop(8), batch_size=20) as loader:
        print("labels", sum(next(iter(loader))[1].tolist()))
{call}
"""
READER = """
import pickle
class Pictures:
    def __init__(self, path): self.path = path
    def __len__(self): return 20
    def read(self, number): return pickle.loads(open(self.path, "rb").read())[number], number
"""


@pytest.mark.parametrize(
    ("imports", "call", "says"),
    [
        ("from reader import Pictures", "run()", "labels 190"),
        (READER, "if __name__ == '__main__': run()", "labels 190"),
        (READER, "run()", "processes that read the data have ended: .*Is the script guarded by `if __name__ =="),
    ],
)
def test_a_script_is_run_again_only_where_its_class_is_read(pictures: Path, imports: str, call: str, says: str) -> None:
    (pictures / "reader.py").write_text(READER)
    (pictures / "script.py").write_text(SCRIPT.format(imports=imports, call=call, path=str(pictures / "all")))
    made = subprocess.run([sys.executable, pictures / "script.py"], capture_output=True, text=True, timeout=120)
    assert re.search(says, made.stdout + made.stderr), made.stderr


def test_fields_of_bytes(pictures: Path) -> None:
    with pytest.raises(ValueError, match=r"no field 'caption'; .* Of feedwater.Bytes pictures and labels come"):
        Loader(feedwater.Bytes(Pictures(pictures / "all"), version="1"), batch_size=7, fields=("image", "caption"))


def test_what_cannot_be_read_by_processes_is_refused(pictures: Path, nodes: Any) -> None:
    good = Pictures(pictures / "all")
    with pytest.raises(DataError, match="leave nodes= out"):
        Loader(feedwater.Bytes(good, version="1"), batch_size=7, nodes=[nodes.start(pictures)])
    with pytest.raises(TypeError, match="needs read"):
        feedwater.Bytes([b"picture"], version="1")
    with pytest.raises(TypeError, match="version="):
        feedwater.Bytes(good, version="")
    with pytest.raises(ValueError, match="workers=0"):
        feedwater.Bytes(good, version="1", workers=0)
    good.all = open(pictures / "all", "rb")  # noqa: SIM115 (what may not travel)
    with pytest.raises(TypeError, match=r"cannot be sent to another process .* when read is first called"):
        feedwater.Bytes(good, version="1")
    good.all.close()
