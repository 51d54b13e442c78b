"""The doctor's hook on real scripts: what they print, end with and leave behind is the same as without it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import make_photos

torch = pytest.importorskip("torch")

TIMEOUT_S = 240

TRAINING = """
import hashlib, pickle, random, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Numbers(Dataset):
    def __len__(self):
        return 400
    def __getitem__(self, i):
        return torch.rand(4) + i, i % 2          # draws from the worker's generator

class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(400.0).reshape(100, 4))

def digest(thing):
    return hashlib.sha256(repr(thing).encode()).hexdigest()

def main(method, workers):
    torch.manual_seed(3)
    random.seed(3)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    context = method if workers else None
    loader = DataLoader(Numbers(), 8, shuffle=True, num_workers=workers, multiprocessing_context=context)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        for x in DataLoader(Stream(), 10):       # validation, left early
            break
    batches = [x.sum().item() for x in DataLoader(Stream(), 2)]
    print(digest([p.tolist() for p in model.parameters()]), digest(batches))
    print(digest(torch.get_rng_state().tolist()), digest(random.getstate()))
    print(digest(pickle.dumps(loader)), sorted(vars(loader)), threads())

def threads():
    import threading
    return [thread.name for thread in threading.enumerate() if thread.name != "QueueFeederThread"]  # of workers' queues

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
"""

STEPS = """
import os, signal, sys
import torch
from torch.utils.data import DataLoader
for i, x in enumerate(DataLoader(torch.arange(200.0), batch_size=None)):
    if i == 100:
        {then}
print("to the end")
"""


class Doctor:
    """Runs scripts under the doctor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.verdict: dict[str, Any] = {}

    def script(self, text: str, name: str = "train.py") -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def run(self, *command: str, options: tuple[str, ...] = (), **env: str) -> subprocess.CompletedProcess[str]:
        """A command, by default's Python if it begins with a script. The verdict is kept."""
        file = self.folder / "verdict.json"
        file.unlink(missing_ok=True)
        doctor = [sys.executable, "-m", "feedwater.doctor", "--json", str(file), *options, "--", *command]
        done = plain(*doctor, **env)
        self.verdict = json.loads(file.read_text())
        assert not list(self.folder.glob("feedwater-doctor-*")), "its folder is left behind"
        return done


# Of a worker killed between the unlinking of a semaphore and the word of it: "leaked", and that it is not there.
UNLINKED = re.compile(
    r"(.*UserWarning: resource_tracker: There appear to be .* leaked semaphore objects .*\n  warnings\.warn\(.*\n)"
    r"(.*UserWarning: resource_tracker: '/mp-.*': \[Errno 2\] .*\n  warnings\.warn\(.*\n)+"
)


def said(stderr: str) -> str:
    """What a script said, less what Python says of semaphores that a killed worker unlinked: a race of its own."""
    return UNLINKED.sub("", stderr)


def plain(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, env={**os.environ, "OMP_NUM_THREADS": "1", **env}
    )


@pytest.fixture
def doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("FEEDWATER_NVML", "")
    return Doctor(tmp_path)


@pytest.mark.parametrize(("method", "workers"), [("fork", "0"), ("fork", "2"), ("spawn", "1")])
def test_training_is_the_same(doctor: Doctor, method: str, workers: str) -> None:
    script = doctor.script(TRAINING)
    before = plain(sys.executable, script, method, workers)
    after = doctor.run(sys.executable, script, method, workers)
    assert before.returncode == 0 and len(before.stdout.split()) > 6, before.stderr
    assert after.stdout == before.stdout
    assert said(after.stderr).startswith(said(before.stderr)), "the doctor speaks after the script"
    assert after.returncode == {"data-bound": 3}.get(doctor.verdict["verdict"], 0), after.stderr
    evidence = doctor.verdict["evidence"]
    assert evidence["workers"] == int(workers) and evidence["steps"] == 100
    assert evidence["fetches"] >= 4, "workers were seen, to their last close look"


@pytest.mark.parametrize(
    ("then", "code", "verdict"),
    [
        ("sys.exit(7)", 7, "errors"),
        ("raise ValueError('no more')", 1, "errors"),
        ("os._exit(5)", 5, "errors"),
        ("os._exit(0)", 0, "healthy"),
        ("os.kill(os.getpid(), signal.SIGINT)", 130, "healthy"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "errors"),
        ("os.kill(os.getpid(), signal.SIGTERM)", 143, "healthy"),
    ],
)
def test_exit_codes(doctor: Doctor, then: str, code: int, verdict: str) -> None:
    # 0.02 s a step: data that needs no time must not look late
    text = STEPS.format(then=then).replace("    if i", "    __import__('time').sleep(0.02)\n    if i")
    done = doctor.run(sys.executable, doctor.script(text))
    assert done.returncode == code, done.stderr
    assert "to the end" not in done.stdout
    found = doctor.verdict["verdict"]
    assert {"not-data": "healthy"}.get(found, found) == verdict, doctor.verdict  # others may take the cores
    if then.startswith("raise"):
        assert "ValueError: no more" in doctor.verdict["evidence"]["why"]


