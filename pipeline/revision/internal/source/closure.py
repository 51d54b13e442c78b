"""Gathers what the named modules of a Python package need: declarations at the top level of its modules, by name.

Called with the package's folder, a JSON object from units to lists of modules, and a JSON list of modules that are left
out; prints a JSON object from units to the declarations that each needs, with their text without comments, docstrings,
empty lines, and imports from the package. Modules are named as from the package: _order.steps. A module that is named is
in it whole. Whatever a declaration names is in it too, as are all lines of its module that declare nothing. Names after a
point are followed where what is before it is a module of the package.
"""

import ast
import io
import itertools
import json
import pathlib
import sys
import tokenize


class Module:
    """A module's declarations, and what its imports call those of others."""

    def __init__(self, path, package):
        self.source = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.source)
        self.lines = plain_lines(self.source, self.tree)
        self.declared, self.others, self.imported = {}, [], {}
        for node in self.tree.body:
            names = list(names_of(node))
            for name in names:
                self.declared.setdefault(name, []).append(node)
            if not names:
                self.others.append(node)
        for node in walk_run(self.tree):
            if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(package) + 1:
                home = [*package[: len(package) + 1 - node.level], *filter(None, [node.module])]
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = (".".join(home), alias.name)

    def text(self, node):
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        lines = self.lines[first - 1 : node.end_lineno]
        return "\n".join(line for line in lines if line)


def walk_run(tree):
    """All nodes but those that only a type checker reads."""
    todo = [tree]
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        yield node
        todo.extend(ast.iter_child_nodes(node))


def names_of(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def plain_lines(source, tree):
    """The lines without comments, docstrings, and spaces at their ends."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for row in range(node.lineno, node.end_lineno + 1):
                lines[row - 1] = ""
        if isinstance(node, ast.ImportFrom) and node.level:
            for row in range(node.lineno, node.end_lineno + 1):
                lines[row - 1] = ""
    return [line.rstrip() for line in lines]


def closure(modules, roots):
    """Pairs of module and name, and the text of each."""
    todo = [(module, name) for module in roots for name in (*modules[module].declared, "")]
    found = {}
    while todo:
        key = module, name = todo.pop(0)
        if key in found or module not in modules:
            continue
        here = modules[module]
        nodes = here.declared.get(name, []) if name else [n for n in here.others if not is_import(n)]
        found[key] = "\n".join(here.text(node) for node in nodes)
        if name:
            todo.append((module, ""))
        for node in nodes:
            todo.extend(needs(modules, module, here, node))
    return found


def is_import(node):
    return isinstance(node, (ast.Import, ast.ImportFrom)) or (
        isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    )


def needs(modules, module, here, node):
    for part in walk_run(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            whole = ".".join(filter(None, here.imported.get(part.value.id, ())))
            if whole in modules:
                yield whole, part.attr
        if isinstance(part, ast.Name):
            if part.id in here.declared:
                yield module, part.id
            source, name = here.imported.get(part.id, (None, None))
            if source in modules:
                yield source, name


def main():
    folder, units = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
    apart = json.loads(sys.argv[3])
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        package, name = parts[:-1], ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(path, package)
    for name in itertools.chain(apart, *units.values()):
        if name not in modules:
            sys.exit(f"{name}: no such module")
    modules = {name: module for name, module in modules.items() if name not in apart}
    print(
        json.dumps(
            {
                unit: {
                    f"{module}.{name}": text for (module, name), text in sorted(closure(modules, roots).items()) if text
                }
                for unit, roots in units.items()
            }
        )
    )


main()
