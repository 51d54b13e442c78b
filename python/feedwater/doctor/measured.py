"""A Run → Signals: sums, means and differences of what the probe counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean, median
from typing import Any

from .._agent.index_use import IndexUse
from .kept_pixels import picture_facts
from .report import Run
from .signals import LEAST_ROWS, Signals

__all__ = ["measure_run"]

PAUSE = 20.0
"""A step that many times the median is a pause: a checkpoint, an evaluation."""
LEAST_BURST = 3
LEAST_BLOCKS = 3
"""Of steps with batches replayed."""
LEAST_LOOKS = 10
"""At steps, to know the idle of the GPU or the growth of memory by."""
LATE_NS = 2_000_000
"""A step after a burst that waited longer than this, and than half of the usual wait, had no batch ready after all."""
TOLD = (
    *("loader", "data", "workers", "batch_size", "pin_memory", "prefetch", "persistent", "iterable", "own_collate"),
    *("steps", "shapes", "memory", "off_thread"),
)
LEAST_FRAMES = 3
GROWN = 50
"""Nodes, or list entries, that a graph must have reached to be called growing."""


def measure_run(run: Run, siblings: Sequence[Run] = ()) -> Signals | None:
    """Of a run; None if none of its loops is long enough. Siblings are the other ranks on this machine."""
    loops = [loop for loop in run.about["loops"] if len(loop["rows"]) >= LEAST_ROWS]
    if not loops:
        return None
    loop = max(loops, key=_took_ns)
    return Signals(
        **_loader_facts(run.about, loop),
        **_step_times(loop),
        **_fetch_facts(run, loop),
        **_machine_facts(run, siblings),
        **_look_facts(run.about),
        **_picture_facts(**loop.get("pictures", {})),
    )


def _picture_facts(use: Sequence[int] = (), **known: Any) -> dict[str, Any]:
    return picture_facts(IndexUse(*use), **known)


def _loader_facts(about: dict[str, Any], loop: dict[str, Any]) -> dict[str, Any]:
    told = {name: loop[name] for name in TOLD}
    return told | {"rank": about["rank"], "cores": about["cores"], "torch_threads": about["torch_threads"]}


def _step_times(loop: dict[str, Any]) -> dict[str, Any]:
    gpu, unknown = bool(loop["gpu"]), loop["gpu_unknown"]
    rows = [_Row(*row) for row in loop["rows"]]
    measured = [row for row in rows if row.gpu_ns is not None]
    by_gpu = gpu and not unknown and len(measured) >= LEAST_LOOKS
    rows = measured if by_gpu else rows
    usual = [row for row in rows if not row.burst] or rows
    cut = PAUSE * median(row.period(by_gpu) for row in usual)
    steady = [row for row in usual if row.period(by_gpu) < cut] or usual
    step_ns = mean(row.period(by_gpu) for row in steady)
    late_ns = max(LATE_NS, 0.5 * mean(row.wait_ns for row in usual))
    free = sorted(row.period(by_gpu) for row in rows if row.burst and row.wait_ns <= late_ns)
    free = [period for period in free if period < PAUSE * median(free)]
    free = free[: len(free) - len(free) // 10] if len(free) >= LEAST_BURST else []
    first, passes = loop["first_ns"][1:], loop["passes"]
    per_pass = loop["steps"] / max(1, passes)
    replayed = sorted(loop["replayed_ns"])
    return {
        "step_s": step_ns / 1e9,
        **_long_waits(rows, [row for row in usual if row.period(by_gpu) >= cut]),
        "ready_s": mean(free) / 1e9 if free else None,
        "ready_steps": len(free),
        "replayed_s": mean(replayed[: int(len(replayed) * 0.9)]) / 1e9 if len(replayed) >= LEAST_BLOCKS else None,
        "wait": min(1.0, mean(row.wait_ns for row in steady) / step_ns),
        "gpu": gpu,
        "idle": min(1.0, mean(row.idle_ns or 0 for row in steady) / step_ns) if by_gpu else None,
        "idle_unknown": unknown or ("" if by_gpu or not gpu else "too few events were reached"),
        "dry": mean(bool(row.dry) for row in steady) if by_gpu else None,
        "edge_s": mean(first) / per_pass / 1e9 if first else 0.0,
        "steps_per_pass": per_pass if passes > 1 else 1e9,
        "empty": _share_of(row.ready == 0 for row in steady if row.ready >= 0),
        "held": _share_of(row.held > 0 for row in steady if row.ready >= 0),
    }


def _long_waits(rows: Sequence[_Row], pauses: Sequence[_Row]) -> dict[str, Any]:
    """What pauses waited for data: a checkpoint or an evaluation waits for none."""
    waits = [row.wait_ns for row in pauses if row.wait_ns > row.step_ns / 2]
    return {
        "long_waits": len(waits),
        "long_wait_s": sum(waits) / 1e9,
        "long_wait": sum(waits) / max(1, sum(row.step_ns for row in rows)),
    }


def _share_of(seen: Iterable[bool]) -> float:
    """Of those that are true; 0 of none."""
    return mean([*seen] or [0])


class _Row:
    """As probe.stream.Row was dumped; of steps that were only counted there is no more than wait and step."""

    def __init__(self, wait: int, step: int, *looked: Any) -> None:
        self.wait_ns, self.step_ns = wait, step
        self.ready, self.held, self.burst, self.idle_ns, self.gpu_ns, self.dry = looked or (-1, 0, False, *[None] * 3)

    def period(self, by_gpu: bool) -> float:
        """Of this step. The host's is lumpy where it runs ahead of the GPU."""
        return float(self.gpu_ns if by_gpu else self.step_ns)