def test_exec_is_followed(doctor: Doctor) -> None:
    second = doctor.script(STEPS.format(then="pass"), "second.py")
    first = doctor.script(f"import os, sys\nos.execv(sys.executable, [sys.executable, {second!r}])")
    done = doctor.run(sys.executable, first)
    assert "to the end" in done.stdout
    assert doctor.verdict["evidence"]["steps"] == 200


def test_a_sitecustomize_that_is_there_still_runs(doctor: Doctor) -> None:
    own = doctor.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.mine = __file__\n")
    script = doctor.script(
        "import sys, sitecustomize\nprint(sys.mine, sitecustomize.__file__, *sys.path[1:], sep='\\n')"
    )
    path = f"{own}:{os.environ['PYTHONPATH']}"
    before = plain(sys.executable, script, PYTHONPATH=path)
    done = doctor.run(sys.executable, script, PYTHONPATH=path)
    assert done.stdout == before.stdout
    assert done.stdout.count("sitecustomize.py") == 2


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_not_hooked_is_unknown(doctor: Doctor, flag: str) -> None:
    done = doctor.run(sys.executable, flag, "-c", "print('ran')")
    assert done.stdout == "ran\n"
    assert (doctor.verdict["verdict"], doctor.verdict["cause"], done.returncode) == ("unknown", "not-hooked", 1)
    assert "HEALTHY" not in done.stderr


def test_without_a_loader_is_unknown(doctor: Doctor) -> None:
    done = doctor.run(sys.executable, "-c", "import sys; print('torch' in sys.modules)")
    assert done.stdout == "False\n", "torch is imported by the script or not at all"
    assert (doctor.verdict["verdict"], doctor.verdict["cause"]) == ("unknown", "no-loader")


def test_too_short_is_unknown(doctor: Doctor) -> None:
    done = doctor.run(sys.executable, doctor.script(STEPS.format(then="pass").replace("200.0", "9.0")))
    assert (doctor.verdict["verdict"], doctor.verdict["cause"], done.returncode) == ("unknown", "too-short", 1)


BUSY = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 8 * 220
    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.zeros(4), i

for x, y in DataLoader(Slow(), 8, num_workers=1):
    time.sleep(0.001)
"""


def test_waiting_workers(doctor: Doctor) -> None:
    """One worker that sleeps 16 ms a batch: waits, whatever else runs on this machine."""
    done = doctor.run(sys.executable, doctor.script(BUSY))
    assert done.returncode == 3, done.stderr
    assert doctor.verdict["verdict"] == "data-bound"
    assert doctor.verdict["cause"] in ("worker-blocked", "slow-link"), "what others send counts as network too"
    assert doctor.verdict["wait"] > 0.5
    best = doctor.verdict["actions"][0]
    assert best["try"].startswith("num_workers=") and "if each waits for itself" in best["do"]
    assert best["gain"] is None, "they may wait for one limit"
    assert done.stderr.count("feedwater doctor  DATA-BOUND") == 2, "after 200 steps, and at the end"
    first = done.stderr.index("after 200 steps")
    assert first < done.stderr.rindex("DATA-BOUND")
    assert all(len(line) <= 80 for line in done.stderr[first:].split("\n")[1:])


OURS = """
import sys, time, feedwater
loader = feedwater.Loader(sys.argv[1], feedwater.transforms.CenterCrop(8), batch_size=1)
seen = 0
while seen < 60:
    for batch in loader:
        seen += 1
        time.sleep(0.01)
