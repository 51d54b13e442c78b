"""The doctor's rules on recorded numbers: each cause with signals it is found in, and near ones it is not."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from feedwater._agent.index_use import IndexUse
from feedwater.doctor import advice, screen
from feedwater.doctor.copies import copy_facts
from feedwater.doctor.kept_pixels import picture_facts
from feedwater.doctor.measured import measure_run
from feedwater.doctor.probe import pictures
from feedwater.doctor.probe.board import FIELDS
from feedwater.doctor.report import Report, Run
from feedwater.doctor.rules import judge, judge_loop, judge_ranks
from feedwater.doctor.signals import Signals
from feedwater.doctor.step import Step
from feedwater.doctor.verdict import CAUSES, Verdict

# Recorded on two cores: a loop of 20 ms that its one worker, 30 ms a batch, does not keep up with.
LATE = Signals(step_s=0.03, ready_s=0.02, ready_steps=9, wait=0.35, cpu=0.99, duty=0.99, batch_cpu_s=0.03, fetch_s=0.03)
# The same loop on a GPU, whose stream stood still while next was blocked.
GPU = replace(LATE, gpu=True, idle=0.33, dry=0.5, looked=24)
# A GPU that always has work.
FED = Signals(gpu=True, idle=0.001, wait=0.01, dry=0.0, looked=24)

FIRES = {
    "too-few-workers": LATE,
    "too-many-workers": replace(LATE, workers=8, queued=0.6, cpu=0.4, ready_s=0.026, batch_cpu_s=0.02, loop_cores=1.3),
    "worker-threads": replace(LATE, workers=2, extra=2.0, batch_cpu_s=0.09, loop_cores=0.0),
    "cpu-starved": replace(LATE, workers=2, queued=0.6, cpu=0.4, others=1.6, step_s=0.05, wait=0.6),
    "storage": replace(LATE, blocked=0.8, cpu=0.2, batch_cpu_s=0.006, batch_blocked_s=0.024, read_bytes=1e5),
    "slow-link": replace(
        LATE, blocked=0.8, cpu=0.2, batch_cpu_s=0.006, batch_blocked_s=0.024, read_bytes=1e4, network_bytes=1e5
    ),
    "worker-blocked": replace(LATE, blocked=0.8, cpu=0.2, batch_cpu_s=0.006, batch_blocked_s=0.024),
    "slow-collate": replace(LATE, workers=2, collate=0.8, batch_cpu_s=0.06, fetch_s=0.06),
    "giant-images": replace(LATE, workers=2, pixels=12e6, samples=2.0, batch_cpu_s=0.06, fetch_s=0.06),
    "epoch-boundary": replace(LATE, wait=0.02, step_s=0.02, edge_s=0.02, steps_per_pass=12.0, batch_cpu_s=0.008),
    "tiny-model": replace(LATE, step_s=1e-3, ready_s=3e-4, wait=0.8, batch_cpu_s=8e-4, samples=16.0, workers=2),
    "uneven-batches": replace(LATE, workers=2, uneven=9.0, held=0.5, duty=0.6, batch_cpu_s=0.015),
    "hand-over": replace(LATE, workers=2, duty=0.3, batch_cpu_s=0.01),
    "cores-used-up": replace(LATE, workers=2, batch_cpu_s=0.056, loop_cores=0.1),
    "few-nodes": replace(LATE, loader="feedwater.Loader", data="nodes", fetches=0, workers=0),
    "bad-images": replace(LATE, broken=0.2),
    "graph-leak": replace(LATE, graph="total at train.py:9"),
    "off-thread": replace(LATE, off_thread=190),
    "missing-no-grad": Signals(without_backward=True, wait=0.2, ready_s=None),
    "pin-memory-off": replace(FED, copy=0.3, copy_line="/x/train.py:12"),
    "gpu-shared": FED,
    "launch-bound": replace(FED, dry=0.95),
    "sync-in-loop": replace(FED, dry=0.95, sync=0.4, after_sync=0.5, sync_line="/x/train.py:14"),
    "host-contended": Signals(loop_queued=0.4, others=1.2),
    "gpu-bound": FED,
    "step-bound": Signals(),
    "unsteady": replace(LATE, wait=0.6, ready_s=1.0, ready_steps=20),
    "idle-unknown": replace(GPU, idle=None, idle_unknown="the program uses further streams"),
}
"""Signals in which the cause is found."""

DOES_NOT = {
    "too-few-workers": replace(LATE, workers=2, batch_cpu_s=0.056),
    "too-many-workers": replace(LATE, workers=2, queued=0.6, cpu=0.4, batch_cpu_s=0.056),
    "worker-threads": replace(LATE, workers=2, extra=0.1),
    "cpu-starved": replace(LATE, workers=2, queued=0.6, cpu=0.4, others=0.1),
    "storage": replace(LATE, blocked=0.2, cpu=0.8, batch_cpu_s=0.024, batch_blocked_s=0.006, read_bytes=1e5),
    "slow-link": FIRES["storage"],
    "worker-blocked": FIRES["slow-link"],
    "slow-collate": replace(LATE, collate=0.1),
    "giant-images": replace(LATE, workers=2, read_bytes=1.2e5, pixels=2e5, samples=2.0, batch_cpu_s=0.06),
    "epoch-boundary": replace(LATE, edge_s=0.001, steps_per_pass=12.0),
    "tiny-model": replace(LATE, step_s=1e-3, ready_s=3e-4, wait=0.8, batch_cpu_s=8e-3, samples=16.0),
    "uneven-batches": replace(FIRES["uneven-batches"], uneven=1.2),
    "hand-over": replace(LATE, workers=2, duty=0.95, batch_cpu_s=0.056),
    "cores-used-up": replace(LATE, step_s=0.0201, wait=0.01),
    "few-nodes": replace(LATE, loader="feedwater.Loader", data="folder", fetches=0, workers=0),
    "bad-images": replace(LATE, broken=0.001),
    "graph-leak": LATE,
    "off-thread": replace(LATE, off_thread=3),
    "missing-no-grad": Signals(without_backward=False, wait=0.2, ready_s=None),
    "pin-memory-off": replace(FED, copy=0.3, pin_memory=True),
    "gpu-shared": FED,
    "launch-bound": replace(FED, dry=0.3),
    "sync-in-loop": replace(FED, dry=0.95, sync=0.9, after_sync=0.01),
    "host-contended": replace(FED, loop_queued=0.4, others=1.2),
    "gpu-bound": Signals(),
    "step-bound": FED,
    "unsteady": replace(LATE, wait=0.4, ready_s=1.0, ready_steps=20),
    "idle-unknown": replace(FED, idle=None, idle_unknown="the program uses further streams"),
}


def cause(name: str, s: Signals, *, fires: bool) -> Verdict:
    return judge_loop(s, shared=fires if name == "gpu-shared" else None)


@pytest.mark.parametrize("name", FIRES)
def test_found(name: str) -> None:
    verdict = cause(name, FIRES[name], fires=True)
    assert verdict.cause == name, verdict


@pytest.mark.parametrize("name", FIRES)
def test_not_found(name: str) -> None:
    assert cause(name, DOES_NOT[name], fires=False).cause != name


def test_every_cause_is_tested() -> None:
    of_ranks_or_programs = {"straggler-rank", "script-failed", "out-of-memory", "not-hooked", "no-loader", "too-short"}
    of_ranks_or_programs |= {"probe-failed"}
    assert set(FIRES) == set(DOES_NOT) == set(CAUSES) - of_ranks_or_programs


VERDICTS = {
    "data-bound": (*list(FIRES)[:15], "cores-used-up"),
    "not-data": ("graph-leak", "missing-no-grad", "pin-memory-off", "gpu-shared", "launch-bound", "sync-in-loop"),
    "healthy": ("gpu-bound", "step-bound"),
    "errors": ("bad-images",),
    "unknown": ("off-thread", "idle-unknown"),
}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_verdicts_and_exit_codes(verdict: str) -> None:
    for name in VERDICTS[verdict]:
        got = cause(name, FIRES[name], fires=True)
        assert got.verdict == verdict, name
        assert got.exit_code == {"healthy": 0, "not-data": 0, "data-bound": 3}.get(verdict, 1)


# -- what is promised --------------------------------------------------------------------------------------------------


def test_waiting_that_the_gpu_does_not_feel_is_no_problem() -> None:
    assert judge_loop(replace(FED, wait=0.8)).cause == "gpu-bound"


def test_copies_of_a_loader_of_ours_are_better_made_by_it() -> None:
    slow = replace(FED, copy=0.3, copy_line="/x/train.py:12")
    theirs, ours = (judge_loop(one).actions[0] for one in (slow, replace(slow, loader="feedwater.Loader")))
    assert theirs.arguments == "pin_memory=True"
    assert ours.do.startswith('device="cuda"') and "train.py:12" in ours.do
    assert not ours.arguments, "they are a DataLoader's"


def test_room_for_copies_comes_before_nodes() -> None:
    here = replace(FIRES["few-nodes"], data="folder", missing_copies=0.9, all_copies_bytes=3.1e9, folder="/d ir")
    far = replace(here, data="nodes")
    first, second = judge_loop(here).actions
    assert first.do.startswith("FEEDWATER_INDEX_COPIES=3GiB, for this data set: 90 % of the pictures are lossy WebP or")
    assert first.do.endswith("; `feedwater index '/d ir' --index-copies 3GiB` makes them ahead") and first.gain is None
    for unknown in ("", "/\udcff"):
        assert "feedwater index" not in judge_loop(replace(here, folder=unknown)).actions[0].do
    assert second.do.startswith("feedwater nodes")
    first, second, _ = judge_loop(far).actions
    assert first.do.startswith("--index-copies 3GiB on each node, for this data set") and second.do.startswith(
        "more no"
    )
    assert "; `feedwater index` there, with this and the folder that the node serves, makes them ahead" in first.do
    assert "1. --index-copies 3GiB on each node" in str(judge_loop(far))
    for few in (replace(here, missing_copies=0.2), replace(far, missing_copies=0.2)):
        assert not any("copies" in action.do for action in judge_loop(few).actions)
    assert not judge_loop(replace(here, wait=0.01, ready_s=None)).actions, "where data is ready there is nothing to do"
    sizes = {0.0: "BYTES", 1.0: "100MiB", 101.0 * 2**20: "200MiB", 950.0 * 2**20: "1GiB", 1.1 * 2**30: "2GiB"}
    for size, told in sizes.items():
        assert (
            judge_loop(replace(here, all_copies_bytes=size)).actions[0].do.startswith(f"FEEDWATER_INDEX_COPIES={told},")
        )


@pytest.mark.parametrize("room", ["100MiB", "104857600", "104857600B", "0.09765625 GiB"])
def test_room_for_copies_that_is_used_up(room: str) -> None:
    full = replace(
        FIRES["few-nodes"], data="folder", missing_copies=0.9, more_copies_bytes=450.0 * 2**20, folder="/d", room=room
    )
    do = judge_loop(full).actions[0].do
    assert do.startswith("FEEDWATER_INDEX_COPIES=600MiB: 90 % of the pictures") and f"the {room} that are set" in do
    assert "have no room for more, or the folder cannot be written" in do and "FEEDWATER_AGENT_LOG_FILE" in do
    assert judge_loop(replace(full, more_copies_bytes=0.0)).actions[0].do.startswith("FEEDWATER_INDEX_COPIES=BYTES:")
    assert judge_loop(replace(full, data="nodes")).actions[0].do.startswith("--index-copies"), (
        "the variable is not theirs"
    )
    for none in ("", "0", "nonsense"):
        assert "for this data set" in judge_loop(replace(full, room=none)).actions[0].do


def test_copies_that_are_being_made_are_noted() -> None:
    """A loop waits for them in that epoch alone, whatever else there is to do."""
    made = replace(FIRES["few-nodes"], **copy_facts(IndexUse(misses=100, made_copies=90)))
    [note] = [note for note in judge_loop(made).notes if "copies" in note]
    assert note.startswith("copies of 90 % of the pictures were made on the way") and "judge again then" in note
    assert not any("copies" in action.do for action in judge_loop(made).actions)
    assert not any("copies" in note for note in judge_loop(replace(made, made_copies=0.2)).notes)


def test_pixels_are_kept_where_that_gains_most() -> None:
    slow = replace(FIRES["few-nodes"], data="folder", unkept=50_000)
    first, second = judge_loop(slow).actions
    assert first.do.startswith("FEEDWATER_KEEP=BYTES") and "each of the 50,000 pictures: docs/keep.md" in first.do
    assert first.gain is None and second.do.startswith("feedwater nodes")
    others = (replace(slow, unkept=0), replace(slow, data="nodes"), replace(slow, wait=0.01, ready_s=None))
    begun = replace(slow, wait=0.02, step_s=0.02, edge_s=0.02, steps_per_pass=12.0)
    assert judge_loop(begun).cause == "epoch-boundary", "which is not for want of cores"
    for other in (*others, begun):
        assert not any("FEEDWATER_KEEP" in action.do for action in judge_loop(other).actions)


@pytest.mark.parametrize(
    ("names", "use", "gain"),
    [
        (["a.png", "b.PNG", "c.jpg"], IndexUse(), True),
        (["a.png", "b.jpg", "c.jpg"], IndexUse(misses=9), False),
        (["a.png"], IndexUse(misses=1, kept=8), False),
        (["a.webp"], IndexUse(misses=9), True),
        (["a.webp"], IndexUse(misses=9, missing_copies=1), False),
        (["a.webp"], IndexUse(misses=9, made_copies=1), False),
        (["a.webp"], IndexUse(copies=9), False),
        (["a.webp"], IndexUse(), False),
        ([], IndexUse(misses=9), False),
    ],
)
def test_which_pictures_gain_most_by_kept_pixels(tmp_path: Path, names: list[str], use: IndexUse, gain: bool) -> None:
    for name in names:
        (tmp_path / name.partition(".")[0]).mkdir()
        (tmp_path / name.partition(".")[0] / name).touch()
    assert picture_facts(use, 30, str(tmp_path))["unkept"] == 30 * gain
    assert picture_facts(use, 30, str(tmp_path), keep="1GiB")["unkept"] == 0
    assert picture_facts(use, 30, str(tmp_path / "none"))["unkept"] == picture_facts(use, 30)["unkept"] == 0


def test_what_copies_take() -> None:
    nothing = {
        "missing_copies": 0.0,
        "made_copies": 0.0,
        "more_copies_bytes": 0.0,
        "all_copies_bytes": 0.0,
        "folder": "/d",
        "room": "5kB",
    }
    assert copy_facts(IndexUse(), 1000, "/d", "5kB") == nothing
    assert copy_facts(IndexUse(missing_copies=1), 1000)["missing_copies"] == 0.0, "a node that tells nonsense"
    half = IndexUse(hits=20, copies=30, misses=50, missing_copies=50, missing_copy_bytes=50 * 1000)
    facts = copy_facts(half, 1000)
    assert facts["more_copies_bytes"] == 1000 * 0.5 * 1500
    assert (facts["missing_copies"], facts["all_copies_bytes"]) == (0.5, 1000 * 0.8 * 1500), "at quality 20"


def test_ready_steps_are_the_judge_of_what_is_to_gain() -> None:
    """Waits of 35 %, but steps that waited for nothing took as long: nothing would be gained."""
    assert judge_loop(replace(LATE, ready_s=0.03)).verdict == "healthy"
    assert judge_loop(replace(LATE, ready_s=None)).verdict == "data-bound"


def test_gains() -> None:
    best = judge_loop(LATE).actions[0]
    assert best.do == "num_workers=2" and best.arguments == "num_workers=2"
    assert best.gain == pytest.approx(0.03 / 0.02)
    elsewhere = judge_loop(LATE).actions[-1]
    assert elsewhere.do.startswith("feedwater nodes") and elsewhere.gain == pytest.approx(1.5)


# Recorded: eight workers on two cores that others use too, three passes of fifteen steps. Two steps were seen fed.
EPOCHS = Signals(
    workers=8, steps=45, step_s=0.1886, ready_s=0.0455, ready_steps=2, wait=0.394, edge_s=0.187, steps_per_pass=15.0,
    fetches=42, fetch_s=1.86, cpu=0.113, queued=0.886, duty=0.996, batch_cpu_s=0.214, loop_cores=0.07, others=1.26,
)  # fmt: skip


def promises(verdict: Verdict) -> list[float]:
    return [verdict.ceiling or 1.0, *(action.gain or 1.0 for action in verdict.actions)]


def test_nothing_beyond_the_stall_is_promised_by_a_few_steps() -> None:
    """Two steps that were short by chance, on a machine that others use, are no ceiling."""
    verdict = judge_loop(EPOCHS)
    stall = verdict.to_dict()["stall"]
    assert stall == pytest.approx(0.696, abs=1e-3)
    assert max(promises(verdict)) <= 1 / (1 - stall) + 1e-9, str(verdict)
    said = " ".join(str(verdict).split())
    assert "3.29x with data ready (estimated)" in said and verdict.to_dict()["estimated"] is True
    assert "114.3 ms with data ready (estimated; 2 steps took 45.5 ms)" in said
    assert verdict.actions[-1].do == "feedwater nodes (data made elsewhere), estimated"


def test_more_than_the_stall_is_promised_where_it_was_seen() -> None:
    """And says why: the loop has the cores that make batches. The same of batches that were replayed."""
    beside = "steps took 80.0 ms with data ready, without it 114.3 ms beside their wait"
    quiet = replace(EPOCHS, others=0.1, loop_queued=0.0)
    for s, how in (
        (replace(quiet, ready_s=0.08, ready_steps=9), "at least"),
        (replace(EPOCHS, replayed_s=0.08), "at most"),
    ):
        verdict = judge_loop(s)
        assert verdict.ceiling == pytest.approx(0.3756 / 0.08)
        assert "x faster with data always ready" in str(verdict) and verdict.to_dict()["estimated"] is False
        assert any(beside in note for note in verdict.notes), verdict.notes
        assert verdict.actions[-1].do == f"feedwater nodes (data made elsewhere), {how}"
        assert verdict.actions[-1].gain == verdict.ceiling
    half = judge_loop(replace(quiet, ready_s=0.03, ready_steps=9))
    assert half.signals is not None and half.signals.fed_s == pytest.approx(half.signals.rest_s / 2)
    assert "with data ready (estimated)" in str(half) and "9 steps took 30.0 ms" in " ".join(str(half).split())
    assert not any("beside their wait" in note for note in judge_loop(LATE).notes), "within the stall"


def test_a_loop_that_queues_for_a_core_may_get_faster_than_twice() -> None:
    """Recorded beside fourteen workers: steps of 21 ms, in which the loop's thread had no core for 10.5; 4.3 in bursts,
    and 2.5 with batches replayed.
    """
    s = replace(LATE, step_s=0.0211, wait=0.17, ready_s=0.0043, ready_steps=20, workers=14, queued=0.75, cpu=0.24)
    s = replace(s, duty=0.39, batch_cpu_s=0.035, loop_cores=0.8, loop_queued=0.5)
    assert s.fed_s == 0.0043 and not s.estimated
    assert replace(s, loop_queued=0.1).fed_s == pytest.approx((0.83 - 0.1) * 0.0211 / 2)
    assert replace(s, ready_steps=4).fed_s == s.rest_s, "four may be short by chance"
    assert replace(s, others=0.9).fed_s == s.rest_s / 2, "others had it, and will have it"


def test_how_much_faster_a_loop_itself_gets_without_others_is_not_told() -> None:
    starved = FIRES["cpu-starved"]
    for loop_queued, told in ((0.1, True), (0.6, False)):
        verdict = judge_loop(replace(starved, loop_queued=loop_queued))
        assert verdict.cause == "cpu-starved" and (verdict.actions[0].gain is not None) is told


def test_no_step_is_left_out_of_three() -> None:
    s = measure_run(run(rows=[row(6, 20)] * 100 + [row(0, 12, burst=True)] * 2 + [row(0, 18, burst=True)]))
    assert s is not None and s.ready_steps == 3 and s.ready_s == pytest.approx(0.014)


def test_a_slower_loop_is_never_promised() -> None:
    """On a loaded machine more workers get more of it: fewer of them would cost. A gain below 1 is no advice."""
    many = replace(FIRES["too-many-workers"], others=1.5)
    verdict = judge_loop(many)
    assert all(action.gain is None or action.gain >= 0.98 for action in verdict.actions)
    assert Step(many).gain(2 * many.period_s) == 0.5, "not clamped"


def test_nothing_is_promised_that_cannot_be_measured() -> None:
    untold = "worker-threads", "pin-memory-off", "launch-bound", "sync-in-loop", "uneven-batches", "tiny-model"
    for name in (*untold, "storage", "slow-link", "worker-blocked"):
        assert cause(name, FIRES[name], fires=True).actions[0].gain is None, name
    tiny = judge_loop(replace(FIRES["tiny-model"], collate=0.7, fetch_s=1e-3))
    assert (tiny.cause, [action.gain for action in tiny.actions]) == ("tiny-model", [None, None])
    many = replace(FIRES["too-many-workers"], iterable=True)
    assert [action.gain for action in judge_loop(many).actions if action.arguments] == [None], "each may read it all"


def test_a_step_takes_the_cores_for_the_loop_and_for_its_batch() -> None:
    """24 core-ms of the loop's own and 16 of a batch on two cores: 20 ms, though the loop alone takes 15, and 4 workers
    need no more for a batch.
    """
    s = replace(LATE, workers=4, step_s=0.06, ready_s=0.015, ready_steps=9, wait=0.5, loop_cores=0.4, others=0.0)
    assert s.fed_s == pytest.approx(0.015)
    assert Step(s).step_seconds(cpu_s=0.016) == pytest.approx(0.020)
    assert Step(s).step_seconds(cpu_s=0.001) == pytest.approx(0.015)


def test_a_gpu_whose_host_others_hold_needs_no_faster_launches() -> None:
    s = replace(FIRES["launch-bound"], loop_queued=0.4, others=1.5)
    assert judge_loop(s).cause == "host-contended"
    for mine in (replace(s, loop_queued=0.05), replace(s, others=0.1)):
        assert judge_loop(mine).cause == "launch-bound"


def test_workers_that_all_read_the_whole_of_a_stream() -> None:
    """Recorded: sixteen, of which each parses a file of pictures of 150 kB and keeps a sixteenth."""
    s = Signals(gpu=True, idle=0.2, wait=0.28, step_s=0.11, ready_s=0.045, ready_steps=30, workers=16, loop_queued=0.69)
    s = replace(s, queued=0.86, cpu=0.14, duty=0.78, loop_cores=0.235, batch_cpu_s=0.18, samples=12.0)
    s = replace(s, read_bytes=2.4e6, pixels=1.9e5)
    assert judge_loop(s).cause == "giant-images"
    assert judge_loop(replace(s, iterable=True)).cause == "too-many-workers"


def test_giant_pictures_in_a_stream_that_nobody_saw_decoded() -> None:
    """Read by OpenCV: their size is known by what is read, which may be more than theirs."""
    s = replace(LATE, cores=8, workers=8, samples=32.0, read_bytes=5e6, batch_cpu_s=3.8, step_s=0.5, wait=0.8)
    s = replace(s, ready_s=0.1)
    assert judge_loop(s).cause == "giant-images" and judge_loop(s).actions[0].gain is not None
    stream = judge_loop(replace(s, iterable=True))
    assert stream.cause == "giant-images" and stream.actions[0].gain is None


def test_a_small_model_that_decodes() -> None:
    """Cores make data all the time, for a model that hardly uses it."""
    s = replace(LATE, workers=2, batch_cpu_s=0.056, step_s=0.03, ready_s=0.005, wait=0.8)
    assert judge_loop(replace(s, model={"parameters": 25_000_000})).cause == "cores-used-up"
    small = judge_loop(replace(s, model={"parameters": 148_000}))
    assert small.cause == "tiny-model" and small.actions[0].do.startswith("decode once")
    assert judge_loop(replace(s, ready_s=0.02, wait=0.3, model={"parameters": 148_000})).cause == "cores-used-up"


def test_a_small_model_on_samples_that_cost_nothing() -> None:
    """Recorded on a machine with slow shared memory: a linear model on sixteen rows of a table, of whose fetch torch's
    own collate takes the most. That is nothing to vectorise; and it takes no time in milliseconds to call it tiny.
    """
    s = replace(LATE, workers=2, step_s=4.4e-3, ready_s=2.2e-3, wait=0.5, batch_cpu_s=6e-4, fetch_s=8e-4, duty=0.3)
    s = replace(s, collate=0.6, own_collate=False, model={"parameters": 42})
    tiny = judge_loop(s)
    assert tiny.cause == "tiny-model" and [action.do[:13] for action in tiny.actions] == ["whole tensors"]
    assert judge_loop(replace(s, model={"parameters": 25_000_000})).cause == "hand-over"
    assert judge_loop(replace(s, batch_cpu_s=4e-3, fetch_s=5e-3, samples=8.0, collate=0.1)).cause == "hand-over"
    waits = replace(s, workers=1, ready_s=1.5e-3, blocked=0.95, cpu=0.05, batch_blocked_s=4e-3, fetch_s=4e-3, duty=1.0)
    assert judge_loop(waits).cause == "worker-blocked", "the tensors are not in memory"
    for other in (
        replace(s, batch_cpu_s=4.6e-3, samples=512.0),  # the cores are not free
        replace(s, step_s=0.044, ready_s=0.022),
        replace(s, fetches=0, batch_cpu_s=0.0),  # nothing is known of them
    ):
        assert judge_loop(other).cause != "tiny-model"
    alone = replace(s, workers=0, step_s=3.3e-3, ready_s=None, wait=0.25, batch_cpu_s=8e-4, samples=32.0)
    assert judge_loop(alone).cause == "tiny-model", "a worker would cost it more"


def test_slow_after_pauses() -> None:
    """Steps of next to nothing, of a loop that waits most of its time, are not judged by those after bursts."""
    s = replace(LATE, workers=2, step_s=4.4e-3, wait=0.69, batch_cpu_s=6e-4, duty=0.3, model={"parameters": 42})
    for ready_s in (4.25e-3, 5e-3):
        cold = judge_loop(replace(s, ready_s=ready_s, ready_steps=20))
        assert (cold.verdict, cold.cause) == ("data-bound", "tiny-model")
        assert cold.ceiling == pytest.approx(1 / 0.31) and "(estimated)" in str(cold)
        assert "20 steps after pauses took" in " ".join(cold.notes)
    waiting = replace(s, ready_s=5e-3, ready_steps=20, blocked=0.9, cpu=0.1)
    unseen = replace(s, ready_s=5e-3, ready_steps=20, fetches=0, batch_cpu_s=0.0)
    assert judge_loop(waiting).cause == judge_loop(unseen).cause == "unsteady"
    edges = judge_loop(replace(s, wait=0.02, ready_s=4.4e-3, ready_steps=9, edge_s=6.6e-3, steps_per_pass=20.0))
    assert edges.signals is not None and edges.signals.ready_steps == 9, "they are what is known"


def test_torchs_own_collate() -> None:
    """Nothing to vectorise; it may be given less to do."""
    mine = judge_loop(replace(FIRES["slow-collate"], own_collate=False))
    assert mine.cause == "slow-collate" and mine.actions[0].gain is None
    assert mine.actions[0].do.startswith("give torch's collate less")


def test_the_model_of_a_step() -> None:
    step = Step(LATE)
    assert step.step_seconds(1) == pytest.approx(0.03)
    assert step.step_seconds(2) == pytest.approx(0.02), "the loop's own"
    assert step.step_seconds(0) == pytest.approx(0.05), "one after the other"
    assert step.best_workers(range(1, 9)) == 2
    taken = Step(replace(LATE, others=1.0, loop_cores=0.0))
    assert taken.step_seconds(1) == pytest.approx(0.03)
    assert taken.step_seconds(4, cpu_s=0.04) == pytest.approx(0.025), "four of five threads are ours"
    assert taken.step_seconds(4, cpu_s=0.04, alone=True) == pytest.approx(0.02)


def test_others_are_counted_by_how_our_threads_queue() -> None:
    """Recorded beside a load of 1.6 cores that had 4.5 threads to run: one worker got 0.36 of a core, two 0.62."""
    s = Signals(step_s=0.151, ready_s=0.0165, wait=0.9, cpu=0.36, queued=0.63, duty=1.0, others=1.6, loop_cores=0.0)
    step = Step(replace(s, batch_cpu_s=0.054))
    assert step.step_seconds(1) == pytest.approx(0.151, rel=0.05)
    assert step.step_seconds(2) == pytest.approx(0.093, rel=0.1)
    assert step.step_seconds(1, alone=True) == pytest.approx(0.054)
    alone = Step(replace(s, workers=8, cpu=0.25, queued=0.75, others=0.0, batch_cpu_s=0.054))
    assert alone.step_seconds(8) == pytest.approx(alone.step_seconds(8, alone=True)), "our own workers are not others"


def test_others_are_counted_by_how_the_loop_itself_queues() -> None:
    """Without workers: recorded beside many programs, where one worker gained 1.5, not 4."""
    s = Signals(step_s=0.28, wait=0.77, workers=0, cpu=0.18, queued=0.82, others=1.8, batch_cpu_s=0.0445)
    assert Step(replace(s, loop_cores=0.2)).gain(Step(s).step_seconds(1)) == pytest.approx(1.2, rel=0.2)


def test_the_runner_up_is_named() -> None:
    both = replace(FIRES["giant-images"], collate=0.4, batch_cpu_s=0.09, fetch_s=0.09, step_s=0.045)
    verdict = judge_loop(both)
    assert (verdict.cause, verdict.runner_up) == ("giant-images", "slow-collate")


# -- ranks -------------------------------------------------------------------------------------------------------------


def test_a_straggler_is_named() -> None:
    ranks = [replace(LATE, rank=0, wait=0.02), replace(LATE, rank=1, wait=0.5), replace(LATE, rank=2, wait=0.03)]
    verdict = judge_ranks(ranks)
    assert (verdict.verdict, verdict.cause) == ("data-bound", "straggler-rank")
    assert all(action.gain is None for action in verdict.actions)
    assert "rank 1" in verdict.why and "too-few-workers" in verdict.why
    assert "worst   rank 1 50 %, rank 2 3 %, rank 0 2 %" in str(verdict)
    assert judge_ranks([replace(LATE, rank=r) for r in range(3)]).cause == "too-few-workers"


def test_a_rank_with_more_work_is_named() -> None:
    ranks = [Signals(rank=0, loop_cores=0.4), Signals(rank=1, loop_cores=0.9)]
    verdict = judge_ranks(ranks)
    assert (verdict.verdict, verdict.cause) == ("not-data", "straggler-rank")
    assert "rank 1 computes on 0.9 cores, the others on 0.4" in verdict.why
    assert judge_ranks([replace(s, loop_cores=0.8) for s in ranks]).cause == "step-bound"
    assert judge_ranks([replace(s, gpu=True) for s in ranks]).cause == "gpu-bound", "waiting may look like work there"
    assert judge_ranks([replace(s, host=False) for s in ranks]).cause == "step-bound", "unknown is not uneven"


def test_a_validation_without_backward() -> None:
    """Beside a training loop; a short one is no matter."""
    validated = run(rows=[row(1, 20)] * 60, steps=68, frames=4, without_backward=4)
    for steps, is_so in ((68, True), (5000, False)):
        both = run(rows=[row(1, 20)] * 100, steps=steps, frames=7, without_backward=0)
        both.about["loops"] += validated.about["loops"]
        s = measure_run(both)
        assert s is not None and s.without_backward == is_so


def test_programs_one_after_the_other_are_no_ranks() -> None:
    trained, evaluated = run(rows=[row(1, 20)] * 100), run(rows=[row(15, 20)] * 30, steps=30)
    verdict = judge(Report([trained, evaluated], 2))
    assert verdict.cause == "step-bound" and not verdict.ranks
    for rank, one in enumerate((trained, evaluated)):
        one.about.update(rank=rank, world=2)
    assert judge(Report([trained, evaluated], 2)).cause == "straggler-rank"


# -- a whole report ----------------------------------------------------------------------------------------------------


def run(*, rows: list[list[Any]], boards: int = 1, **loop: Any) -> Run:
    machine = {"busy_s": 10.0, "idle_s": 30.0, "disk_s": 0.0, "stolen_s": 0.0, "network_bytes": 0, "throttled": 0}
    start = {"machine": machine, "now_ns": 0, "cpu_ns": 0, "queued_ns": 0, "agent_s": 0.0, "steps": 8}
    after = {**machine, "busy_s": 12.0}
    end = {**start, "machine": after, "now_ns": 4_000_000_000, "cpu_ns": 400_000_000, "steps": 208}
    look = dict.fromkeys(("steps", "ns", "waited_ns", "after_ns", "copied_ns", "copied_gpu_ns"), 0)
    look |= dict.fromkeys(("pageable", "copies", "autocast"), 0)
    about = {
        "pid": 7,
        "rank": 0,
        "world": 1,
        "cores": 2,
        "torch_threads": 2,
        "start": start,
        "end": end,
        "resident": [],
        "failure": "",
        "look": look,
        "lines": {"waits": [], "copies": []},
        "compiled": False,
        "graphs": {},
        "model": {},
        "loops": [
            {
                "loader": "DataLoader",
                "data": "Photos",
                "workers": 1,
                "batch_size": 8,
                "pin_memory": False,
                "prefetch": 2,
                "persistent": False,
                "iterable": False,
                "own_collate": True,
                "steps": 208,
                "rows": rows,
                "held_ns": 0,
                "first_ns": [50_000_000],
                "passes": 1,
                "gpu": "",
                "gpu_unknown": "",
                "off_thread": 0,
                "shapes": 1,
                "batch_bytes": 8,
                "memory": {},
                "replayed_ns": [],
                "frames": 0,
                "without_backward": 0,
                **loop,
            }
        ],
    }
    board = dict.fromkeys(FIELDS, 0.0) | {
        "fetches": 200.0,
        "samples": 1600.0,
        "wall_ns": 4e9,
        "cpu_ns": 0.375e9,
        "process_cpu_ns": 3e9,
        "looked_threads_ns": 0.475e9,
        "looked_wall_ns": 0.5e9,
        "queued_ns": 0.05e9,
        "read_bytes": 1.6e8,
        "longest_ns": 4e7,
        "ended_ns": 4e9,
    }
    return Run(about, [board] * boards)


MS = 1_000_000


def row(
    wait: float, step: float, *, burst: bool = False, idle: Any = None, gpu: Any = None, dry: Any = None
) -> list[Any]:
    return [int(wait * MS), int(step * MS), 1, 0, burst, idle and int(idle * MS), gpu and int(gpu * MS), dry]


def test_signals_of_a_report() -> None:
    s = measure_run(run(rows=[row(6, 20)] * 100 + [row(0, 900)] + [row(0, 14, burst=True)] * 10))
    assert s is not None
    assert s.step_s == pytest.approx(0.020), "a pause is no step"
    assert s.wait == pytest.approx(0.3)
    assert (s.long_waits, s.long_wait) == (0, 0), "nor does it wait for data"
    assert s.fed_s == pytest.approx(0.014) and s.ready_steps == 9
    counted = measure_run(run(rows=[row(6, 20)] * 30 + [row(6, 20)[:2]] * 70))
    assert counted is not None and counted.wait == s.wait and counted.empty == 0.0, "steps that were only counted"
    paused = measure_run(run(rows=[row(6, 20)] * 100 + ([row(0, 14, burst=True)] * 3 + [row(0, 900, burst=True)]) * 5))
    assert paused is not None and paused.ready_s == pytest.approx(0.014), "nor is one with data ready"
    late = measure_run(run(rows=[row(6, 20)] * 100 + [row(5, 19, burst=True)] * 10))
    assert late is not None and late.ready_s is None, "no batch was ready after all"
    assert s.idle is None and s.stall == pytest.approx(0.3)
    assert (s.cpu, s.queued, s.blocked) == pytest.approx((0.75, 0.1, 0.15))
    assert s.extra == pytest.approx(0.2)
    assert s.batch_cpu_s == pytest.approx(0.015) and s.read_bytes == pytest.approx(1e5)
    assert s.loop_cores == pytest.approx(0.1)
    assert s.others == 0.0, "2 core-seconds in 4 s, and the workers used more"


def test_decoding_is_a_part_of_computing() -> None:
    """Both by the worker's CPU time: queueing for a core is in neither, and parts add up."""
    queued = run(rows=[row(6, 20)] * 50)
    queued.boards[0].update(cpu_ns=0.055e9, queued_ns=0.445e9, process_cpu_ns=0.44e9, decode_ns=0.22e9, decoded=800.0)
    s = measure_run(queued)
    assert s is not None and s.decode == pytest.approx(0.5), "0.22 of 0.44 s"
    said = " ".join(str(judge_loop(s)).split())
    assert "of a fetch workers compute 11 % (50 % of that decodes), wait 0 %" in said
    assert "wait 0 %, queue for a core 89 %" in said, "and that is all"
    assert tips(s)["a faster decoder"][1].startswith("decoding is 50% of what the workers compute")
    queued.boards[0].update(collate_ns=2e9)
    collated = measure_run(queued)
    assert collated is not None and "queue for a core 89 %; collate_fn takes 50 % of the fetch" in " ".join(
        str(judge_loop(collated)).split()
    )


