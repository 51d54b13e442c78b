"""python=: the program's function on every sample, in processes of its own."""

from __future__ import annotations

import functools
import gc
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import python_functions
from conftest import HERE, make_photos
from python_functions import Trip, drawn

import feedwater
from feedwater import transforms
from feedwater._python import batches as python_module
from feedwater._python import pool as pool_module

pytestmark = pytest.mark.usefixtures("real")

FIELDS = ("image", "label", "index", "numbers", "process")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 pictures."""
    return make_photos(tmp_path_factory.mktemp("python"), 40)


@pytest.fixture
def loader(data: Path) -> Iterator[Any]:
    """Makes Loaders of two processes, which are closed."""
    made: list[feedwater.Loader[Any]] = []

    def make(function: Any = drawn, **options: Any) -> feedwater.Loader[Any]:
        made.append(begin(data, function, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def begin(data: Path, function: Any, **options: Any) -> feedwater.Loader[Any]:
    """A Loader of two processes."""
    given = {"batch_size": 8, "shuffle": True, "seed": 5, "python_workers": 2, "fields": FIELDS} | options
    return feedwater.Loader(data, given.pop("transform", transforms.CenterCrop(16)), python=function, **given)


@pytest.fixture(scope="module")
def recorded(data: Path, binary: str) -> list[list[list[Any]]]:
    """The batches of two epochs, undisturbed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEEDWATER_BINARY", binary)
        with begin(data, drawn) as made:
            return [[[np.array(field) for field in batch] for batch in made] for _ in range(2)]


def arrays(batch: Any) -> list[Any]:
    """The batch without what differs from run to run."""
    return [np.array(field) for field in batch[:4]]


def same(a: Any, b: Any) -> bool:
    """Whether batches are equal in every byte."""
    return all(np.array_equal(x, y) for x, y in zip(arrays(a), arrays(b)))


def test_any_number_of_processes_gives_the_same_batches_in_the_same_order(
    recorded: Any, loader: Any, data: Path
) -> None:
    first, second = recorded
    assert sum(len(batch[0]) for batch in first) == 40
    plain = feedwater.Loader(data, transforms.CenterCrop(16), batch_size=8, shuffle=True, seed=5)
    for batch, (image, label) in zip(first, plain):
        pictures = np.moveaxis(np.array(image), 1, -1) if image.shape[1] == 3 else image
        assert np.array_equal(batch[0], pictures + np.uint8(1))
        assert np.array_equal(batch[1], np.array(label))
    plain.close()
    numbers = np.concatenate([batch[3] for batch in first + second])
    assert len(np.unique(numbers[:, :3])) == 80 * 3, (
        "every sample of every epoch has numbers of its own, of each generator"
    )
    three = loader(python_workers=3)
    three.load_state_dict({**three.state_dict(), "consumed": 16})
    for epoch, before in zip(range(2), (first[2:], second)):
        after = [[np.array(field) for field in batch] for batch in three]
        assert all(same(a, b) for a, b in zip(before, after, strict=True)), epoch
    assert len({int(pid) for batch in after for pid in batch[4]}) == 3
    last = second[-1]
    sample = three.replay(int(last[2][3]))
    assert np.array_equal(sample.result["numbers"], last[3][3])
    assert np.array_equal(sample.result["image"], last[0][3])
    assert np.array_equal(sample.image + 1, last[0][3]), "image stays what came before"


def test_an_exception_names_the_sample_and_iterating_again_tries_it_again(loader: Any, tmp_path: Path) -> None:
    made = loader(Trip(tmp_path, fail=7, other_shape=17, nothing=27), shuffle=False)
    for index, said in {
        7: ["ZeroDivisionError: no such number as 7", "python_functions.py", "in fail"],
        17: ["its image is uint8 [15, 16, 3]", "[16, 16, 3]", "must be alike"],
        27: ["its label is a str", "arrays, tensors and numbers"],
    }.items():
        with pytest.raises(feedwater.PythonError, match=rf"\.jpg \(index {index}\)") as caught:
            list(made)
        assert caught.value.index == index
        assert caught.value.key.endswith(".jpg")
        for words in said:
            assert words in str(caught.value)
    assert [int(i) for batch in made for i in batch[2]] == list(range(24, 40)), "it passed the second time"


