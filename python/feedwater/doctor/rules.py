"""Signals of all ranks → one verdict. What was counted comes before what is inferred, data before the step itself.

Thresholds are shares of time, or ratios to this machine's cores; what is tiny, and what a giant picture, are times
(causes.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from .._common.constants import BOUND_SHARE, GAIN_SHARE, STRAGGLER_SHARE, UNSTEADY_SHARE
from . import advice, foreign_load
from .causes import TINY_S, Action, Cause, cause_of, find_causes, is_tiny, suggest_nodes
from .copies import note_copies, suggest_copies
from .kept_pixels import suggest_keeping
from .measured import measure_run
from .report import Report, Run
from .signals import LEAST_ROWS, Signals
from .step import Step
from .verdict import Verdict

__all__ = ["judge", "judge_loop", "judge_ranks"]

BROKEN = 0.01
SYNC, AFTER_SYNC = 0.15, 0.05
DRY = 0.8
COPY = 0.10
UNEVEN = 0.3
"""Share of a rank's computing that the others have less."""
ALIKE = 0.98
"""Times closer than this are the same."""
CONTENDED, TAKEN = 0.20, 0.35
"""Share of time in which the loop's thread has no core, and of the cores that others have: its workers queue it too."""
DECODE_ONCE = Action("decode once, and keep the tensors, or what a model makes of them, in memory or a file")
ENDED_BY_USER = (0, -2, 130, -15, 143)
KILLED = (-9, 137)
MEMORY = re.compile(r"out of memory|cannot allocate memory|MemoryError", re.IGNORECASE)


def judge(report: Report) -> Verdict:
    """Of everything that is known of a script."""
    measured = _rank_signals(report)
    if report.exit_code not in ENDED_BY_USER:
        return _judge_failed(report, measured)
    if not measured:
        return _judge_unmeasured(report)
    return judge_ranks(measured, shared=_is_shared(report))


def _rank_signals(report: Report) -> list[Signals]:
    """Of the processes that ran longest: one per rank of the largest job, else one alone."""
    world = max((run.about["world"] for run in report.runs), default=1)
    longest: dict[int, Signals] = {}
    for run in report.runs:
        s = measure_run(run, _find_siblings(report, run)) if run.about["world"] == world else None
        rank = run.about["rank"] if world > 1 else 0
        if s is not None and (rank not in longest or s.steps * s.step_s > longest[rank].steps * longest[rank].step_s):
            longest[rank] = s
    return list(longest.values())


def judge_ranks(ranks: Sequence[Signals], *, shared: bool | None = None) -> Verdict:
    """Of the ranks of one job; the worst one is shown. shared: whether another program uses the GPU, None: unknown."""
    worst = max(ranks, key=lambda s: s.stall or 0.0)
    verdict = judge_loop(worst, shared=shared)
    if len(ranks) < 2:
        return verdict
    stalls = {s.rank: s.stall for s in ranks}
    others = [s.stall or 0.0 for s in ranks if s is not worst]
    fields = {**vars(verdict), "ranks": stalls}
    if (worst.stall or 0.0) - median(others) > STRAGGLER_SHARE:
        under = f"rank {worst.rank} waits for data, the others for it; there: {verdict.cause}"
        untold = [replace(action, gain=None) for action in verdict.actions]  # the job's pace is that of all ranks
        fields |= {"verdict": "data-bound", "cause": "straggler-rank", "why": under, "actions": untold}
    elif verdict.cause in ("step-bound", "host-contended"):
        fields |= _find_uneven(ranks)
    return Verdict(**fields)


def _find_uneven(ranks: Sequence[Signals]) -> dict[str, Any]:
    """Ranks of one job have steps of one length: who computes in less of it waits for the others. Not told on GPUs,
    where those who wait seem to compute.
    """
    if not all(s.host and not s.gpu for s in ranks):
        return {}
    work = {s.rank: s.loop_cores + s.loop_queued for s in ranks}
    slow = max(ranks, key=lambda s: work[s.rank])
    rest = median(work[s.rank] for s in ranks if s is not slow)
    if work[slow.rank] - rest < UNEVEN * work[slow.rank]:
        return {}
    why = f"rank {slow.rank} computes on {work[slow.rank]:.1f} cores, the others on {rest:.1f}: they wait for it"
    do = f"give all ranks the same work: batches of rank {slow.rank} are larger, or its cores slower"
    return {"verdict": "not-data", "cause": "straggler-rank", "why": why, "signals": slow, "actions": [Action(do)]}