def test_pictures_are_timed_by_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread that decodes waits for a core is no decoding."""
    monkeypatch.setattr(pictures, "counts", dict.fromkeys(pictures.counts, 0))
    monkeypatch.setattr(pictures, "thread_time_ns", iter((5, 12)).__next__)
    assert pictures._time_call(len)("ab") == 2
    assert (pictures.counts["decode_ns"], pictures.counts["decoded"]) == (7, 1)


def test_signals_by_the_gpus_clock() -> None:
    """An asynchronous loop: the host's steps are lumpy and it waits 19 of 23 ms, the GPU is never idle."""
    lumpy = [row(19, 1 + 44 * (i % 2), idle=0.03, gpu=25, dry=False) for i in range(100)]
    s = measure_run(run(rows=lumpy, gpu="cuda"))
    assert s is not None
    assert s.step_s == pytest.approx(0.025) and s.idle == pytest.approx(0.0012, rel=0.01)
    assert judge_loop(s).cause == "gpu-bound"
    strayed = measure_run(run(rows=lumpy, gpu="cuda", gpu_unknown="the program uses further streams"))
    assert strayed is not None and strayed.idle is None and strayed.stall is None


@pytest.mark.parametrize(
    ("report", "verdict", "name"),
    [
        (Report([], 0), "unknown", "not-hooked"),
        (Report([], 3), "unknown", "no-loader"),
        (Report([run(rows=[row(1, 2)] * 5)], 1), "unknown", "too-short"),
        (Report([run(rows=[row(1, 2)] * 5)], 1, errors=["leave: TypeError()"]), "unknown", "probe-failed"),
        (Report([run(rows=[row(9, 20)] * 50)], 1, exit_code=-2), "data-bound", "too-few-workers"),
        (Report([run(rows=[row(9, 20)] * 50)], 1, exit_code=7), "errors", "script-failed"),
        (Report([], 1, exit_code=137), "errors", "out-of-memory"),
    ],
)
def test_reports(report: Report, verdict: str, name: str) -> None:
    got = judge(report)
    assert (got.verdict, got.cause) == (verdict, name)
    assert name in str(got)