@pytest.mark.parametrize(("how", "said"), [("leave", "SystemExit: no such file"), ("interrupt", "KeyboardInterrupt")])
def test_what_no_except_exception_catches_names_the_sample(loader: Any, tmp_path: Path, how: str, said: str) -> None:
    made = loader(Trip(tmp_path, **{how: 7}), shuffle=False)
    with pytest.raises(feedwater.PythonError, match=rf"\.jpg \(index 7\): {said}") as caught:
        list(made)
    assert (caught.value.index, f"in {how}" in str(caught.value)) == (7, True)
    assert [int(i) for batch in made for i in batch[2]] == list(range(40)), "it passed the second time"


def test_a_process_that_dies_costs_no_sample(recorded: Any, loader: Any, tmp_path: Path, caplog: Any) -> None:
    for before, after in zip(recorded[0], loader(Trip(tmp_path, die=11)), strict=True):
        assert same(before, after)
    assert "killed by SIGKILL) at the sample of index 11, starting another; no sample is lost" in caplog.text


@pytest.mark.parametrize(
    ("how", "said"),
    [("die", "killed by SIGKILL"), ("exit_at_once", "exit code 5"), ("die_in_real_time", r"killed by signal \d+")],
)
def test_a_sample_that_ends_every_process_is_named(loader: Any, tmp_path: Path, how: str, said: str) -> None:
    with pytest.raises(feedwater.PythonError, match=rf"\({said}\) at .* index 11 for the 3rd time") as caught:
        list(loader(Trip(tmp_path, times=9, **{how: 11}), python_workers=1))
    assert caught.value.index == 11


def test_a_function_that_hangs_is_a_stall_and_close_does_not_wait_for_it(loader: Any, tmp_path: Path) -> None:
    made = loader(Trip(tmp_path, hang=20), shuffle=False, python_workers=1)
    batches = iter(made)
    next(batches)
    next(batches)
    made._engine.python._limits_s = (0.2, 0.2)
    with pytest.raises(feedwater.StallError, match=r"has not finished the batch after 0\.2 s; at work on .* 20\."):
        next(batches)
    (member,) = made._engine.python.pool._members
    pid = member.process.pid
    made.close()
    assert not Path(f"/proc/{pid}").exists()


