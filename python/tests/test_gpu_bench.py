"""bench/gpu: what a trace says of the GPU's idle, and how the meter is judged by it. Runs without a GPU."""

from __future__ import annotations

import functools
import json
import random
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import make_photos

import feedwater

torch = pytest.importorskip("torch")
BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its modules; main is run as a script is, from its folder."""
    monkeypatch.setattr(sys, "path", [str(BENCH / "gpu"), str(BENCH), *sys.path])
    for name in ("gaps", "main", "machine", "needs", "part"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import gaps
    import main
    import part

    return SimpleNamespace(gaps=gaps, main=main, part=part)


def event(cat: str, name: str, begin_ms: float, end_ms: float, device: int = 0) -> dict[str, Any]:
    took_us = (end_ms - begin_ms) * 1e3
    return {"ph": "X", "cat": cat, "name": name, "ts": begin_ms * 1e3, "dur": took_us, "args": {"device": device}}


def wait(begin_ms: float, end_ms: float, loader: str = "_MultiProcessingDataLoaderIter.__next__") -> dict[str, Any]:
    return event("user_annotation", f"enumerate(DataLoader)#{loader}", begin_ms, end_ms)


def test_known_gaps(bench: Any) -> None:
    """Two steps of 100 ms: 30 ms in next; a copy inside it, kernels that overlap on two streams, a fill, other GPUs."""
    events = [{"ph": "M", "name": "process_name"}, {"ph": "i", "cat": "kernel", "ts": 5.0}]
    for step in (0, 100):
        events += [
            wait(step, step + 30),
            event("kernel", "the last step's", step - 5, step + 10),
            event("gpu_memcpy", "Memcpy HtoD", step + 25, step + 35),
            event("kernel", "conv", step + 40, step + 70),
            event("kernel", "on a second stream", step + 60, step + 80),
            event("kernel", "inside another", step + 45, step + 50),
            event("gpu_memset", "Memset", step + 80, step + 85),
            event("kernel", "of another GPU", step, step + 100, device=1),
            event("cuda_runtime", "cudaLaunchKernel", step + 36, step + 39),
            event("gpu_user_annotation", "enumerate(DataLoader)#x", step + 20, step + 90),
            event("user_annotation", "Optimizer.step#SGD.step", step + 35, step + 36),
        ]
    events += [wait(200, 230), event("kernel", "after the last step", 195, 500)]
    random.Random(1).shuffle(events)
    told = bench.gaps.read({"traceEvents": events})
    # Busy: 10 (5 at the end of the first step's before next) + 10 + 40 + 5, and 5 more before each following next.
    assert told.steps == 2
    assert told.step_s == pytest.approx(0.1)
    assert told.busy_s == pytest.approx(0.070)
    assert told.idle_s == pytest.approx(0.030)
    assert told.wait_s == pytest.approx(0.030)
    assert told.waiting_idle_s == pytest.approx(0.015), "from 10 to 25 ms"


def test_a_trace_of_too_few_steps_is_an_error(bench: Any) -> None:
    with pytest.raises(ValueError, match="1 spans"):
        bench.gaps.read({"traceEvents": [wait(0, 1)]})


def test_the_profilers_own_format(bench: Any, tmp_path: Path) -> None:
    """A trace that torch wrote of its DataLoader, with kernels put between the calls of next: idle is all of next."""

    class Slow(torch.utils.data.Dataset[int]):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> int:
            time.sleep(0.002)
            return index

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in torch.utils.data.DataLoader(Slow()):
            time.sleep(0.001)
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    spans = sorted(
        (one["ts"], one["ts"] + one["dur"])
        for one in trace["traceEvents"]
        if one.get("name", "").startswith(bench.gaps.NEXT)
    )
    assert len(spans) == 7, "six batches, and the call that ends the epoch"
    for (_, end), (begin, _) in pairwise(spans):
        trace["traceEvents"].append(event("kernel", "step", end / 1e3, begin / 1e3))
    told = bench.gaps.read(trace)
    assert told.steps == 6
    assert told.wait_s >= 0.002
    assert told.idle_s == pytest.approx(told.waiting_idle_s) == pytest.approx(told.wait_s)


def test_the_meter_is_judged_by_what_data_that_is_ready_would_save(bench: Any) -> None:
    ready = {"trace": {"step_s": 0.105, "busy_s": 0.1, "waiting_idle_s": 0.0}}
    run = {"trace": {"step_s": 0.150, "busy_s": 0.1, "waiting_idle_s": 0.047}, "meter_idle_s": 0.0465}
    told = bench.main.judged(run, ready)
    assert told["truth_s"] == pytest.approx(0.045)
    assert told["error"] == pytest.approx(0.01)
    assert bench.main.judged({**run, "meter_idle_s": None}, ready)["error"] is None


def test_the_table(bench: Any) -> None:
    runs = [
        {
            "images_s": rate,
            "step_s": 0.1,
            "wait_s": 0.02,
            "meter_share": None,
            "meter_us": 9.0,
            "nvml": {"utilisation": busy, "sm_activity": None},
        }
        for rate, busy in ((900.0, 0.7), (1000.0, 0.8), (1300.0, 0.9))
    ]
    told = bench.main.medians(runs)
    assert (told["images_s"], told["utilisation"], told["meter_share"], told["sm_activity"]) == (
        1000.0,
        0.8,
        None,
        None,
    )
    judged = bench.main.judged(
        {"trace": {"step_s": 0.15, "busy_s": 0.1, "waiting_idle_s": 0.04}, "meter_idle_s": None},
        {"trace": {"step_s": 0.1, "busy_s": 0.1, "waiting_idle_s": 0.0}},
    )
    found = {
        "gpu": "H100",
        "batch": 256,
        "workers": 8,
        "runs": dict.fromkeys(bench.main.WAYS, told),
        "traces": dict.fromkeys(bench.main.WAYS, judged),
        "doctor": {
            "verdict": "data-bound",
            "cause": "workers",
            "idle": None,
            "step_s": 0.1,
            "step_with_doctor_s": 0.101,
        },
    }
    text = bench.main.text(found)
    for line in ("dataloader        1000    100.0   20.0%            ?       80.0%         ?", "+1.0% longer"):
        assert line in text, text


def test_no_gpu_is_one_line(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["main.py", "photos"])
    with pytest.raises(SystemExit, match=r"^no CUDA GPU here \(torch .*\): nothing was measured$"):
        bench.main.main()


def test_the_checks_for_a_gpu_pass_on_a_fake_one(
    real: str, photos: Path, monkeypatch: pytest.MonkeyPatch, bench: Any
) -> None:
    """Those that ask nothing of the driver: so they say something of batches, and not of themselves, on a real one."""
    import checks
    from fake_cuda import FakeCuda

    from feedwater._device import runtime

    gpu = FakeCuda()
    monkeypatch.setattr("feedwater._config.check_built", lambda *_: None)
    monkeypatch.setattr(runtime, "find_runtime", lambda *_: gpu)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda _: None)
    checks.check_busy_gpu(str(photos))
    checks.check_break_and_close(str(photos))
    monkeypatch.setattr(gpu, "copy_to_gpu", lambda pairs: None)
    with pytest.raises(AssertionError, match="batch 0 differs"):
        checks.check_busy_gpu(str(photos))


@pytest.mark.parametrize("script", ["checks", "figures", "main", "kinds", "short"])
def test_without_a_gpu_each_part_says_so(script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import runpy

    out = tmp_path / "gpu.txt"
    out.write_text("lines of an earlier run")
    monkeypatch.setattr(sys, "argv", [script, "folder", "--out", str(out)])
    monkeypatch.setattr(sys, "path", [str(BENCH / "gpu"), str(BENCH), *sys.path])
    for name in ("gaps", "main", "machine", "loop", "needs", "part"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="no CUDA GPU here") as raised:
        runpy.run_path(str(BENCH / "gpu" / f"{script}.py"), run_name="__main__")
    assert out.read_text() == f"{raised.value}\n", "nothing of an earlier run is left there"


def test_why_there_is_no_gpu_is_torchs_word(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import needs

    def init() -> None:
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).\nPlease update")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    with pytest.raises(SystemExit, match=r"; The NVIDIA .* \(found version 11040\)\.; CUDA_VISIBLE_DEVICES is '-1'\)"):
        needs.check_gpu("checked")


def test_what_a_machine_lacks_is_said_in_one_line(bench: Any, tmp_path: Path) -> None:
    def said(*options: str, **environment: str) -> str:
        command = [sys.executable, *options, str(BENCH / "gpu" / "needs.py")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
        assert done.returncode == bool(done.stderr)
        return done.stderr

    alone = said("-S")  # no site-packages
    assert "has no numpy, torch, torchvision, pillow: nothing was run. Say GPU_PYTHON=" in alone
    package = str(BENCH.parent / "python")
    lost = said(PYTHONPATH=package, FEEDWATER_BINARY=str(tmp_path / "gone"))
    assert lost.startswith("nothing was run: FEEDWATER_BINARY names ") and lost.count("\n") == 1


def test_a_kind_that_fails_stops_no_other_and_says_why(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch.compile does where there is no C compiler."""
    import kinds

    told = {"trace": {"step_s": 0.1, "busy_s": 0.1, "waiting_idle_s": 0.0}, "meter_idle_s": 0.0}
    runs: list[str] = []

    def run(seconds: float, command: list[str]) -> tuple[int, list[str]]:
        runs.append(command[command.index("--kind") + 1])
        failed = {"error": "InductorError: Failed to find C compiler"}
        return (1, [json.dumps(failed)]) if runs[-1] == "amp" else (0, [json.dumps(told)])

    monkeypatch.setattr(bench.main, "run_within", run)
    monkeypatch.setattr(bench.main, "nvml", lambda: "")
    monkeypatch.setattr(bench.part.Part, "end_hanging", lambda self: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "H100")
    lines, code = run_part(kinds, tmp_path / "gpu-4.txt", monkeypatch, str(tmp_path))
    assert set(runs) == set(kinds.KINDS)
    assert "amp       not measured: InductorError: Failed to find C compiler\n" in lines
    assert lines.endswith(f"{code}\n") and str(code).endswith("not known: amp")