def test_too_short_says_what_counted() -> None:
    got = judge(Report([run(rows=[row(1, 2)] * 5), run(rows=[row(1, 2)] * 12)], 1))
    assert got.why == "12 of 208 steps count, without the first of each pass; it takes 20"


def test_memory_that_ran_out_says_what_fits() -> None:
    memory = {"total": 80_000_000_000, "free": 0, "held": 16_000_000_000, "most": 48_000_000_000}
    full = run(rows=[row(1, 20)] * 50, memory=memory, batch_size=64)
    full.about["failure"] = "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    got = judge(Report([full], 1, exit_code=1))
    assert got.cause == "out-of-memory"
    assert got.actions[0].do.startswith("batch_size=120 "), "(0.95 × 80 - 16) ÷ (32 ÷ 64)"


def test_another_program_on_the_gpu() -> None:
    fed = run(rows=[row(0, 20, idle=0, gpu=20, dry=False)] * 50, gpu="cuda")

    def seen(*pids: int) -> dict[str, Any]:
        return {"processes": [{"pid": pid} for pid in pids]}

    def verdict(*gpus: dict[str, Any]) -> str:
        return judge(Report([fed], 1, frozenset({7, 8}), gpus=list(gpus))).cause

    assert verdict(seen(7, 99), seen(7, 99), seen(7, 8)) == "gpu-shared"
    assert verdict(seen(7, 8), seen(99)) == "gpu-bound", "theirs is another GPU"
    assert verdict() == "gpu-bound"