print("saw enough", "torch" in sys.modules)
"""


def test_a_loader_of_ours(doctor: Doctor, fake: Any) -> None:
    done = doctor.run(sys.executable, doctor.script(OURS), str(fake.data))
    assert done.stdout == "saw enough False\n", done.stderr
    assert doctor.verdict["evidence"]["loader"] == "feedwater.Loader", done.stderr
    assert doctor.verdict["evidence"]["steps"] >= 60
    assert doctor.verdict["evidence"]["cpu"] is None, "there are no workers to see"
    assert doctor.verdict["verdict"] in ("healthy", "data-bound", "not-data")
    assert doctor.verdict["evidence"]["missing_copies"] == 0.0


def test_a_loader_whose_pictures_lack_copies(doctor: Doctor, fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.set(index=(0, 1, 3, 3, 3000))
    monkeypatch.setenv("FEEDWATER_INDEX_COPIES", "5kB")
    done = doctor.run(sys.executable, doctor.script(OURS), str(fake.data))
    evidence = doctor.verdict["evidence"]
    assert (evidence["missing_copies"], evidence["all_copies_bytes"]) == (0.75, 100 * 1500), done.stderr
    assert (evidence["folder"], evidence["room"]) == (str(fake.data), "5kB")


@pytest.mark.parametrize(("keep", "unkept"), [("", 100), ("1GiB", 0)])
def test_a_loader_of_png_files(
    doctor: Doctor, fake: Any, monkeypatch: pytest.MonkeyPatch, keep: str, unkept: int
) -> None:
    (fake.data / "class0").mkdir()
    (fake.data / "class0" / "0.png").touch()
    monkeypatch.setenv("FEEDWATER_KEEP", keep)
    done = doctor.run(sys.executable, doctor.script(OURS), str(fake.data))
    assert doctor.verdict["evidence"]["unkept"] == unkept, done.stderr


FORMATS = """
import io, sys, time, PIL.Image
counts = sys.modules["_feedwater.doctor.probe.pictures"].counts
picture = PIL.Image.effect_noise((400, 300), 50).convert("RGB")
for name, options in [("JPEG", {}), ("PNG", {}), ("WEBP", {}), ("GIF", {}), ("AVIF", {}), ("JPEG2000", {}), ("BMP", {}),
                      ("TIFF", {"compression": "tiff_lzw"}), ("TIFF", {}), ("ICO", {"sizes": [(200, 150)]})]:
    file = io.BytesIO()
    picture.save(file, name, **options)
    PIL.Image.open(file).load()  # which imports
    before, began = counts.copy(), time.thread_time_ns()
    opened = PIL.Image.open(file)  # which loads an ICO
    opened.load()
    took = time.thread_time_ns() - began
    opened.load(), opened.crop((0, 0, 9, 9)).load()
    new = {key: counts[key] - before[key] for key in counts}
    assert (new["decoded"], new["broken"], new["pixels"]) == (1, 0, opened.width * opened.height), (name, new)
    assert 0.5 * took - 100_000 < new["decode_ns"] < 1.1 * took + 100_000, (name, new, took)
class Own(PIL.ImageFile.ImageFile):
    load = None
assert Own.load is None
print("all formats")
"""


def test_whole_loads_are_timed(doctor: Doctor) -> None:
    """Of formats too that decode in a load of their own, once each."""
    done = doctor.run(sys.executable, doctor.script(FORMATS))
    assert done.stdout == "all formats\n", done.stderr


OURS_OF_TORCHVISION = """
import sys, feedwater
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2
transform = v2.Compose([v2.RandomResizedCrop(8), v2.RandomHorizontalFlip(), v2.ToImage()])
loader = feedwater.Loader(ImageFolder(sys.argv[1], transform), batch_size=1)
print(sum(len(labels) for images, labels in loader))
"""


def test_what_the_probe_counts_is_not_what_a_program_replaced(
    doctor: Doctor, real: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("torchvision")
    photos = make_photos(tmp_path_factory.mktemp("photos"), 40)
    done = doctor.run(sys.executable, doctor.script(OURS_OF_TORCHVISION), str(photos))
    assert done.stdout == "40\n", done.stderr
    assert doctor.verdict["evidence"]["loader"] == "feedwater.Loader", done.stderr


def test_tried_arguments_and_replay(doctor: Doctor) -> None:
    script = doctor.script(BUSY)
    doctor.run(sys.executable, script)
    before = doctor.verdict["period_s"]
    doctor.run(sys.executable, script, options=("--try", "num_workers=4,prefetch_factor=3", "--no-bursts"))
    evidence = doctor.verdict["evidence"]
    assert (evidence["workers"], evidence["prefetch"], evidence["ready_steps"]) == (4, 3, 0)
    assert doctor.verdict["period_s"] < before / 1.5
    done = doctor.run(sys.executable, script, options=("--replay", "60"))
    assert doctor.verdict["evidence"]["void"] and doctor.verdict["evidence"]["replayed_s"] < before / 2
    assert "RESULT IS VOID" in done.stderr


def test_interrupt_from_the_terminal(doctor: Doctor) -> None:
    """Ctrl-C reaches the whole group: the script ends as it would, and the verdict comes."""
    text = STEPS.format(then="print('now', flush=True); __import__('time').sleep(60)")
    command = [sys.executable, "-m", "feedwater.doctor", "--", sys.executable, doctor.script(text)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "now\n"
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 130
        assert "KeyboardInterrupt" in said and "feedwater doctor  " in said
    finally:
        process.kill()


UNEVEN = """
import time, torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

