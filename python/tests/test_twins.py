"""What Go and Python both state: each reads the same vectors."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feedwater import transforms
from feedwater._common.ranks import Ranks
from feedwater._ctaugment import philox
from feedwater._ctaugment.policy import OPS
from feedwater._order.steps import RangeOrder
from feedwater._torchvision import genuine
from feedwater.transforms._containers import Container
from feedwater.transforms._op import Op
from feedwater.transforms._policies import Policy

ROOT = Path(__file__).parents[2]
ORDER = json.loads((ROOT / "pipeline/order/testdata/vectors.json").read_text())
TWINS = json.loads((ROOT / "pipeline/transform/testdata/twins.json").read_text())


def test_the_formats_that_pillow_must_read_unchanged_are_those_of_nodes() -> None:
    names = re.findall(r'{Name: "(\w+)"', (ROOT / "pipeline/imageformat/imageformat.go").read_text())
    assert len(names) > 3
    assert sorted(name.upper() for name in names) == sorted(genuine.FORMATS)


@pytest.mark.parametrize("draw", ORDER["draws"], ids=lambda draw: f"{draw['path']}-{draw['block']}")
def test_draws_are_those_of_nodes(draw: dict[str, Any]) -> None:
    key = philox.key_of(draw["seed"], draw["path"])
    assert list(key) == draw["key"]
    words = philox.draw_block(key, draw["block"], draw["epoch"], np.array([draw["index"]]), np.array([draw["repeat"]]))[
        :, 0
    ]
    assert words.tolist() == draw["words"]
    assert philox.draw_unit(words[0]) == draw["unit"]
    assert philox.draw_below(words[2], 1000) == draw["below"]


@pytest.mark.parametrize("epoch", ORDER["epochs"], ids=lambda e: f"{e['samples']}-{e['tail']}-{e['cursor']}")
def test_an_epoch_is_shared_as_in_go(epoch: dict[str, Any]) -> None:
    """Per rank: position, count, valid, next. Go counts what comes again on top; here it is part of the batch."""
    order = RangeOrder(epoch["samples"], epoch["batch"], epoch["tail"], epoch["steps"] or None)
    shares = []
    for rank in range(min(3, epoch["ranks"])):
        step = order.step_at(0, epoch["cursor"], Ranks(rank, epoch["ranks"]))
        if step is not None:
            shares.append((step.position, step.size, step.after[1]))
    size = 2 if epoch["tail"] == "valid" else 1
    assert shares == [(share[0], share[size], share[3]) for share in epoch["shares"]]


def test_the_ops_of_ctaugment_are_those_of_nodes() -> None:
    assert [{"name": name, "bins": list(bins)} for name, bins in OPS] == TWINS["ct_augment"]


def test_ops_that_do_the_same_to_tensors_are_those_of_nodes() -> None:
    ops = {
        name: op
        for name, op in vars(transforms).items()
        if inspect.isclass(op) and issubclass(op, Op) and not issubclass(op, (Container, Policy))
    }
    equal = {name for name, op in ops.items() if op.alike or op.same}
    assert equal == set(TWINS["equal_dialects"]) & set(ops)
