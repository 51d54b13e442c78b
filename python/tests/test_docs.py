"""The documents: what they link to is there, Python in them is Python, and the front door stays short."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import pytest

import feedwater

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "python" / "README.md"])
MOST_WORDS = {"README.md": 700, "CHANGELOG.md": 600}
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
MOST_WORDS_OF_A_SENTENCE = 30
PRINTED = re.compile(r"- .*: \d+ pictures in [\d.]+ s, ")
"""How a sentence begins that is a program's output."""
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def prose(page: Path) -> str:
    """A page without code."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", heading)).lower() for heading in headings]
    return {word.strip().replace(" ", "-") for word in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for found in LINK.finditer(prose(page)):
        target, _, anchor = unquote(found[1] or found[2]).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / target).resolve() if target else page
        assert there.is_relative_to(ROOT), target
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_parses(page: Path) -> None:
    for _, language, code in FENCE.findall(page.read_text()):
        if language == "python":
            ast.parse(textwrap.dedent(code))


@pytest.mark.parametrize("name", MOST_WORDS)
def test_the_door_stays_short(name: str) -> None:
    assert len((ROOT / name).read_text().split()) <= MOST_WORDS[name]


def test_what_contributing_names_is_in_the_code() -> None:
    """Paths exist. Names, which renames leave behind, occur in some source file."""
    files = [
        path
        for end in ("go", "py", "proto")
        for path in ROOT.rglob(f"*.{end}")
        if not str(path.relative_to(ROOT)).startswith(".")
    ]
    words = set().union(*(re.findall(r"\w+", path.read_text()) for path in files))
    text = FENCE.sub("", (ROOT / "CONTRIBUTING.md").read_text())
    for code in re.findall(r"`([^`\n]+)`", text):
        if re.fullmatch(r"[\w./-]+/[\w./-]+", code):
            assert (ROOT / code).exists(), code
        elif re.fullmatch(r"[\w.]+\.(go|py)", code):
            assert any(path.name == code for path in files), code
        elif re.fullmatch(r"[a-zA-Z][\w.]*(\(\))?", code):
            assert set(re.findall(r"\w+", code)) <= words, code


def test_what_an_example_names_is_where_it_says() -> None:
    """Each step of CONTRIBUTING's examples that names files names nothing that is in none of them."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    steps = re.findall(r"^\d\. (.*(?:\n   .*)*)", text, re.MULTILINE)
    assert len(steps) > 20
    for step in steps:
        codes = re.findall(r"`([^`\n]+)`", step)
        files = [path for code in codes for path in _named_files(code)]
        source = "\n".join(path.read_text() for path in files)
        for code in codes:
            if files and re.fullmatch(r"[a-zA-Z][\w.]*(\(\))?", code) and not _named_files(code):
                name = re.findall(r"\w+", code)[-1]
                assert re.search(rf"\b{name}\b", source), f"{name}, of: {step}"


def _named_files(code: str) -> list[Path]:
    """The files that a path or the name of a file stands for; of a folder those with source in it and below."""
    if not re.fullmatch(r"[\w./-]+/[\w./-]+|[\w.]+\.(go|py)", code):
        return []
    found = [ROOT / code] if "/" in code else [p for p in ROOT.rglob(code) if ".venv" not in p.parts]
    every = [below for path in found for below in ([path] if path.is_file() else path.rglob("*"))]
    return [path for path in every if path.suffix in (".go", ".py", ".proto")]


def test_the_map_names_every_page() -> None:
    text = (ROOT / "docs" / "README.md").read_text()
    missing = [page.name for page in (ROOT / "docs").glob("*.md") if f"({page.name})" not in text]
    assert missing in ([], ["README.md"])


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name == "docs"], ids=lambda page: page.name)
def test_a_page_begins_with_its_reader_and_an_example(page: Path) -> None:
    text = page.read_text()
    assert re.match(r"# .*\n\nFor who", text), "for whom is it?"
    assert re.search(r"^( *```|    \S)", text.split("\n## ")[0], re.MULTILINE), "no example before the first section"


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name == "docs"], ids=lambda page: page.name)
def test_cells_of_tables_are_short(page: Path) -> None:
    """What takes more than 25 words is said below the table."""
    for row in re.findall(r"^\|.*\|$", FENCE.sub("", page.read_text()), re.MULTILINE):
        for cell in re.split(r"(?<!\\)\|", row):
            assert len(re.sub(r"\]\([^)]*\)", "]", cell).split()) <= 25, cell


def sentences(page: Path) -> list[str]:
    """The sentences of a page's paragraphs and lists; code in them counts as a word."""
    text = re.sub(r"<!--.*?-->", "", FENCE.sub("\n\n", page.read_text()), flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]*`", "Code", text))
    text = re.sub(r"^(#.*|\|.*|    (?![-*] ).*)$", "\n", text, flags=re.MULTILINE)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    return [
        s
        for block in blocks
        for s in re.split(r"(?<=[.!?])[\"')*\]]*\s+(?=[^a-z])|(?<=:)\s*$", " ".join(block.split()))
    ]


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.name != "LICENSE.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_sentences_are_short(page: Path) -> None:
    found = [sentence for sentence in sentences(page) if not PRINTED.match(sentence)]
    assert found
    assert [s for s in found if len(re.findall(r"\S*\w\S*", s)) > MOST_WORDS_OF_A_SENTENCE] == []


def test_long_sentences_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"# A page\n\nShort. {'word ' * 31}end.\n\n- {'item ' * 10}`a b c`: {'more ' * 21}\n\n```sh\n{'x ' * 40}\n```\n"
    )
    assert [s.split()[-1] for s in sentences(page) if len(s.split()) > MOST_WORDS_OF_A_SENTENCE] == ["end.", "more"]


def test_the_site_names_every_page() -> None:
    """Decisions have a page of their own that names them."""
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    named = re.findall(r": (\S+\.md)$", navigation, re.MULTILINE)
    made = {"index.md", *(name for name in named if name.startswith("api/"))}
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    pages = {page for page in pages if not page.startswith("decisions/")}
    assert set(named) - made == pages | {"decisions/README.md"}
    assert len(named) == len(set(named))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_names_what_there_is(page: Path) -> None:
    """Attributes of feedwater, and arguments of Loader."""
    arguments = set(inspect.signature(feedwater.Loader.__init__).parameters)
    for _, language, code in FENCE.findall(page.read_text()):
        for node in ast.walk(ast.parse(textwrap.dedent(code))) if language == "python" else ():
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "feedwater":
                assert hasattr(feedwater, node.attr) or find_spec(f"feedwater.{node.attr}"), node.attr
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Loader", "feedwater.Loader"):
                given = {keyword.arg for keyword in node.keywords if keyword.arg}
                assert given <= arguments, given - arguments


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.parent.name in ("from", "frameworks")], ids=lambda page: page.stem
)
def test_a_page_about_others_has_an_example_and_scripts_as_they_are(page: Path) -> None:
    """It begins with its reader and an example; a script that it names and shows is the one that tests run."""
    text = page.read_text()
    index = {"from": "migrating.md", "frameworks": "frameworks.md"}[page.parent.name]
    assert f"({page.parent.name}/{page.name})" in (ROOT / "docs" / index).read_text()
    assert re.match(r"# .*\n\nFor who.*\n\n```python\n", text)
    shown = re.findall(r"^\[\w+\.py\]\((\S+\.py)\):\n\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(shown) == (page.parent.name == "frameworks")
    for path, code in shown:
        assert code == (page.parent / path).read_text()
