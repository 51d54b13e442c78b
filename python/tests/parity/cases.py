"""All cases, by family."""

from __future__ import annotations

import cases_colour
import cases_containers
import cases_crops
import cases_elastic
import cases_first
import cases_policy
import cases_size
import cases_tensor
import cases_view
import cases_warp
from case import Case

CASES: dict[str, list[Case]] = {"views": cases_view.CASES, "warps": cases_warp.CASES, "policies": cases_policy.CASES}
CASES["colours"] = cases_colour.CASES
CASES["containers"] = cases_containers.CASES
CASES["sizes"] = cases_size.CASES
CASES["tensors"] = cases_tensor.CASES
CASES["elastic"] = cases_elastic.CASES
CASES["crops"] = cases_crops.CASES
CASES["first generation"] = cases_first.CASES
