"""All cases, by family."""

from __future__ import annotations

import cases_policy
import cases_view
import cases_warp
from case import Case

CASES: dict[str, list[Case]] = {"views": cases_view.CASES, "warps": cases_warp.CASES, "policies": cases_policy.CASES}
