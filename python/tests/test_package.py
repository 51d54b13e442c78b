"""The package as others meet it: its names, its types, its wheel, and where it finds the program."""

from __future__ import annotations

import importlib.util
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE

import feedwater
from feedwater._agent import binary


def test_every_public_name_is_there_and_documented() -> None:
    for name in feedwater.__all__:
        if name == "RemoteDataset":
            pytest.importorskip("torch")
        thing = getattr(feedwater, name)
        assert isinstance(thing, str) or thing.__doc__, name
    assert set(feedwater.__all__) <= set(dir(feedwater))
    public = [name for name in dir(feedwater.Loader) if not name.startswith("_")]
    assert all(getattr(feedwater.Loader, name).__doc__ for name in public)
    errors = [getattr(feedwater, name) for name in feedwater.__all__ if name.endswith("Error")]
    assert all(issubclass(error, feedwater.Error) for error in errors)
    assert issubclass(feedwater.Error, RuntimeError)


def test_transforms_come_when_they_are_asked_for() -> None:
    """They are half of what the package takes to import."""
    look = "print([name for name in sys.modules if name.startswith('feedwater.transforms')])"
    code = f"import sys, feedwater; {look}; print(feedwater.transforms.Resize.__name__)"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["[]", "Resize"]


@pytest.mark.parametrize(("module", "name"), [("testing", "assert_parity"), ("callbacks", "TensorBoard")])
def test_modules_come_when_they_are_asked_for(module: str, name: str) -> None:
    """As the documents spell them: feedwater.testing.assert_parity."""
    look = f"print('feedwater.{module}' in sys.modules)"
    code = f"import sys, feedwater; {look}; print(feedwater.{module}.{name}.__name__)"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["False", name]


REVEALED = """
from typing import Any
import numpy as np
import torch
import feedwater

plain = feedwater.Loader("x", batch_size=1, shuffle=True)
for x, y in plain:
    reveal_type(x)
named = feedwater.Loader("x", batch_size=1, fields={"image": "pixel_values"})
for batch in named:
    reveal_type(batch)
chosen = feedwater.Loader("x", batch_size=1, fields=("image", "index", "valid"))
for row in chosen:
    reveal_type(row)

def mix(batch: Any, rng: np.random.Generator) -> list[int]:
    return [1]

mixed = feedwater.Loader("x", batch_size=1, batch_transform=mix)
for numbers in mixed:
    reveal_type(numbers)
reveal_type(plain.state_dict())
reveal_type(plain.last)
reveal_type(plain.replay(1).image)
feedwater.Loader("x", batch_sizes=1)
"""


# As much of torch as the package's types name: the real one takes a type checker a quarter of a minute.
TORCH = {
    "__init__": "class Tensor: ...\n",
    "utils/__init__": "",
    "utils/data/__init__": """
from typing import Any, Generic, TypeVar
T = TypeVar("T", covariant=True)
class IterableDataset(Generic[T]): ...
def get_worker_info() -> Any: ...
""",
}


OVERLOADS = """
from collections.abc import Callable
from typing import Any
import torch
import feedwater
from feedwater import Loader, Views
from feedwater.transforms import CenterCrop

untyped: Any = None
def count(batch: Any, rng: Any) -> int: return 1

reveal_type(Loader("x", CenterCrop(2), batch_size=1))
reveal_type(Loader("x", [CenterCrop(2)], batch_size=1, masks="y"))
reveal_type(Loader(untyped, None, batch_size=1))
reveal_type(Loader("x", Views([]), batch_size=1))
reveal_type(Loader("x", Views([]), batch_size=1, masks="y"))
reveal_type(Loader("x", Views([]), batch_size=1, masks=feedwater.Masks("y", suffix="_a")))
reveal_type(Loader("x", Views([]), batch_size=1, fields=("image", "label")))
reveal_type(Loader("x", Views([]), batch_size=1, fields={"image": "x"}))
reveal_type(Loader("x", untyped, batch_size=1))
reveal_type(Loader("x", untyped, batch_size=1, fields=("image",)))
reveal_type(Loader("x", Views([]), batch_size=1, batch_transform=count))
reveal_type(Loader("x", untyped, batch_size=1, batch_transform=count, fields={"image": "x"}))
reveal_type(Loader("x", untyped, batch_size=1, targets=[{}]))
reveal_type(Loader("x", untyped, batch_size=1, targets=[{}], fields=("image", "target", "key")))
"""
BATCHES = [
    *["tuple[torch.Tensor, torch.Tensor]"] * 3,
    "tuple[list[torch.Tensor], torch.Tensor]",
    *["tuple[list[torch.Tensor], list[torch.Tensor]]"] * 2,
    "tuple[Any, ...]",
    "dict[str, Any]",
    "Any",
    "tuple[Any, ...]",
    *["int"] * 2,
    "tuple[Any, list[dict[str, Any]]]",
    "tuple[Any, ...]",
]