def judge_loop(s: Signals, *, shared: bool | None = None) -> Verdict:
    """Of one loop."""
    notes = _list_notes(s)
    tips = advice.judge_tips(s)
    if s.off_thread > s.steps / 2:
        return Verdict("unknown", "off-thread", signals=s, notes=notes)
    if s.broken > BROKEN:
        action = Action(f"take the broken files off the list: {s.broken:.0%} of what is decoded")
        return Verdict("errors", "bad-images", signals=s, actions=[action], advice=tips, notes=notes)
    if s.graph:
        action = Action(f"{s.graph}: keep loss.item() or loss.detach(), not loss")
        return Verdict("not-data", "graph-leak", signals=s, actions=[action], advice=tips, notes=notes)
    s, unused = _without_slow_bursts(s)
    notes += unused
    if _data_bound(s):
        return _judge_late(s, tips, notes)
    s, unused = foreign_load.without_lucky_steps(s)
    notes += unused
    tips = foreign_load.doubt_tips(s, advice.judge_tips(s))
    if s.stall is None and s.wait >= BOUND_SHARE:
        return Verdict("unknown", "idle-unknown", s.idle_unknown, s, [], advice=tips, notes=notes)
    verdict, cause, actions = _judge_own(s, shared)
    if verdict == "healthy" and (s.stall or 0.0) >= UNSTEADY_SHARE:
        return Verdict("unknown", "unsteady", signals=s, advice=tips, notes=notes)
    return Verdict(verdict, cause, signals=s, actions=actions, advice=tips, notes=notes)


# -- data --------------------------------------------------------------------------------------------------------------


def _without_slow_bursts(s: Signals) -> tuple[Signals, list[str]]:
    """A pause makes steps of next to nothing slow: those after bursts do not count where it would be unsteady."""
    if s.ready_s is None or (s.stall or 0.0) < UNSTEADY_SHARE or not is_tiny(s) or _data_bound(s):
        return s, []
    took = f"{s.ready_steps} steps after pauses took {s.ready_s * 1e3:.1f} ms, and are not used"
    return replace(s, ready_s=None, ready_steps=0), [f"{took}: a pause makes steps this short slow"]


def _data_bound(s: Signals) -> bool:
    """Waiting on a busy host is not yet a gain: steps that were seen with data ready are the judge, where there are."""
    if s.stall is None or s.stall < BOUND_SHARE or (s.without_backward and s.stall < 3 * BOUND_SHARE):
        return False
    gain = s.stall if s.ready_s is None else min(s.stall, 1 - s.fed_s / s.period_s)
    return gain >= GAIN_SHARE


def _judge_late(s: Signals, tips: list[tuple[str, str, str]], notes: list[str]) -> Verdict:
    found = find_causes(s)
    cause = cause_of(s, found)
    actions = [one.action for one in sorted(found, key=lambda one: one.name != cause)]
    if cause == "too-many-workers":
        actions += _suggest_fewer(s)
    elif not any(action.arguments.startswith("num_workers") for action in actions):
        actions += foreign_load.suggest_fewer(s)
    actions += suggest_copies(s)
    if cause == "cores-used-up":
        actions += suggest_keeping(s)
    if cause == "few-nodes":
        times = f": {s.period_s / s.fed_s:.1f} times as many, if all are busy" if s.fed_s >= TINY_S else ""
        actions.append(Action(f"more nodes{times}"))  # a step of next to nothing takes what any number of them gives
        actions.append(Action("where they have cores to spare, a faster network to them: feedwater top tells"))
    elif cause == "tiny-model":  # what is left of such a step is as short as what measuring it adds
        actions = [replace(action, gain=None) for action in actions] or [DECODE_ONCE]
    else:
        actions.append(suggest_nodes(s))
    notes = [*notes, *_explain_faster(s)]
    return Verdict("data-bound", cause, "", s, actions, _runner_up(found, cause), advice=tips, notes=notes)


def _explain_faster(s: Signals) -> list[str]:
    """Why more is to gain than the stall."""
    if s.ceiling_s >= ALIKE * s.rest_s:
        return []
    seen_s = s.replayed_s or s.ready_s or s.ceiling_s
    took = f"steps took {seen_s * 1e3:.1f} ms with data ready, without it {s.rest_s * 1e3:.1f} ms beside their wait"
    return [f"{took}: the loop then has the cores that make batches, so more is to gain than the stall"]


def _runner_up(found: list[Cause], cause: str) -> str:
    others = sorted((one for one in found if one.name != cause), key=lambda one: one.step_s)
    return others[0].name if others else ""


def _suggest_fewer(s: Signals) -> list[Action]:
    step = Step(s)
    n = step.best_workers(range(1, s.cores + 1))
    gain = step.gain(step.step_seconds(n))
    if gain < 0.98:
        return []
    told = None if s.iterable else round(gain, 2)  # who splits an IterableDataset may read all of it in each worker
    return [Action(f"num_workers={n}: no slower, {s.workers - n} processes fewer", told, f"num_workers={n}")]


# -- not data ----------------------------------------------------------------------------------------------------------