class Shards(IterableDataset):
    def __iter__(self):
        for i in range((64, 240)[get_worker_info().id]):
            time.sleep(0.005)
            yield torch.full((4,), float(i))

total = 0.0
for x in DataLoader(Shards(), 4, num_workers=2, persistent_workers=True):
    total += x.sum().item()
print(total)
"""


def test_workers_that_end_one_after_the_other(doctor: Doctor) -> None:
    """One that has ended answers nothing more, and its end counts as a batch in the queue."""
    script = doctor.script(UNEVEN)
    assert doctor.run(sys.executable, script).stdout == plain(sys.executable, script).stdout != ""
    assert doctor.verdict["verdict"] == "data-bound"


ALARM = """
import signal, time, torch
from torch.utils.data import DataLoader, Dataset

class Preempted(Exception):
    pass

def preempt(*_):
    raise Preempted

class Slow(Dataset):
    def __len__(self):
        return 4000
    def __getitem__(self, i):
        time.sleep(0.02)
        return i

signal.signal(signal.SIGALRM, preempt)
try:
    for n, x in enumerate(DataLoader(Slow(), 4, num_workers=2, prefetch_factor=4), 1):
        if n == 40:                              # a burst comes
            signal.setitimer(signal.ITIMER_REAL, 0.1)
        if n == 60:
            break
    print("never")
except Preempted:
    print("preempted at", n)
"""


def test_what_a_handler_of_the_scripts_raises_in_a_burst(doctor: Doctor) -> None:
    done = doctor.run(sys.executable, doctor.script(ALARM))
    assert done.stdout == "preempted at 40\n"
    assert not any("Preempted" in note for note in doctor.verdict["notes"]), "it is no failure of the probe"


LISTENING = """
import os, signal

heard, told = os.pipe()
os.set_blocking(told, False)
signal.set_wakeup_fd(told)  # a handler that runs before signal.pause() would leave it waiting
signal.signal(signal.SIGUSR1, lambda *_: None)
print("now", flush=True)
os.read(heard, 1)
print("heard")
"""


def test_signals_that_are_sent_to_the_doctor(doctor: Doctor) -> None:
    command = [sys.executable, "-m", "feedwater.doctor", "--", sys.executable, doctor.script(LISTENING)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGUSR1)
        assert process.communicate(timeout=TIMEOUT_S)[0] == "heard\n"
    finally:
        process.kill()


def test_wrong_usage(doctor: Doctor) -> None:
    nowhere = ["--json", "/no/such/folder/v.json", "--", "true"]
    for arguments in ([], ["--try", "seed=3", "--", "true"], ["--try", "num_workers", "--", "true"], nowhere):
        done = plain(sys.executable, "-m", "feedwater.doctor", *arguments)
        assert done.returncode == 2 and "feedwater doctor: error:" in done.stderr, done.stderr
    done = plain(sys.executable, "-m", "feedwater.doctor", "--keep", "/proc/x", "--", "true")
    assert done.returncode == 1 and "--keep /proc/x: No such file" in done.stderr and "Trace" not in done.stderr
    done = plain(sys.executable, "-m", "feedwater.doctor", "--", "/no/such/program")
    assert done.returncode == 1 and "cannot run '/no/such/program': No such file" in done.stderr
    script = doctor.script("print()")
    done = plain(sys.executable, "-m", "feedwater.doctor", "--", script)
    assert done.returncode == 1 and done.stderr.endswith(f"; perhaps: python {script}\n")


def test_what_fails_in_the_probe_does_not_fail_the_script(doctor: Doctor) -> None:
    """The folder that the probe writes to is taken away: as when the doctor was killed."""
    text = STEPS.format(then="__import__('shutil').rmtree(os.environ['FEEDWATER_DOCTOR_DIR'])")
    script = doctor.script(text)
    done = doctor.run(sys.executable, script)
    assert "to the end" in done.stdout and "Error" not in done.stdout
    assert "Traceback" not in done.stderr, done.stderr
    assert doctor.verdict["verdict"] == "unknown"