# -- tips --------------------------------------------------------------------------------------------------------------


def tips(s: Signals) -> dict[str, tuple[str, str]]:
    return {tip: (result, why) for tip, result, why in advice.judge_tips(s)}


def test_tips_are_tested() -> None:
    late = tips(LATE)
    assert late["num_workers"] == ("yes", "expected ms a step 0: 50.0, 1: 30.0, 2: 20.0, 4: 20.0, 8: 20.0")
    assert late["prefetch_factor"][0] == "no", "the worker never rests"
    assert late["persistent_workers"] == ("unknown", "one epoch was seen")
    assert late["pin_memory"] == ("no", "no GPU")
    assert tips(replace(LATE, duty=0.5))["prefetch_factor"][0] == "try"
    assert tips(FIRES["epoch-boundary"])["persistent_workers"][0] == "yes"
    assert tips(replace(LATE, workers=8, ready_s=0.029))["num_workers"][1].startswith("1 would do; more is not better")
    assert tips(replace(LATE, decode=0.6))["a faster decoder"] == (
        "yes",
        "decoding is 60% of what the workers compute; one twice as fast gives 1.43x",
    )
    assert tips(replace(LATE, workers=2, decode=0.6))["a faster decoder"][0] == "yes"


def test_the_tip_on_workers_says_nothing_that_its_own_numbers_contradict() -> None:
    """Recorded: of 0, 1, 2, 4 and the eight that there are, the eight are expected to be best, and none before four."""
    result, why = tips(EPOCHS)["num_workers"]
    expected = {int(n): float(ms) for n, ms in (pair.split(": ") for pair in why.partition("step ")[2].split(", "))}
    assert min(expected, key=lambda n: expected[n]) == 8 and expected[0] < expected[4], why
    assert result == "no" and why.startswith("expected ms a step"), "no other number would do"
    many = tips(replace(EPOCHS, workers=12))["num_workers"]
    assert many[0] == "no" and ", 12: " in many[1] and "would do" not in many[1], "the present number is among them"
    slow = tips(replace(LATE, workers=8, ready_s=0.029, step_s=0.031))["num_workers"]
    assert slow[0] == "no" and slow[1].startswith("1 would do"), "less than it took, but so is the present number"
    three = replace(LATE, workers=6, cores=6, batch_cpu_s=0.054, cpu=1.0, ready_s=0.02, step_s=0.0201, wait=0.01)
    assert tips(three)["num_workers"][1].startswith("3 would do") and " 3: 20.0" in tips(three)["num_workers"][1]