def test_broken_pictures_are_left_out_before(loader: Any, data: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for number, file in enumerate(sorted(data.rglob("*.jpg"))[:9]):
        (tmp_path / "a" / f"{number}.jpg").write_bytes(file.read_bytes() if number % 4 else b"no picture")
    for options in ({"on_error": "skip"}, {"on_error": "substitute"}):
        made = feedwater.Loader(
            tmp_path, transforms.CenterCrop(16), python=drawn, python_workers=1, batch_size=5, tail="valid",
            fields=("image", "index", "valid", "numbers"), max_errors=9, **options,
        )  # fmt: skip
        with made:
            first, last = [[np.array(field) for field in batch] for batch in made]
        assert first[2].tolist() == ([False, True, True, True, False] if "skip" in options.values() else [True] * 5)
        assert last[2].tolist()[4] is False
        drawn_for = first[3][:, :3]
        assert (drawn_for[~first[2]] == 0).all() and (drawn_for[first[2]] != 0).all()
        assert (last[0][4] == 0).all()


def test_batches_that_are_kept_go_to_ordinary_memory(recorded: Any, loader: Any) -> None:
    made = loader(fields=("image", "label", "index", "numbers"), batch_size=1, python_workers=1)
    made._engine.python._memory = 4 << 12  # four slots of a page
    monkey = python_module.SMALL_BYTES
    python_module.SMALL_BYTES = 0
    try:
        kept = [batch for _ in range(2) for batch in made]
    finally:
        python_module.SMALL_BYTES = monkey
    assert made.stats().copied_batches > 0
    whole = [np.concatenate([batch[field] for epoch in recorded for batch in epoch]) for field in range(4)]
    assert same([np.concatenate([np.array(batch[field]) for batch in kept]) for field in range(4)], whole)


def test_pictures_of_different_sizes_come_as_they_are(loader: Any) -> None:
    made = loader(functools.partial(python_functions.cut, side=20), transform=None, python_workers=1)
    assert made.explain().count("its price is known after") == 1
    shapes = {np.array(batch[0]).shape[1:] for batch in made}
    assert shapes == {(20, 20, 3)}
    assert "ms per sample so far" in made.explain()


def test_tensors(loader: Any, data: Path) -> None:
    torch = pytest.importorskip("torch")
    tensors = [transforms.CenterCrop(16), transforms.ToImage(), transforms.ToDtype(torch.float32, scale=True)]
    made = loader(python_functions.brighter, transform=tensors, fields=("image", "label"), python_workers=1)
    plain = feedwater.Loader(data, tensors, batch_size=8, shuffle=True, seed=5)
    for (image, label), (before, _) in zip(made, plain):
        assert image.shape == (8, 3, 16, 16) and image.dtype == torch.bfloat16
        assert label.dtype == torch.int64
        assert torch.equal(image, (before * 2).bfloat16())
    plain.close()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda sample, rng: sample, "a lambda cannot be sent to another process"),
        ((lambda x: lambda sample, rng: x)(1), "top level of a module"),
        (python_functions.Trip, "must be a function"),
        (len, "cannot be"),
        (3, "must be a function"),
    ],
)
def test_what_cannot_go_to_another_process_is_refused(data: Path, function: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        feedwater.Loader(data, batch_size=4, python=function)


def test_closures_and_results_that_are_none(loader: Any, data: Path) -> None:
    def inner(sample: Any, rng: Any) -> Any:
        return sample

    with pytest.raises(TypeError, match="inner, made inside a function, cannot be sent"):
        loader(inner)
    with pytest.raises(feedwater.PythonError, match="returned a ndarray: it must return a dict"):
        next(iter(loader(python_functions.no_dict, python_workers=1)))
    for what, words in (
        (np.array(["a"]), "image is an array of <U1, no numbers: batches"),
        ("a", "image is a str: batches"),
    ):
        with pytest.raises(feedwater.PythonError, match=words):
            next(iter(loader(python_functions.Returning(image=what), python_workers=1, fields=("image",))))
    with pytest.raises(feedwater.PythonError, match="fields= asks for 'boxes'"):
        next(iter(loader(fields=("image", "boxes"), python_workers=1)))
    with pytest.raises(ValueError, match="python_workers= counts the processes of python="):
        feedwater.Loader(data, batch_size=4, python_workers=2)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"index": 99}, "another index, 99 for 0: leave that"),
        ({"index": np.arange(2)}, "another index, array"),
        ({"key": 1}, "returned 'key', a field that the Loader fills: give it another name"),
        ({"valid": False}, "returned 'valid'"),
    ],
)
def test_fields_that_are_not_the_functions_are_refused(loader: Any, fields: dict[str, Any], words: str) -> None:
    made = loader(python_functions.Returning(**fields), python_workers=1, shuffle=False, fields=("image", "valid"))
    with pytest.raises(feedwater.PythonError, match=words):
        next(iter(made))


def test_a_mask_may_be_a_field_of_the_functions(loader: Any) -> None:
    made = loader(python_functions.masked, python_workers=1, fields=("image", "mask", "index"))
    image, mask, index = (np.array(field) for field in next(iter(made)))
    assert mask.dtype == np.bool_ and np.array_equal(mask, image[..., 0] > 127)
    assert index.tolist() == made.last.indices.tolist()


