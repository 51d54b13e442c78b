"""Training scripts on a Loader: few lines are changed, and the network sees what it saw with a DataLoader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import HERE

sys.path.insert(0, str(HERE.parents[1] / "bench" / "scripts"))

import table

KINDS = sorted(path.stem for path in table.BEFORE.glob("*.py"))


def test_each_kind_has_both_scripts_and_few_changes() -> None:
    assert sorted(path.stem for path in table.AFTER.glob("*.py")) == KINDS
    for name in KINDS:
        assert 0 < table.count_changes(name) <= table.MOST_LINES, name
        assert len((table.AFTER / f"{name}.py").read_text().splitlines()) < 80, name


@pytest.mark.parametrize("name", KINDS)
def test_the_network_sees_the_same(name: str, tmp_path: Path) -> None:
    row = table.make_row(name, tmp_path)
    assert row.same, row
    assert row.after.samples >= 2 * table.PICTURES