def test_tips_for_the_gpu() -> None:
    model = {"convolutions": 20, "channels_last": False, "half": False, "cudnn_benchmark": True}
    memory = {"total": 80_000_000_000, "free": 0, "held": 16_000_000_000, "most": 48_000_000_000}
    fed = tips(replace(FED, model=model, memory=memory, batch_size=64, shapes=3))
    assert fed["cudnn.benchmark"] == ("no", "it is on")
    assert fed["channels_last"][0] == "try" and fed["AMP"][0] == "try"
    assert fed["a larger batch"] == ("no", "about 120 fit, 64 are used; the GPU has work anyway")
    off = {**model, "cudnn_benchmark": False}
    assert tips(replace(FED, model=off, shapes=3))["cudnn.benchmark"] == ("no", "3 shapes of batches")
    assert tips(replace(FED, model=off))["cudnn.benchmark"][0] == "try"
    assert tips(replace(GPU, model=off))["AMP"][0] == "no", "a faster step would only wait longer"


# -- text and JSON -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIRES)
def test_one_screen(name: str) -> None:
    verdict = cause(name, FIRES[name], fires=True)
    lines = str(verdict).split("\n")
    assert len(lines) <= 20 and all(len(line) <= 80 for line in lines), str(verdict)
    assert lines[0].startswith("feedwater doctor  ")
    assert lines[1].startswith(f"cause   {name}: ")
    got = json.loads(json.dumps(verdict.to_dict()))
    assert {"verdict", "cause", "idle", "wait", "ceiling", "evidence", "actions"} <= set(got)
    assert got["verdict"] in ("healthy", "data-bound", "not-data", "errors", "unknown")


