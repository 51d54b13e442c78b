"""All cases, by family."""

from __future__ import annotations

import cases_size
import cases_view
from case import Case

CASES: dict[str, list[Case]] = {"views": cases_view.CASES, "sizes": cases_size.CASES}