def test_a_closed_loader_starts_no_processes(loader: Any) -> None:
    made = loader()
    next(iter(made))
    made.close()
    with pytest.raises(feedwater.Error, match="closed"):
        next(iter(made))
    assert made._engine.python.pool._members == [None, None]


def open_slots() -> int:
    """Files of slots that this process has open."""
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            names.append(os.readlink(entry))
        except FileNotFoundError:  # the one of the folder itself
            continue
    return sum("feedwater-slots" in name for name in names)


def test_a_loader_that_is_forgotten_leaves_no_file_and_its_batches_stay(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_module, "SMALL_BYTES", 0)
    gc.collect()
    before = open_slots()
    made = begin(data, drawn)
    image = next(iter(made))[0]
    content = np.array(image)
    assert open_slots() > before
    gc.disable()  # so that a reference cycle cannot hide
    try:
        del made
        assert open_slots() == before + 1, "the mapping that the batch lies in"
        assert np.array_equal(np.array(image), content)
        del image
        assert open_slots() == before
    finally:
        gc.enable()


SCRIPT = """
import os, sys, feedwater
from feedwater import transforms
def here(sample, rng):
    return {{"image": sample["image"] + 1, "process": os.getpid()}}
{guard}
    loader = feedwater.Loader({data!r}, transforms.CenterCrop(16), python=here, python_workers=2, batch_size=8,
                              fields=("process",))
    pids = sorted({{int(pid) for (process,) in loader for pid in process}})
    print(*pids, flush=True)
    {then}
"""


def run(
    tmp_path: Path,
    data: Path,
    then: str,
    guard: str = 'if __name__ == "__main__":',
    flags: tuple[str, ...] = ("-W", "error"),
) -> subprocess.Popen[str]:
    """Starts a script of its own."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(data=str(data), then=then, guard=guard))
    return subprocess.Popen(
        [sys.executable, *flags, str(script)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def ended(pids: list[str]) -> bool:
    """Whether all processes end in time."""
    for pid in pids:
        try:
            handle = os.pidfd_open(int(pid))
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        over = poll.poll(60_000)
        os.close(handle)
        if not over:
            return False
    return True


@pytest.mark.parametrize("how", ["the end", "Ctrl-C", "kill -9"])
def test_functions_of_main_and_the_end_of_the_program(data: Path, tmp_path: Path, how: str) -> None:
    program = run(tmp_path, data, "pass" if how == "the end" else "sys.stdin.readline()")
    assert program.stdout is not None
    pids = program.stdout.readline().split()
    assert len(pids) == 2 and str(program.pid) not in pids
    if how != "the end":
        os.killpg(program.pid, signal.SIGINT) if how == "Ctrl-C" else program.kill()
    _, said = program.communicate(timeout=120)
    assert ended(pids)
    assert said.count("Traceback") == (how == "Ctrl-C"), said


KEPT = "import codecs; codecs.register(lambda name, kept=dict(sys.modules): None)"
"""Modules are not freed when the interpreter goes, but lose their names, the latest imported ones first."""


def test_a_loader_that_outlives_the_modules_goes_in_silence(data: Path, tmp_path: Path) -> None:
    program = run(tmp_path, data, KEPT, flags=())
    out, said = program.communicate(timeout=120)
    assert (program.returncode, said) == (0, "")
    assert ended(out.split())


def test_a_slow_start_is_told_and_told_again(loader: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(python_module, "TELL_AFTER_S", 0.0)
    list(loader())
    told = [record.getMessage() for record in caplog.records if "first batch" in record.getMessage()]
    assert told and "of 2 processes have started" in told[0] and "python_functions" not in told[0]


def test_a_script_without_a_guard_is_told(data: Path, tmp_path: Path) -> None:
    program = run(tmp_path, data, "pass", guard="if True:")
    _, said = program.communicate(timeout=120)
    assert program.returncode == 1
    assert "PythonError" in said and 'if __name__ == "__main__":' in said


def test_the_script_is_not_run_again_where_the_function_is_not_of_it(data: Path, tmp_path: Path) -> None:
    """No guard is needed then, and what the script imports is not imported again."""
    script = tmp_path / "script.py"
    script.write_text(
        f"""
