"""Imports inside the package run down, from room to room and from module to module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import feedwater

PACKAGE = Path(feedwater.__file__).parent
ROOMS = (
    "_version",
    "_common",
    "errors",
    "_value_table",
    "transforms",
    "_torchvision",
    "_plan",
    "_ctaugment",
    "_order",
    "_device",
    "_agent",
    "_batch",
    "_python",
    "_meter",
    "_dataset",
    "_arguments",
    "doctor",
    "_typing",
    "_config",
    "_state",
    "_rank_check",
    "_explain",
    "_preview",
    "_html",
    "_engine",
    "_progress",
    "_replays",
    "_frameworks",
    "_pass",
    "_attributes",
    "_loader",
    "_stages",
    "_remote",
    "callbacks",
    "dcp",
    "hf",
    "timm",
    "testing",
    "",
)
"""Folders and modules of the package, each of which imports what stands before it, and nothing behind it."""


def modules_of(package: Path) -> dict[str, Path]:
    """Modules by their names in the package; the package itself is ""."""
    found = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def nodes_that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """All but those that only a type checker reads."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        yield node
        todo.extend(ast.iter_child_nodes(node))


def imports_of(modules: dict[str, Path], name: str) -> Iterator[str]:
    """The modules that a module imports when it runs, in functions too."""
    path = modules[name]
    package = [part for part in name.split(".") if part]
    if path.name != "__init__.py":
        package.pop()
    for node in nodes_that_run(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        home = [*package[: len(package) + 1 - node.level], *filter(None, [node.module])]
        for alias in node.names:
            whole = ".".join([*home, alias.name])
            used = whole if whole in modules else ".".join(home)
            if used != name:
                yield used


def upward(package: Path, rooms: tuple[str, ...]) -> list[str]:
    """What imports what stands above it."""
    modules, found = modules_of(package), []
    for name in sorted(modules):
        for used in sorted(set(imports_of(modules, name))):
            if rooms.index(name.split(".")[0]) < rooms.index(used.split(".")[0]):
                found.append(f"{name or package.name} imports {used or package.name}")
    return found


def test_imports_between_rooms_run_down() -> None:
    assert upward(PACKAGE, ROOMS) == []


def test_every_room_has_its_place() -> None:
    assert sorted({name.split(".")[0] for name in modules_of(PACKAGE)}) == sorted(ROOMS)


def test_no_circle_of_modules() -> None:
    modules = modules_of(PACKAGE)
    order = TopologicalSorter({name: set(imports_of(modules, name)) for name in modules}).static_order()
    assert set(order) == set(modules)


def test_no_room_has_too_many_files() -> None:
    folders = {path.parent for path in modules_of(PACKAGE).values()}
    assert {
        folder.name: len(list(folder.glob("*.py"))) for folder in folders if len(list(folder.glob("*.py"))) > 25
    } == {}


def test_an_import_that_runs_up_is_found(tmp_path: Path) -> None:
    for name, text in {
        "__init__.py": "from .high.a import a\n",
        "low/__init__.py": "",
        "low/b.py": "def b():\n    from ..high import a\n",
        "high/__init__.py": "",
        "high/a.py": "from __future__ import annotations\nfrom typing import TYPE_CHECKING\nfrom ..low.b import b\n"
        "if TYPE_CHECKING:\n    from .. import high\na = b\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert upward(tmp_path, ("low", "high", "")) == ["low.b imports high.a"]
    modules = modules_of(tmp_path)
    with pytest.raises(CycleError):
        list(TopologicalSorter({name: set(imports_of(modules, name)) for name in modules}).static_order())