def test_a_figure_that_fails_stops_no_other(bench: Any, tmp_path: Path) -> None:
    import figures

    failed: list[str] = []
    part = bench.part.Part(1000, str(tmp_path / "out"))
    figures.attempt(part, "copies", lambda: f"{1 / 0}", failed)
    figures.attempt(part, "rates", lambda: "rates 1", failed)
    with pytest.raises(SystemExit, match=r"^not measured: copies$"):
        part.end("not measured", failed)
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines == ["copies not measured: ZeroDivisionError: division by zero", "rates 1", "not measured: copies"]


def test_two_ranks_by_gloo_have_their_own_parts(real: str, photos: Path, bench: Any) -> None:
    """The check of ranks on one GPU, here with batches in the CPU's memory."""
    import checks

    checks.check_ranks(str(photos), device="cpu")


def test_what_was_found_lies_in_a_file_when_the_time_is_over(bench: Any, tmp_path: Path) -> None:
    part = bench.part.Part(1000, str(tmp_path / "build" / "gpu-1.txt"))
    part.say("one")
    assert 900 < part.left_s(60) < 1000
    late = bench.part.Part(0.0, str(tmp_path / "late"))
    late.say("two\nthree")
    with pytest.raises(bench.part.OutOfTimeError, match=r"^0 s are left, and 60 s are needed$"):
        late.left_s(60)
    assert (tmp_path / "build" / "gpu-1.txt").read_text() + (tmp_path / "late").read_text() == "one\ntwo\nthree\n"