def test_the_screen_says_it_in_this_order() -> None:
    assert str(judge_loop(LATE)).split("\n")[:6] == [
        "feedwater doctor  DATA-BOUND  stall 35 %, 1.50x faster with data always ready",
        "cause   too-few-workers: workers compute all the time, and cores are free",
        "        of a fetch workers compute 99 %, wait 0 %, queue for a core 0 %",
        "do      1. num_workers=2   1.50x",
        "        2. feedwater nodes (data made elsewhere), at least   1.50x",
        "step    30.0 ms, 20.0 ms with data ready (seen in 9 steps)",
    ]


@pytest.mark.parametrize("s", [EPOCHS, LATE, GPU, replace(GPU, edge_s=0.02), FED, Signals(), FIRES["idle-unknown"]])
def test_one_name_for_one_quantity(s: Signals) -> None:
    """A share on the screen is what the JSON has under that name."""
    verdict = judge_loop(s)
    lines = str(verdict).split("\n")
    first, step = lines[0], " ".join(" ".join(lines).partition("step    ")[2].partition("batch")[0].split())
    got, told = verdict.to_dict(), dict(re.findall(r"\b(stall|idle|wait) (unknown|\d+ %)", f"{first} {step}"))
    assert told == {name: screen.format_percent(got[name]) for name in told}, str(verdict)
    wanted = {"stall"} if got["stall"] is not None else {"idle"}
    wanted |= {"wait"} if s.gpu or s.edge_s else set()
    assert set(told) >= (wanted | {"idle"} if s.gpu else wanted), "what the stall is made of"


