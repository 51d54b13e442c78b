"""What machines and programs do that a Loader must not mind: handles, limits, signals that stop, default devices."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import make_photos

import feedwater

PACKAGE = Path(feedwater.__file__).parent

BEGIN = """
import os, resource, signal, sys
import feedwater
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
def loader(**options):
    return feedwater.Loader(sys.argv[1], feedwater.transforms.CenterCrop(8), batch_size=10, **options)
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 pictures."""
    return make_photos(tmp_path_factory.mktemp("pictures"), 30)


def run(code: str, pictures: Path, *flags: str, **environment: str) -> str:
    """What a program prints that uses the package; it must end without an error and without a word."""
    program = subprocess.run(
        [sys.executable, "-W", "error", *flags, "-c", BEGIN + code, str(pictures)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )
    assert (program.returncode, program.stderr) == (0, ""), program.stderr
    return program.stdout


# -- handles -----------------------------------------------------------------------------------------------------------


def test_nothing_of_the_package_calls_select() -> None:
    """select() takes no handles from 1024 on."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.Attribute) and node.attr in ("select", "SelectSelector")
            imported = isinstance(node, ast.ImportFrom) and node.module in ("select", "selectors")
            own = path.name == "_loader.py"  # the Loader's own method of that name is none
            if imported or (named and not own):
                found.append(f"{path.name}:{node.lineno}")
    assert not found


def test_a_program_with_more_than_1024_open_files(real: str, pictures: Path) -> None:
    code = """
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
with loader() as made:
    next(iter(made))
print(held[-1] > 1024)
"""
    assert run(code, pictures) == "True\n"


def test_inheritable_handles_above_the_limit_are_closed_in_the_agent(real: str, pictures: Path) -> None:
    code = """
from feedwater._agent import agent
read, write = os.pipe()
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
for number in (255, 256, 300):
    os.dup2(write, number, inheritable=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
with loader() as made:
    next(iter(made))
    held = {os.readlink(f"/proc/{agent.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{agent.pid}/fd")}
    print(os.readlink(f"/proc/self/fd/{write}") in held)
"""
    assert run(code, pictures) == "False\n"


def test_what_cannot_start_for_want_of_handles_says_so(real: str, pictures: Path) -> None:
    code = """
resource.setrlimit(resource.RLIMIT_NOFILE, (8, hard))
try:
    next(iter(loader()))
except feedwater.Error as error:
    print(error)
"""
    assert "ulimit -n" in run(code, pictures)