def test_a_run_that_takes_too_long_is_ended_with_what_it_started(bench: Any) -> None:
    """It returns when nobody has the pipe open any more, so not before the inner process is gone."""
    with pytest.raises(bench.part.OutOfTimeError, match="took longer than the 1 s"):
        bench.main.run_within(1.0, ["/bin/sh", "-c", "sleep 600 & wait"])
    assert bench.main.run_within(60.0, ["/bin/sh", "-c", "echo one; exit 3"]) == (3, ["one"])


def test_what_does_not_fit_into_the_time_is_left_out(bench: Any, tmp_path: Path) -> None:
    told = {"images_s": 9.0, "step_s": 0.1, "wait_s": 0.02, "meter_share": None, "meter_us": 9.0, "nvml": {}}

    class Late:
        workers, runs = 8, 0

        def best(self) -> dict[int, float]:
            return {8: 9.0}

        def traced(self, way: str, folder: str) -> dict[str, Any]:
            run = {"trace": {"step_s": 0.15, "busy_s": 0.1, "waiting_idle_s": 0.04}, "meter_idle_s": 0.05}
            return dict(bench.main.judged(run, {"trace": {"step_s": 0.1, "busy_s": 0.1, "waiting_idle_s": 0.0}}))

        def loop(self, way: str) -> dict[str, Any]:
            self.runs += 1
            if self.runs == 2:
                raise bench.part.OutOfTimeError("late")
            return {**told, "nvml": {"utilisation": 0.5, "sm_activity": None}}

    found: dict[str, Any] = {"gpu": "H100", "batch": 256}
    assert bench.main.measure(Late(), found, 2, str(tmp_path)) == "late"
    text = bench.main.text(found)
    assert "dataloader           9" in text and "device             150.00" in text and "doctor" not in text


