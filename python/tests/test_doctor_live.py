"""The doctor from inside a program: diagnose(), and doctor() of a Loader."""

from __future__ import annotations

import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import feedwater
from feedwater._agent.index_use import IndexUse
from feedwater._common.constants import BOUND_SHARE
from feedwater._meter.pace import Stats
from feedwater.doctor import curve, live
from feedwater.doctor.probe import proc
from feedwater.doctor.signals import LEAST_ROWS, Signals
from feedwater.doctor.verdict import Verdict

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset  # noqa: E402


class Asleep(Dataset):  # type: ignore[type-arg]
    """Samples that wait for something."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return 160

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds)
        return torch.rand(2) + index


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measures briefly, and hears no traffic of other programs, for which workers would seem to wait."""
    monkeypatch.setattr(curve, "SECONDS", 0.2)
    monkeypatch.setattr(proc, "network_bytes", lambda: 0)


@pytest.mark.usefixtures("quick")
def test_workers_that_wait() -> None:
    loader = DataLoader(Asleep(0.004), 4, num_workers=1, shuffle=True)
    module = torch.utils.data._utils.fetch
    before = [vars(kind).copy() for kind in (module._BaseDatasetFetcher, module._MapDatasetFetcher)]
    verdict = feedwater.diagnose(loader, lambda _: time.sleep(0.001), steps=60)
    assert (verdict.verdict, verdict.cause) == ("data-bound", "worker-blocked"), str(verdict)
    s = verdict.signals
    assert s is not None and s.steps == 60 and s.replayed_s is not None and s.replayed_s < s.step_s / 2
    assert s.fetches >= 30 and s.blocked > 0.6
    assert verdict.curve[1] > 0.016 and verdict.curve[4] < verdict.curve[1], "sleeping costs no core"
    best = verdict.actions[0]
    assert best.do.endswith("(measured)") and best.gain is not None and best.gain > 1.5
    assert "curve   num_workers 0: " in str(verdict)
    assert [vars(kind) for kind in (module._BaseDatasetFetcher, module._MapDatasetFetcher)] == before, "taken off"


