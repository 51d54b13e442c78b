"""What makes the pages of the repository a site: the home page, the pages of the API, links to what is no page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

API = {
    "loader": ("Loader and sources", ["Loader", "Table", "Bytes", "Coco", "Masks", "RemoteDataset"]),
    "transforms": ("Transforms", ["transforms"]),
    "frameworks": ("Frameworks", ["hf", "timm", "dcp", "callbacks"]),
    "diagnosis": ("Diagnosis and tests", ["diagnose", "stages", "testing"]),
    "errors": ("Errors", ["errors"]),
}
"""Pages of the API, by the name of their file: title, and what of feedwater they describe."""

LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the home page, which is the README of the repository, and the pages of the API."""
    readme = Path(config.config_file_path).with_name("README.md").read_text()
    files.append(File.generated(config, "index.md", content=readme.replace("](docs/", "](")))
    for name, (title, objects) in API.items():
        text = "\n\n".join([f"# {title}", *(f"::: feedwater.{each}" for each in objects)])
        files.append(File.generated(config, f"api/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Has links to files of the repository that are no pages of the site lead to where its source is."""
    root, docs = Path(config.config_file_path).parent, Path(config.docs_dir)
    home = root if page.file.src_uri == "index.md" else (docs / page.file.src_uri).parent

    def link_source(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        there = (home / target).resolve()
        if re.match(r"[a-z]+:", target) or not there.is_relative_to(root) or not there.exists():
            return match[0]
        if there == docs / "README.md":
            return "index.md" if home in (root, docs) else "../index.md"
        if there.is_relative_to(docs) and there.suffix != "":
            return match[0]
        kind = "tree" if there.is_dir() else "blob"
        return f"{config.repo_url}/{kind}/main/{there.relative_to(root)}{anchor}"

    return LINK.sub(link_source, markdown)
