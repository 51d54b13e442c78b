"""Facts of Python source, folder by folder, as JSON: python modules.py PACKAGE. It imports none of the files."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

RANKS = {"world", "ranks"}
LOSS = {"loss", "stall", "wait", "idle"}
WANT = {"dst", "grow", "image", "step", "due", "begun", "done"}
FEWEST_WANT_FIELDS = 3
Function = ast.FunctionDef | ast.AsyncFunctionDef


def words(name: str) -> set[str]:
    """The words of a name, in lower case."""
    return {w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)}


def mentions(node: ast.AST, wanted: set[str]) -> bool:
    """Whether one of the words is part of a name in the node."""
    found = [
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute))
    ]
    return any(words(name) & wanted for name in found)


def rounded_up(node: ast.AST) -> ast.expr | None:
    """What -(-x // unit) divides by."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.BinOp(left=left, op=ast.FloorDiv(), right=unit)):
            return unit if any(isinstance(n, ast.UnaryOp) for n in ast.walk(left)) else None
    return None


class Module:
    """One file."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root, self.path = root, path
        self.tree = ast.parse(path.read_text())
        self.shares = self._shares()

    def _shares(self) -> set[str]:
        """Names of constants between 0 and 1."""
        found = set()
        for node in self.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=float(number))) if 0 < number < 1:
                    found.add(name)
        return found

    def place(self, node: Function | ast.ClassDef) -> str:
        """Where a definition is, as others of the tree are named."""
        return f"{self.path.relative_to(self.root.parent.parent).as_posix()}:{node.lineno}"

    def functions(self) -> list[Function]:
        """All, methods and inner ones too."""
        return [n for n in ast.walk(self.tree) if isinstance(n, Function)]

    def classes(self) -> list[ast.ClassDef]:
        """All of them."""
        return [n for n in ast.walk(self.tree) if isinstance(n, ast.ClassDef)]

    def uses(self) -> set[str]:
        """Modules of the same folder that are imported when the program runs: not below `if TYPE_CHECKING`."""
        found: set[str] = set()
        nodes: list[ast.AST] = [self.tree]
        while nodes:
            node = nodes.pop()
            if isinstance(node, ast.If) and mentions(node.test, {"checking"}):
                nodes += node.orelse
                continue
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
                found.update(name for name in names if (self.path.parent / f"{name}.py").exists())
            nodes += ast.iter_child_nodes(node)
        return found - {self.path.stem}

    def laws(self) -> list[tuple[str, str]]:
        """The laws that functions and classes state, and where."""
        found = []
        for node in self.functions():
            where = f"{self.place(node)} {node.name}"
            found += [(law, where) for law in sorted(self._laws_of(node))]
        for node in self.classes():
            fields = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
            fields |= {
                n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
            }
            if len(fields & WANT) >= FEWEST_WANT_FIELDS:
                found.append(("want", f"{self.place(node)} class {node.name}"))
        return found

    def _laws_of(self, function: Function) -> set[str]:
        found = set()
        for node in ast.walk(function):
            unit = rounded_up(node)
            if unit is not None and mentions(unit, RANKS):
                found.add("order")
            if unit is not None and mentions(unit, {"align"}):
                found.add("layout")
            if isinstance(node, ast.Compare) and self._is_threshold(node):
                found.add("threshold")
        return found

    def _is_threshold(self, node: ast.Compare) -> bool:
        sides = [node.left, *node.comparators]
        constants = [s for s in sides if self._is_share(s)]
        return bool(constants) and any(mentions(s, LOSS) for s in sides if s not in constants)

    def _is_share(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=float(number)):
                return 0 < number < 1
            case ast.Name(id=name):
                return name in self.shares
        return False

    def public(self) -> list[str]:
        """What it offers to other programs: the names of its __all__, unless a name on its path begins with "_"."""
        inside = self.path.relative_to(self.root)
        if any(part.startswith("_") for part in inside.parts if part != "__init__.py"):
            return []
        module = self.path.relative_to(self.root.parent).with_suffix("").as_posix().replace("/", ".")
        names: list[str] = []
        for node in self.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=elements)):
                    names += [f"{module}.{e.value}" for e in elements if isinstance(e, ast.Constant)]
        return names


def dunder(name: str) -> bool:
    """Whether Python itself gave the name."""
    return name.startswith("__") and name.endswith("__")


def folder(root: Path, path: Path) -> dict[str, Any]:
    """The facts of one folder."""
    modules = [Module(root, p) for p in sorted(path.glob("*.py"))]
    start = next((m for m in modules if m.path.name == "__init__.py"), None)
    return {
        "path": path.relative_to(root.parent.parent).as_posix(),
        "doc": (start and ast.get_docstring(start.tree)) or "",
        "is_package": start is not None,
        "files": [m.path.name for m in modules],
        "functions": [
            {"name": f.name, "lines": (f.end_lineno or f.lineno) - f.lineno + 1, "place": m.place(f)}
            for m in modules
            for f in m.functions()
            if not dunder(f.name)
        ],
        "classes": [
            {"name": c.name, "methods": sum(isinstance(n, Function) for n in c.body), "place": m.place(c)}
            for m in modules
            for c in m.classes()
        ],
        "arrows": sorted((m.path.stem, used) for m in modules for used in m.uses()),
        "places": [law for m in modules for law in m.laws()],
        "public": [name for m in modules for name in m.public()],
    }


def main(package: str) -> None:
    """Prints all folders below a package that have modules."""
    root = Path(package).resolve()
    paths = [root, *sorted(p for p in root.rglob("*") if p.is_dir())]
    print(json.dumps([folder(root, p) for p in paths if any(p.glob("*.py"))]))


if __name__ == "__main__":
    main(sys.argv[1])