def _fetch_facts(run: Run, loop: dict[str, Any]) -> dict[str, Any]:
    seen = run.boards if loop["workers"] else [run.own] if run.own else []
    boards = [board for board in seen if board["fetches"] >= 2]
    if not boards:
        return {"fetches": 0, "batch_cpu_s": 0.0, "duty": 0.0, "cpu": 0.0, "samples": float(loop["batch_size"] or 1)}
    sums = {name: sum(board[name] for board in boards) for name in boards[0]}
    wall, number = sums["wall_ns"] or 1.0, sums["fetches"]
    looked = sums["looked_wall_ns"] or 1.0
    cpu, queued, threads = (sums[name] / looked for name in ("cpu_ns", "queued_ns", "looked_threads_ns"))
    all_cpu = max(cpu * wall, sums["process_cpu_ns"]) if loop["workers"] else cpu * wall
    samples = max(1.0, sums["samples"])
    blocked = max(0.0, 1 - cpu - queued)
    return {
        "fetches": int(number),
        "fetch_s": wall / number / 1e9,
        "cpu": cpu,
        "queued": queued,
        "blocked": blocked,
        "collate": sums["collate_ns"] / wall,
        "decode": min(1.0, sums["decode_ns"] / max(1.0, cpu * wall)) if sums["decoded"] else None,
        "pixels": sums["pixels"] / sums["decoded"] if sums["decoded"] else 0.0,
        "extra": max(0.0, threads - cpu) if loop["workers"] else 0.0,
        "duty": wall / (wall + max(0.0, sums["rest_ns"] - len(boards) * loop["held_ns"])),
        "uneven": max(board["longest_ns"] for board in boards) / (wall / number),
        "batch_cpu_s": all_cpu / number / 1e9,
        "batch_blocked_s": blocked * wall / number / 1e9,
        "samples": max(1.0, samples / number),
        "read_bytes": sums["read_bytes"] / samples,
        "disk": sums["disk_bytes"] / max(1.0, sums["read_bytes"]),
        "broken": sums["broken"] / samples,
    }