@pytest.mark.usefixtures("quick")
def test_reports_lie_where_everybody_may_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what cannot be written the probe would see nothing more, from step 40 on."""
    places: list[Path] = []
    replace_file = os.replace

    def note(source: str, target: str) -> None:
        places.append(Path(target).parent)
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", note)
    feedwater.diagnose(DataLoader(Asleep(0), 4), lambda _: time.sleep(0.001), steps=60)
    assert places and all(place.name.startswith("feedwater-doctor-") for place in places)


@pytest.mark.usefixtures("quick")
def test_random_state_is_as_after_the_steps() -> None:
    def states(*, doctor: bool) -> Any:
        torch.manual_seed(1)
        random.seed(1)
        loader = DataLoader(Asleep(0), 4, shuffle=True)  # 40 steps a pass
        seen: list[Any] = []
        if doctor:
            feedwater.diagnose(loader, lambda batch: seen.append(batch.sum().item()), steps=60)
        else:
            seen += [batch.sum().item() for batch in loader]
            seen += [batch.sum().item() for _, batch in zip(range(20), loader)]
        return seen[:60], torch.get_rng_state().tolist(), random.getstate()

    plain, measured = states(doctor=False), states(doctor=True)
    assert plain[0] == measured[0]
    assert plain[1:] == measured[1:]


def test_a_step_that_takes_the_time() -> None:
    verdict = feedwater.diagnose([torch.zeros(2)] * 50, lambda _: time.sleep(0.004), workers=False)
    assert (verdict.verdict, verdict.cause, verdict.exit_code) == ("healthy", "step-bound", 0), str(verdict)
    assert verdict.curve == {}


def test_too_little_to_judge_by() -> None:
    with pytest.raises(ValueError, match="steps=5"):
        feedwater.diagnose([1], print, steps=5)
    with pytest.raises(feedwater.Error, match="the loader is empty"):
        feedwater.diagnose([], print)
    with pytest.raises(feedwater.Error, match="fewer than 30 batches in a row"):
        feedwater.diagnose([1], lambda _: None)


def test_what_the_curve_changes() -> None:
    s = Signals(step_s=0.03, replayed_s=0.01, wait=0.6)
    late = live.judge_loop(s)
    heeded = curve.apply_curve(late, {0: 0.03, 1: 0.03, 2: 0.015, 4: 0.016})
    assert heeded.actions[0].do == "num_workers=2 (measured)" and heeded.actions[0].gain == 2.0
    assert heeded.advice[0] == ("num_workers", "yes", "measured ms a batch 0: 30.0, 1: 30.0, 2: 15.0, 4: 16.0")
    flat = curve.apply_curve(late, {1: 0.03, 2: 0.03})
    assert not any(action.arguments for action in flat.actions), "more workers were measured not to help"
    assert flat.advice[0][1] == "no"


# -- a Loader ----------------------------------------------------------------------------------------------------------

REPOSITORY = Path(__file__).parents[2]

COUNTED = Stats(
    batches=100,
    samples=1000,
    received_bytes=0,
    wait_s=4.0,
    transform_s=0.0,
    python_wait_s=0.0,
    step_s=10.0,
    last_wait_s=0.0,
    window=4,
    slots=4,
    copied_batches=0,
    skipped=0,
    substituted=0,
    agent_restarts=0,
    idle_s=None,
    idle_step_s=0.0,
    last_idle_s=None,
    idle_unknown="the program uses no GPU with CUDA events",
)


def of(*, elsewhere: bool = False, **counted: Any) -> Verdict:
    return live.of_stats(replace(COUNTED, **counted), elsewhere=elsewhere)


def test_of_counters() -> None:
    late = of()
    assert (late.verdict, late.cause) == ("data-bound", "cores-used-up")
    assert late.ceiling == pytest.approx(1 / 0.6)
    assert late.actions[-1].do.startswith("feedwater nodes")
    slow = replace(COUNTED, index=IndexUse(misses=1000, missing_copies=1000, missing_copy_bytes=10**8))
    pictures = {"use": slow.index, "samples": 50_000, "folder": "/data"}
    advised = live.of_stats(slow, elsewhere=False, pictures=pictures).actions
    assert [action.do[:28] for action in advised] == ["FEEDWATER_INDEX_COPIES=7GiB,", "feedwater nodes (data made e"]
    assert "`feedwater index /data --index-copies 7GiB`" in advised[0].do
    far = of(elsewhere=True)
    assert (far.cause, far.actions[0].do) == ("few-nodes", "more nodes: 1.7 times as many, if all are busy")
    empty = of(elsewhere=True, wait_s=9.99)
    assert (empty.cause, empty.actions[0].do) == ("few-nodes", "more nodes"), "no number sates a loop that does nothing"
    assert of(wait_s=0.1).verdict == "healthy"
    assert of(batches=3).verdict == "unknown"
    assert of(skipped=50).cause == "bad-images"
    unfelt = of(idle_s=0.01, idle_step_s=10.0, idle_unknown="")
    assert (unfelt.verdict, unfelt.cause) == ("healthy", "gpu-bound"), "waits that the GPU did not feel"
    unseen = {"idle_unknown": "the program works on a stream that torch did not make"}
    assert of(**unseen).cause == of(**unseen, idle_most_share=0.3).cause == "idle-unknown"
    assert of(**unseen, idle_s=0.0, idle_step_s=1.0, idle_most_share=0.3).cause == "idle-unknown", "of a few steps"
    assert of(**unseen, idle_most_share=0.001).cause == "gpu-bound", "whatever those streams do"


def test_one_law_for_all_that_judge_a_loop() -> None:
    """`feedwater top`, the page and /metrics read the same table: watch/verdict/testdata/vectors.json."""
    vectors = json.loads((REPOSITORY / "watch/verdict/testdata/vectors.json").read_text())
    assert vectors["thresholds"] == {"data_bound": BOUND_SHARE, "few_steps": LEAST_ROWS}
    assert len(vectors["cases"]) >= 20
    for case in vectors["cases"]:
        steps, idle = case["steps"], case["idle"]
        step_s = 0.1 * steps
        counted = {"batches": steps, "samples": 8 * steps, "step_s": step_s, "wait_s": case["wait"] * step_s}
        if case["gpu"] and idle is None:
            counted |= {"idle_unknown": "the program uses further streams"}
        elif case["gpu"]:
            counted |= {"idle_s": idle * step_s, "idle_step_s": step_s, "idle_unknown": ""}
        for elsewhere in (False, True):
            assert of(elsewhere=elsewhere, **counted).verdict == case["verdict"], case


def test_what_was_not_looked_at_is_unknown() -> None:
    evidence = of().to_dict()["evidence"]
    assert evidence["others"] is None and evidence["cpu"] is None and evidence["sync"] is None
    assert "others" not in str(of()), "no line of zeros"


def test_of_a_loader(fake: Any) -> None:
    loader = fake.loader()
    assert loader.doctor().cause == "too-short"
    for _ in range(4):
        for _ in loader:
            pass
    verdict = loader.doctor()
    assert verdict.verdict in ("healthy", "data-bound")
    assert verdict.signals is not None and verdict.signals.loader == "feedwater.Loader"
    loader.close()