def _judge_own(s: Signals, shared: bool | None) -> tuple[str, str, list[Action]]:
    if s.without_backward:
        do = "with torch.inference_mode(): a loop builds graphs and never calls backward"
        return "not-data", "missing-no-grad", [Action(do)]
    if s.gpu and s.copy > COPY and not s.pin_memory:
        if s.loader.startswith("feedwater"):
            do = f'device="cuda" has copies run beside the step{_at_line(s.copy_line)}: they take {s.copy:.0%} of it'
            return "not-data", "pin-memory-off", [Action(do)]
        do = f"pin_memory=True and .to(device, non_blocking=True){_at_line(s.copy_line)}"
        do += f": copies run {s.copy:.0%} of the time"
        return "not-data", "pin-memory-off", [Action(do, None, "pin_memory=True")]
    if s.gpu and shared:
        return "not-data", "gpu-shared", [Action("give this job a GPU of its own, or wait for the other's end")]
    dry = s.gpu and (s.dry or 0.0) > DRY
    if (dry or not s.gpu) and s.loop_queued > CONTENDED and s.others > TAKEN * s.cores:
        stop = Action(f"stop or move the other programs: they take {s.others:.1f} of {s.cores} cores")
        fewer = list(foreign_load.suggest_fewer(s))
        if foreign_load.ours_queue(s):
            return "not-data", "too-many-workers", [*fewer, stop]
        return "not-data", "host-contended", [stop, *fewer]
    if dry:
        return _host_bound(s)
    if s.workers > 2 * s.cores:
        return "healthy", "too-many-workers", _suggest_fewer(s)
    return "healthy", "gpu-bound" if s.gpu else "step-bound", []


def _host_bound(s: Signals) -> tuple[str, str, list[Action]]:
    """The GPU had nothing to do when next was called. With waits in the loop that is no wonder, and may cost little."""
    if s.sync <= SYNC:
        do = "torch.compile(mode='reduce-overhead'), CUDA graphs or a larger batch: the GPU waits for the host"
        return "not-data", "launch-bound", [Action(do)]
    if s.after_sync <= AFTER_SYNC:
        return "healthy", "gpu-bound", []
    do = f"call it every 50th step{_at_line(s.sync_line)}: the GPU has no work from there to the next step's"
    return "not-data", "sync-in-loop", [Action(do)]


def _at_line(line: str) -> str:
    return f" at {line.rpartition('/')[2]}" if line else ""


def _list_notes(s: Signals) -> list[str]:
    notes = note_copies(s)
    if s.long_wait >= BOUND_SHARE:
        took = f"{s.long_waits} steps waited {s.long_wait_s:.1f} s for data, {s.long_wait:.0%} of the loop's time"
        notes.append(f"{took}, and count as pauses: look at what held them up, as storage or other programs do")
    if s.crowded:
        notes.append(f"other programs took {s.others:.1f} of {s.cores} cores: gains hold for that load")
    if s.grows_bytes > 1e5 and not s.graph:
        notes.append(f"memory of the process grows by {s.grows_bytes / 1e6:.1f} MB a step")
    if s.throttled > 10:
        notes.append("the container's CPU limit held this job back")
    if s.idle_unknown and s.gpu:
        notes.append(f"idle is unknown: {s.idle_unknown}")
    if s.replayed_s is not None:
        notes.append("batches were replayed: the training RESULT IS VOID")
    return notes


# -- nothing measured --------------------------------------------------------------------------------------------------


def _judge_failed(report: Report, measured: list[Signals]) -> Verdict:
    worst = max(measured, key=lambda s: s.stall or 0.0, default=None)
    said = next((run.about["failure"] for run in report.runs if run.about["failure"]), "")
    code = report.exit_code
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    if MEMORY.search(said) or code in KILLED:
        why = said or "killed, as the kernel does when memory runs out"
        return Verdict("errors", "out-of-memory", why, worst, advice.suggest_fits(worst))
    return Verdict("errors", "script-failed", f"{how}: {said}" if said else how, worst)


def _judge_unmeasured(report: Report) -> Verdict:
    notes = report.errors[:3]
    if not report.hooked:
        why = "it started no Python, or python -I, -E, -S, sudo, containers or a cleared PYTHONPATH keep the doctor out"
        return Verdict("unknown", "not-hooked", why, notes=notes)
    if notes:
        return Verdict("unknown", "probe-failed", notes[0], notes=notes[1:])
    if not any(run.about["loops"] for run in report.runs):
        return Verdict("unknown", "no-loader", "no DataLoader of torch and no feedwater.Loader was iterated")
    longest = max((loop for run in report.runs for loop in run.about["loops"]), key=lambda loop: len(loop["rows"]))
    counted = f"{len(longest['rows'])} of {longest['steps']} steps count"
    why = f"{counted}, without the first of each pass; it takes {LEAST_ROWS}"
    return Verdict("unknown", "too-short", why)


def _find_siblings(report: Report, run: object) -> list[Run]:
    return [other for other in report.runs if other is not run]


def _is_shared(report: Report) -> bool | None:
    """Whether a GPU that a process of ours is on has another program's process most of the time; None: unknown."""
    pids = [{process["pid"] for process in gpu.get("processes") or []} for gpu in report.gpus]
    ours = [seen for seen in pids if seen & report.pids]
    return None if not ours else sum(bool(seen - report.pids) for seen in ours) > len(ours) / 2