def _machine_facts(run: Run, siblings: Sequence[Run]) -> dict[str, Any]:
    about = run.about
    start, end = about["start"], about["end"]
    seconds = max(1e-3, (end["now_ns"] - start["now_ns"]) / 1e9)
    busy = _counter_difference(about, "busy_s") / seconds
    ours = sum(_used_cores(one) * _overlap(one, run) for one in (run, *siblings))
    samples = sum(board["samples"] for board in (*run.boards, *([run.own] if run.own else [])))
    steps = max(1, end["steps"] - start["steps"])
    fetched = samples * steps / max(1, run.steps)
    return {
        "loop_cores": (end["cpu_ns"] - start["cpu_ns"]) / 1e9 / seconds,
        "others": max(0.0, busy - ours),
        "loop_queued": (end["queued_ns"] - start["queued_ns"]) / 1e9 / seconds,
        "network_bytes": _counter_difference(about, "network_bytes") / max(1.0, fetched),
        "throttled": int(_counter_difference(about, "throttled")),
        "grows_bytes": _fit_slope(about["resident"]),
    }


def _counter_difference(about: dict[str, Any], name: str) -> float:
    return float(about["end"]["machine"][name] - about["start"]["machine"][name])


def _overlap(one: Run, run: Run) -> float:
    """Share of the cores that one may use which run may use too."""
    own, others = set(one.about.get("allowed", ())), set(run.about.get("allowed", ()))
    return len(own & others) / len(own) if own and others else 1.0


def _used_cores(run: Run) -> float:
    """Cores that a run used: its process, its workers over their own lives, its agent."""
    start, end = run.about["start"], run.about["end"]
    seconds = max(1e-3, (end["now_ns"] - start["now_ns"]) / 1e9)
    main = (end["cpu_ns"] - start["cpu_ns"]) / 1e9 + end["agent_s"] - start["agent_s"]
    boards = [board for board in run.boards if board["fetches"]]
    if not any(loop["workers"] for loop in run.about["loops"]) or not boards:
        return float(main / seconds)
    lived = max(board["ended_ns"] for board in boards) - min(board["begun_ns"] for board in boards)
    return float(main / seconds) + sum(board["process_cpu_ns"] for board in boards) / max(1.0, lived)


def _fit_slope(points: Sequence[Sequence[float]]) -> float:
    """Least squares over the later two thirds."""
    points = points[len(points) // 3 :]
    if len(points) < LEAST_LOOKS:
        return 0.0
    x, y = mean(p[0] for p in points), mean(p[1] for p in points)
    return sum((p[0] - x) * (p[1] - y) for p in points) / max(1.0, sum((p[0] - x) ** 2 for p in points))


def _look_facts(about: dict[str, Any]) -> dict[str, Any]:
    look, ns = about["look"], max(1, about["look"]["ns"])
    lines = about["lines"]
    pageable = look["pageable"] > look["copies"] / 2
    return {
        "graph": next((name for name, sizes in about["graphs"].items() if _is_growing(sizes)), ""),
        "without_backward": _without_backward(about["loops"]),
        "looked": look["steps"],
        "sync": look["waited_ns"] / ns,
        "after_sync": look["after_ns"] / ns,
        "sync_line": lines["waits"][0][0] if lines["waits"] else "",
        "copy": look["copied_gpu_ns"] / ns if pageable else 0.0,
        "copy_line": lines["copies"][0][0] if lines["copies"] else "",
        "autocast": look["autocast"] > 0,
        "compiled": about["compiled"],
        "model": about["model"],
    }


def _without_backward(loops: Sequence[dict[str, Any]]) -> bool:
    """Of a loop that takes a tenth of the time at least."""
    least_ns = 0.1 * sum(_took_ns(loop) for loop in loops)
    looked = [loop for loop in loops if loop["frames"] >= LEAST_FRAMES and _took_ns(loop) >= least_ns]
    return any(loop["without_backward"] >= loop["frames"] - 1 for loop in looked)


def _took_ns(loop: dict[str, Any]) -> float:
    """All steps of a loop."""
    return float(loop["steps"] * mean([row[1] for row in loop["rows"]] or [0]))


def _is_growing(sizes: Sequence[int]) -> bool:
    return len(sizes) >= 4 and sizes[-1] > max(GROWN, 2 * sizes[1]) and sizes[-1] > sizes[-2] > sizes[-3]