def test_type_checkers_see_what_comes_out(tmp_path: Path) -> None:
    done = check_types(REVEALED, tmp_path)
    revealed = revealed_types(done)
    assert revealed[:4] == ["torch.Tensor", "dict[str, Any]", "tuple[Any, ...]", "list[int]"], done.stdout
    assert revealed[4] == "dict[str, Any]"
    assert "Last" in revealed[5]
    assert "ndarray" in revealed[6]
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert {error.split(":")[1] for error in errors} == {"26"}, done.stdout
    assert 'did you mean "batch_size"' in errors[0]


def test_type_checkers_know_each_kind_of_loader(tmp_path: Path) -> None:
    done = check_types(OVERLOADS, tmp_path)
    assert done.returncode == 0, done.stdout
    assert revealed_types(done) == [f"feedwater._loader.Loader[{batch}]" for batch in BATCHES]


def revealed_types(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What reveal_type told, in order."""
    return [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed type" in line]


def check_types(text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """mypy about a program."""
    pytest.importorskip("mypy")
    for name, stub_text in TORCH.items():
        stub = tmp_path / "torch" / f"{name}.pyi"
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text(stub_text)
    file = tmp_path / "use.py"
    file.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)]
    environment = {**os.environ, "MYPYPATH": f"{tmp_path}:{HERE.parent}"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


# -- the program -------------------------------------------------------------------------------------------------------


def program(path: Path, content: bytes = b"\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An environment with nothing in it: its scripts, and PATH."""
    monkeypatch.delenv("FEEDWATER_BINARY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(binary, "_list_script_folders", lambda: iter([tmp_path / "scripts", tmp_path / "user"]))
    return tmp_path


def test_the_variable_comes_first_then_the_wheels_then_path(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(feedwater.AgentError, match=r"not found.*scripts.*not on PATH.*make build"):
        binary.find_program()
    expected = program(places / "path" / "feedwater")
    assert binary.find_program() == str(expected)
    expected = program(places / "user" / "feedwater")
    assert binary.find_program() == str(expected)
    expected = program(places / "scripts" / "feedwater")
    assert binary.find_program() == str(expected)
    expected = program(places / "mine")
    monkeypatch.setenv("FEEDWATER_BINARY", str(expected))
    assert binary.find_program() == str(expected)


def test_a_python_script_of_the_same_name_is_not_it(places: Path) -> None:
    program(places / "scripts" / "feedwater", b"#!/usr/bin/python3\nimport feedwater\n")
    expected = program(places / "path" / "feedwater")
    assert binary.find_program() == str(expected)


def test_where_installers_put_scripts() -> None:
    found = list(map(str, binary._list_script_folders()))
    assert os.path.normpath(os.path.dirname(sys.executable)) in found
    assert any(".local" in place or "Python" in place for place in found), "pip install --user"


# -- the wheel ---------------------------------------------------------------------------------------------------------


def build(tmp_path: Path, **environment: str) -> zipfile.ZipFile:
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    done = subprocess.run(
        command, cwd=HERE.parent, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    return zipfile.ZipFile(wheel)


def elf(machine: int = 62, *, loader: bool = False, asks: bytes = b"") -> bytes:
    """The least of an ELF file: a header and one segment, which names a loader or is loaded."""
    head = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    )
    return head + struct.pack("<IIQQQQQQ", 3 if loader else 1, 0, 0, 0, 0, 0, 0, 0) + asks


def choose(binary: str, wanted: str) -> str:
    """The tags that hatch_build.py gives a wheel with the program."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", HERE.parent / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tags: str = module.choose_platform(binary, wanted)
    return tags


def with_notices(binary: Path) -> Path:
    (binary.parent / "NOTICES.txt").write_text("licences of what is linked")
    (binary.parent / "feedwater.cdx.json").write_text('{"bomFormat": "CycloneDX"}')
    return binary


def test_a_wheel_with_the_program(tmp_path: Path) -> None:
    binary = with_notices(program(tmp_path / "build" / "whatever", elf()))
    (binary.parent / "feedwater.1").write_text(".TH FEEDWATER 1")
    wheel = build(tmp_path, FEEDWATER_WHEEL_BINARY=str(binary))
    version = feedwater.__version__
    script = f"feedwater-{version}.data/scripts/feedwater"
    assert wheel.read(script) == elf()
    assert wheel.read(f"feedwater-{version}.data/data/share/man/man1/feedwater.1") == b".TH FEEDWATER 1"
    assert wheel.getinfo(script).external_attr >> 16 & 0o111
    assert "py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl" in str(wheel.filename)
    names = wheel.namelist()
    assert "feedwater/py.typed" in names
    assert "feedwater/__init__.py" in names
    assert not any("tests/" in name or "test_" in name for name in names)
    text = wheel.read(f"feedwater-{version}.dist-info/METADATA").decode()
    for line in (
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        "License-File: NOTICES.txt",
        "Requires-Python: >=3.10",
        "Requires-Dist: numpy",
        "Provides-Extra: torch",
    ):
        assert line in text
    about = f"feedwater-{version}.dist-info"
    assert wheel.read(f"{about}/licenses/NOTICES.txt") == b"licences of what is linked"
    assert wheel.read(f"{about}/sboms/feedwater.cdx.json") == b'{"bomFormat": "CycloneDX"}'
    assert not (HERE.parent / "NOTICES.txt").exists()
    assert "Root-Is-Purelib: false" in wheel.read(f"feedwater-{version}.dist-info/WHEEL").decode()


def test_no_wheel_with_the_program_and_without_its_licences(tmp_path: Path) -> None:
    binary = program(tmp_path / "build" / "whatever")
    with pytest.raises(AssertionError, match=r"NOTICES.txt: no such file \(make notices\)"):
        build(tmp_path, FEEDWATER_WHEEL_BINARY=str(binary))


def test_a_wheel_without_the_program_is_pure(tmp_path: Path) -> None:
    wheel = build(tmp_path, FEEDWATER_WHEEL_BINARY="")
    assert str(wheel.filename).endswith("-py3-none-any.whl")
    assert not any("NOTICES" in name or "sboms" in name for name in wheel.namelist()), "nothing of others is in it"


def test_a_wheel_for_another_machine(tmp_path: Path) -> None:
    binary = with_notices(program(tmp_path / "arm", elf(183)))
    wheel = build(tmp_path, FEEDWATER_WHEEL_BINARY=str(binary))
    assert str(wheel.filename).endswith(
        "-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl"
    )


@pytest.mark.parametrize(
    ("content", "wanted", "tag"),
    [
        (elf(), "", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"),
        (elf(183), "manylinux2014_aarch64", "manylinux2014_aarch64"),
        (elf(loader=True, asks=b"GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.3\0"), "", "manylinux_2_34_x86_64"),
        (elf(loader=True, asks=b"GLIBC_2.4\0"), "", "manylinux_2_17_x86_64"),
    ],
)
def test_a_wheel_is_named_by_what_its_program_needs(tmp_path: Path, content: bytes, wanted: str, tag: str) -> None:
    assert choose(str(program(tmp_path / "program", content)), wanted) == tag


@pytest.mark.parametrize(
    ("content", "wanted", "message"),
    [
        (elf(183), "manylinux2014_x86_64", "is a program for aarch64, not for manylinux2014_x86_64"),
        (elf(), "macosx_11_0_arm64", "is a program for x86_64, not for macosx"),
        (elf(243), "", "ELF machine 243"),
        (elf(loader=True), "", "another C library"),
        (b"\xcf\xfa\xed\xfe" + bytes(100), "", "no program for Linux"),
        (b"MZ" + bytes(100), "", "no program for Linux"),
        (b"\x7fELF\x02\x01", "", "no program for Linux"),
    ],
)
def test_no_wheel_for_what_its_program_is_not(tmp_path: Path, content: bytes, wanted: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose(str(program(tmp_path / "program", content)), wanted)


def test_elsewhere_a_loader_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transforms are compiled there, and the doctor's rules read; a Loader is not made."""
    for name in ("darwin", "win32"):
        monkeypatch.setattr(sys, "platform", name)
        with pytest.raises(feedwater.AgentError, match=r"^feedwater.Loader needs Linux: .* this is " + name):
            feedwater.Loader("x", batch_size=1)
        assert feedwater.transforms.CenterCrop(3).plan() == {"op": "CenterCrop", "size": [3, 3]}
