"""Every op. FEEDWATER_PARITY_IMAGES and FEEDWATER_PARITY_EPOCHS say how many photographs, and draws for each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from case import Case, compare
from cases import CASES

IMAGES = int(os.environ.get("FEEDWATER_PARITY_IMAGES", "4"))
EPOCHS = int(os.environ.get("FEEDWATER_PARITY_EPOCHS", "2"))

pytestmark = pytest.mark.usefixtures("real", "reference_arithmetic")


@pytest.mark.parametrize("case", [case for family in CASES.values() for case in family], ids=lambda case: case.name)
def test_every_value(case: Case, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / f"linked{IMAGES}"
    result = compare(case, photos, folder, IMAGES, EPOCHS)
    assert not result.first, result.first
    assert result.draws == IMAGES * EPOCHS
    assert result.values