def test_unknown_is_not_zero() -> None:
    verdict = judge_loop(FIRES["idle-unknown"])
    assert "UNKNOWN  idle unknown" in str(verdict)
    assert verdict.to_dict()["idle"] is None and verdict.to_dict()["ceiling"] is None
    assert screen.format_percent(None) == "unknown"
    empty = judge(Report([], 0))
    assert "HEALTHY" not in str(empty) and empty.exit_code == 1


# -- other programs ----------------------------------------------------------------------------------------------------

BUSY = replace(
    LATE, step_s=0.112, ready_s=0.0536, ready_steps=9, wait=0.06, workers=2, others=1.3, loop_queued=0.4, queued=0.3,
    cpu=0.7, duty=0.6, batch_cpu_s=0.05, decode=0.8, loop_cores=0.6,
)  # fmt: skip
"""Made up: beside a program that takes two thirds of the cores, but less while the loop is held."""


def test_a_loop_that_hardly_waits_beside_other_programs_has_one_story() -> None:
    verdict = judge_loop(BUSY)
    assert (verdict.verdict, verdict.cause) == ("not-data", "host-contended")
    said = " ".join(str(verdict).split())
    assert "53.6 ms with data ready" not in said and "105.3 ms with data ready (estimated)" in said
    assert "9 steps after pauses took 53.6 ms, and are not used: other programs take 1.3 of 2 cores" in said
    assert verdict.ceiling == pytest.approx(1 / 0.94)
    known = {tip: result for tip, result, _ in verdict.advice}
    assert known["a faster decoder"] != "yes" and known["num_workers"] != "yes"
    alone = judge_loop(replace(BUSY, others=0.0))
    assert "53.6 ms" in str(alone) and not any("not used" in note for note in alone.notes)