def test_all_parts_in_short_share_the_time_and_one_that_fails_stops_none(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import short

    del sys.modules["short"]
    ran: list[tuple[str, float]] = []

    def run(seconds: float, command: list[str]) -> tuple[int, list[str]]:
        name, given = Path(command[1]).stem, float(command[command.index("--seconds") + 1])
        assert given <= seconds - short.GRACE_S + 1
        assert {"--rounds", "--steps", "--warm", "--seconds", "--out"} >= {x for x in command if x.startswith("--")}
        ran.append((name, given))
        Path(command[command.index("--out") + 1]).write_text(f"lines of {name}")
        if name == "figures":
            raise bench.part.OutOfTimeError("late")
        return int(name == "kinds"), []

    monkeypatch.setattr(short, "run_within", run)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(bench.part.Part, "end_hanging", lambda self: None)
    told, code = run_part(short, tmp_path / "gpu-all.txt", monkeypatch, str(tmp_path))
    assert [name for name, _ in ran] == ["checks", "figures", "kinds", "main"]
    assert 100 < ran[0][1] < 120 and 380 < ran[-1][1] <= 390, "the last one gets what is left"
    assert all(f"lines of {name}" in told for name, _ in ran), told
    assert "figures ended with late" in told and "kinds ended with 1" in told
    assert str(code) == "not all is as it should be: figures, kinds"


def test_pictures_are_made_where_no_folder_is_given(bench: Any, tmp_path: Path) -> None:
    folder = bench.part.make_pictures(tmp_path / "pictures", 8)
    from torchvision.datasets import ImageFolder

    data = ImageFolder(str(folder))
    assert len(data) == 8 and len(data.classes) == 4
    assert data[0][0].size == (320, 320)


def test_a_kind_whose_idle_is_unknown_reads_so(bench: Any) -> None:
    import kinds

    known = {"step_s": 0.1, "truth_s": 0.02, "meter_s": 0.0205, "error": 0.005}
    assert kinds.line_of("graph", known).split() == ["graph", "100.00", "20.00", "20.50", "+0.50%"]
    assert kinds.line_of("ddp", {**known, "meter_s": None, "error": None}).split()[-2:] == ["?", "unknown"]


# -- each part, with torch.cuda on the CPU -----------------------------------------------------------------------------


@pytest.fixture
def cpu(real: str, bench: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch.cuda on the CPU; scripts do not end this process when their time is over, nor wait for anything."""
    import cpu_cuda

    monkeypatch.setattr(bench.part.Part, "end_hanging", lambda self: None)
    monkeypatch.setattr(bench.part, "PICTURES", 64)
    with cpu_cuda.installed(monkeypatch) as gpu:
        yield gpu


def run_part(module: Any, out: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> tuple[str, Any]:
    """What it left in its file, and its exit code."""
    monkeypatch.setattr(sys, "argv", [module.__file__, *more, "--out", str(out)])
    try:
        module.main()
        code: Any = 0
    except SystemExit as error:
        code = error.code or 0
    return out.read_text(), code


def test_part_1_runs_on_a_cpu(
    cpu: Any, bench: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import checks

    photos = make_photos(tmp_path_factory.mktemp("photos"), 400)  # twelve batches
    monkeypatch.setitem(checks.CHECKS, "ranks", lambda folder: None)  # below, in processes of their own
    monkeypatch.setattr(torch, "compile", lambda function: function)
    told, code = run_part(checks, tmp_path / "gpu-1.txt", monkeypatch, str(photos))
    assert code == 0, told
    assert told.count("\nok ") == len(checks.CHECKS) == 11


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, bench: Any) -> Any:
    """loop.py with a network that a CPU trains, and without processes."""
    for name in ("loop", "figures", "kinds"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import loop

    net = torch.nn
    monkeypatch.setattr(
        loop, "resnet50", lambda: net.Sequential(net.AdaptiveAvgPool2d(7), net.Flatten(), net.Linear(147, 1000))
    )
    monkeypatch.setattr(loop, "AUGMENT", [loop.v2.RandomResizedCrop(32), loop.v2.RandomHorizontalFlip()])
    profile, traced = loop.profile, loop.ProfilerActivity

    def trace_cpu(activities: Any) -> Any:
        """Where CUDA is traced each operation asks the driver, which is not there, and takes 30 ms."""
        assert activities == [traced.CPU, traced.CUDA]
        return profile(activities=[traced.CPU])

    monkeypatch.setattr(loop, "profile", trace_cpu)
    few = functools.partial(feedwater.Loader, memory=1 << 20)  # or the agent makes thousands of such batches ahead
    monkeypatch.setattr(feedwater, "Loader", few)
    monkeypatch.setattr(torch, "compile", lambda module: module)
    measure, threads = loop.meter_us, torch.get_num_threads()
    monkeypatch.setattr(loop, "meter_us", lambda: measure(5))
    loader = torch.utils.data.DataLoader
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda *_, **__: None)
    monkeypatch.setattr(net.parallel, "DistributedDataParallel", lambda module: module)  # ranks have a check by gloo

    def make(data: Any, batch: int, **options: Any) -> Any:
        return loader(data, batch, shuffle=options.get("shuffle", False), drop_last=options.get("drop_last", False))

    monkeypatch.setattr(torch.utils.data, "DataLoader", make)
    torch.set_num_threads(1)  # several would wait for each other on a busy machine
    yield loop
    torch.set_num_threads(threads)


def test_part_2_runs_on_a_cpu(cpu: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder: pictures are made."""
    import figures

    monkeypatch.setattr(figures.time, "sleep", lambda _: None)
    monkeypatch.setattr(torch, "randn", lambda *_, **__: torch.ones(2, 2))  # what keeps the GPU busy
    options = ["--batch", "4", "--steps", "3", "--rounds", "1"]
    told, code = run_part(figures, tmp_path / "gpu-2.txt", monkeypatch, *options)
    assert code == 0, told
    lines = ("no folder was given", "next on the host ", "normalised floats", "copies ", "registering ", "ResNet-50")
    for line in lines:
        assert line in told, told


@pytest.fixture
def in_process(
    cpu: Any, bench: Any, small: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """run_within, in this process: what loop.py prints, and the doctor's verdict where that is asked for."""

    def run(seconds: float, command: list[str]) -> tuple[int, list[str]]:
        if "feedwater.doctor" in command:
            Path(command[command.index("--json") + 1]).write_text(json.dumps({"verdict": "healthy", "cause": "x"}))
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", command[max(at for at, part in enumerate(command) if part.endswith(".py")) :])
            small.main()
        return 0, capsys.readouterr().out.splitlines()

    monkeypatch.setattr(bench.main, "run_within", run)
    monkeypatch.setattr(bench.main, "nvml", lambda: "")


def test_part_3_runs_on_a_cpu(
    in_process: None, bench: Any, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--batch", "2", "--steps", "2", "--warm", "1", "--rounds", "1"]
    told, code = run_part(bench.main, tmp_path / "gpu-3.txt", monkeypatch, str(photos), *options)
    assert code == 0, told
    for line in ("dataloader ", "feedwater ", "device ", "meter: ", "doctor: healthy"):
        assert line in told, told


def test_part_4_runs_on_a_cpu(
    in_process: None, small: Any, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The meter of a GPU that does everything at once says something; the trace of a CPU has no kernels."""
    import kinds

    options = ["--batch", "2", "--steps", "2", "--warm", "1"]
    told, code = run_part(kinds, tmp_path / "gpu-4.txt", monkeypatch, str(photos), *options)
    rows = {line.split()[0]: line.split()[1:] for line in told.splitlines()[2:] if line != code}
    assert list(rows) == list(small.KINDS), told
    assert all(len(row) == 4 and row[3] != "unknown" for row in rows.values()), told
    assert not code or str(code).startswith("off by more than 1% of the step"), code
