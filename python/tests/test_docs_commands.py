"""Commands of feedwater in the documents, held against the program's own help."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from test_docs import FENCE, PAGES, ROOT

COMMAND = re.compile(r"^ *(?:\w+=\S+ )*feedwater ([a-z]+)((?:[^\n\\#|]|\\\n)*)", re.MULTILINE)


@pytest.fixture(scope="module")
def manual() -> dict[str, set[str]]:
    """The flags of each command, as its help tells them."""
    program = ROOT / "bin" / "feedwater"
    commands = re.findall(r"^  ([a-z]+) ", _help(program).split("Available Commands:")[1], re.MULTILINE)
    return {name: set(re.findall(r"--[a-z][a-z-]*", _help(program, name))) for name in commands}


def _help(program: Path, *command: str) -> str:
    return subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_have_these_flags(page: Path, manual: dict[str, set[str]]) -> None:
    for _, language, code in FENCE.findall(page.read_text()):
        for name, rest in COMMAND.findall(code) if language == "sh" else ():
            assert name in manual, f"feedwater {name}"
            own = rest.split(" -- ")[0]  # behind it stands another command
            flags = set(re.findall(r"(?<=\s)--[a-z][a-z-]*", own)) if name != "doctor" else set()  # Python's
            assert flags <= manual[name], f"feedwater {name}: {flags - manual[name]}"


def test_other_machines_are_reached_as_they_have_to_be(manual: dict[str, set[str]]) -> None:
    """What names another machine says how it is reached, as `top` and `verify` want it."""
    told = [(str(page), code) for page in PAGES for _, _, code in FENCE.findall(page.read_text())]
    told += [(name, _help(ROOT / "bin" / "feedwater", name)) for name in manual]
    bare = [
        f"{where}: feedwater {name}{rest}"
        for where, text in told
        for name, rest in COMMAND.findall(text)
        if name in ("top", "verify") and re.search(r"[a-z0-9-]+:\d", rest) and not re.search(r"--(insecure|tls)", rest)
    ]
    assert not bare