import sys, wave
sys.path.insert(0, {str(HERE)!r})
import feedwater, python_functions
from feedwater import transforms
print("the script runs", flush=True)
loader = feedwater.Loader({str(data)!r}, transforms.CenterCrop(16), python=python_functions.has_wave, python_workers=2,
                          batch_size=8, fields=("wave",))
print({{int(one) for (wave,) in loader for one in wave}}, flush=True)
loader.close()
"""
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "the script runs\n{0}\n"), done.stderr


def test_other_processes_run_the_script_as_before() -> None:
    from multiprocessing import spawn

    before = spawn.get_preparation_data
    with pool_module.leave_main_out(b"of a module"):
        assert spawn.get_preparation_data is not before
        assert spawn.get_preparation_data("Process-1") == before("Process-1")
        assert {*before("feedwater-python-0")} - {*spawn.get_preparation_data("feedwater-python-0")} <= {
            "init_main_from_name",
            "init_main_from_path",
        }
    assert spawn.get_preparation_data is before
    with pool_module.leave_main_out(b"c__main__ here"):
        assert spawn.get_preparation_data is before


def test_a_prompt_is_told_that_nobody_finds_its_functions(data: Path) -> None:
    code = f"import feedwater\ndef f(s, r): return s\nfeedwater.Loader({str(data)!r}, batch_size=4, python=f)"
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True, cwd=HERE, timeout=120)
    assert "put it into a file and import it from there" in done.stderr.replace("\n", " ")


def test_a_transform_cut_in_two_as_the_refusal_says_does_what_it_did(data: Path, loader: Any) -> None:
    torch, v2 = pytest.importorskip("torch"), pytest.importorskip("torchvision.transforms.v2")
    PIL = pytest.importorskip("PIL.Image")
    import cut_transforms

    whole = [v2.CenterCrop(16), *cut_transforms.REST.transforms]
    with pytest.raises(feedwater.UnsupportedTransformError) as caught:
        loader(transform=v2.Compose(whole))
    said = str(caught.value)
    assert said.startswith("transform invert: cut the transform in two. transform=Compose([CenterCrop]) stays")
    assert "rest = Compose([invert, ToImage, ToDtype])" in said
    assert "{**sample, 'image': rest(Image.fromarray(sample['image']))}" in said
    with pytest.raises(feedwater.UnsupportedTransformError, match=r"'image': rest\(sample\['image'\]\)\}") as caught:
        loader(transform=v2.Compose([v2.CenterCrop(16), v2.ToImage(), v2.Lambda(cut_transforms.invert)]))
    assert "Lambda: cut the transform" in str(caught.value)
    made = loader(cut_transforms.fn, transform=v2.Compose(whole[:1]), fields=("image", "index"))
    for images, indices in made:
        for image, index in zip(images, indices, strict=True):
            with PIL.open(data / made.replay(int(index)).key) as file:
                assert torch.equal(image, v2.Compose(whole)(file.convert("RGB")))


def test_what_a_refusal_says_where_there_is_nothing_to_cut(data: Path) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    for steps in (
        v2.Lambda(drawn),
        [v2.CenterCrop(8), v2.CutMix(num_classes=2)],
        feedwater.Views([[v2.CenterCrop(8), drawn]]),
    ):
        with pytest.raises(feedwater.UnsupportedTransformError) as caught:
            feedwater.Loader(data, steps, batch_size=2)
        assert "cut the transform" not in str(caught.value) and "python=fn(sample, rng)" in str(caught.value)