def test_tips_about_data_are_unknown_beside_other_programs() -> None:
    s = replace(BUSY, wait=0.095, decode=1.0, batch_cpu_s=0.12, cpu=1.0, queued=0.0, workers=1)
    results = {
        others: {tip: result for tip, result, _ in judge_loop(replace(s, others=others)).advice}
        for others in (0.1, 1.3)
    }
    assert results[0.1]["a faster decoder"] == "yes"
    assert results[1.3]["a faster decoder"] == "unknown"


def test_what_load_may_falsify_is_promised_as_a_range() -> None:
    s = replace(LATE, step_s=0.1, wait=0.3, ready_s=0.04, ready_steps=9, others=0.9, loop_cores=0.4)
    verdict = judge_loop(s)
    assert verdict.verdict == "data-bound"
    assert "1.43x to 2.50x with data always ready" in screen.first_line(verdict)
    nodes = verdict.actions[-1]
    assert nodes.gain is None and "1.43x to 2.50x" in nodes.do
    assert verdict.to_dict()["least_gain"] == pytest.approx(1 / 0.7)
    alone = judge_loop(replace(s, others=0.0))
    assert "2.50x faster with data always ready" in screen.first_line(alone) and alone.to_dict()["least_gain"] is None


def test_twelve_workers_on_two_cores_are_told_beside_other_programs() -> None:
    """Made up: batches of two, twelve workers that queue for nearly all of a fetch, and another program."""
    many = replace(BUSY, workers=12, batch_size=2, samples=2.0, queued=0.85, cpu=0.15, duty=0.9, others=0.9)
    verdict = judge_loop(many)
    assert verdict.cause == "too-many-workers" and verdict.actions[0].arguments.startswith("num_workers=")
    assert verdict.actions[0].gain is None and "12 workers and the loop queue for 2 cores" in verdict.actions[0].do
    few = judge_loop(replace(many, workers=5, duty=0.2, others=1.5))
    assert few.cause == "host-contended" and few.actions[1].arguments.startswith("num_workers=")
    late = judge_loop(replace(many, wait=0.5))
    assert late.verdict == "data-bound" and any("num_workers=" in action.arguments for action in late.actions)


def test_others_are_those_on_the_cores_of_the_run() -> None:
    """A rank whose cores are not ours takes none of them, one that may use twice as many takes half of what it uses."""
    mine = run(rows=[row(6, 20)] * 100)
    mine.about["end"]["machine"]["busy_s"] = 10.0 + 4 * 10
    alone = measure_run(mine).others
    used = 10 - alone
    assert 0 < used < 4
    for own, other, share in (([1], [1], 1.0), ([1], [2], 0.0), ([1], [1, 2], 0.5), ([1, 2], [2], 1.0), ([1], [], 1.0)):
        mine.about["allowed"] = own
        sibling = run(rows=[row(6, 20)] * 100)
        sibling.about["allowed"] = other
        assert measure_run(mine, [sibling]).others == pytest.approx(alone - share * used), (own, other)


def test_long_waits_are_told() -> None:
    """Steps that are no part of the mean, since they are so long, and were long because of the data."""
    few = run(rows=[row(6, 20)] * 100 + [row(890, 900)] * 2 + [row(10, 900)])
    s = measure_run(few)
    assert s is not None and s.step_s == pytest.approx(0.020)
    assert (s.long_waits, s.long_wait_s, s.long_wait) == pytest.approx((2, 1.78, 1.78 / 4.7))
    note = "2 steps waited 1.8 s for data, 38% of the loop's time, and count as pauses: "
    assert [text for text in judge_loop(s).notes if text.startswith(note)], judge_loop(s).notes
    short = measure_run(run(rows=[row(6, 20)] * 1000 + [row(890, 900)]))
    assert short is not None and not [text for text in judge_loop(short).notes if "count as pauses" in text]
