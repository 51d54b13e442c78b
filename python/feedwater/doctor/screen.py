"""One screen: what it costs, why, what to do, who is worst. Lines end within 80 columns, wrapped, never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .cause_texts import CAUSES
from .causes import Action
from .signals import Signals

if TYPE_CHECKING:
    from .verdict import Verdict

__all__ = ["first_line", "format_screen"]

WIDTH = 80
LABEL = 8
MOST_ACTIONS = 3
MOST_GAIN = 10.0
"""Above, the step does nearly nothing, and a number says nothing."""
NAMES = {"not-data": "NOT THE DATA", "data-bound": "DATA-BOUND"}


def format_screen(v: Verdict) -> str:
    """The whole screen."""
    lines = [first_line(v), *_format_row("cause", f"{v.cause}: {v.why or CAUSES[v.cause]}{_format_runner_up(v)}")]
    s = v.signals
    if s is not None:
        lines += _format_row("", _format_workers(s))
    lines += _format_actions(v.actions)
    if s is not None:
        lines += [
            *_format_row("step", _format_step(s)),
            *_format_row("batch", _format_batch(s)),
            *_format_row("host", _format_host(s)),
        ]
    lines += [*_format_curve(v), *_format_ranks(v), *_format_tips(v)]
    for note in v.notes:
        lines += _format_row("note", note)
    return "\n".join(lines)


def first_line(v: Verdict) -> str:
    """Verdict, what it costs, what is possible at most."""
    name = NAMES.get(v.verdict, v.verdict.upper())
    return f"feedwater doctor  {name}{_format_cost(v)}"


def _format_cost(v: Verdict) -> str:
    s = v.signals
    if s is None:
        return ""
    stall = "  idle unknown" if s.stall is None else f"  stall {format_percent(s.stall)}"
    if v.verdict == "data-bound":
        return f"{stall}, {_format_ceiling(v)}"
    return f"{stall}; the data path is not your problem" if v.verdict == "healthy" else stall


def _format_ceiling(v: Verdict) -> str:
    most = v.ceiling or 1.0
    if most > MOST_GAIN:
        return "the step itself takes next to nothing"
    least = v.signals.least_gain if v.signals is not None else None
    if least is not None and f"{least:.2f}" != f"{most:.2f}":
        return f"{least:.2f}x to {most:.2f}x with data always ready"
    if v.signals is not None and v.signals.estimated:
        return f"{most:.2f}x with data ready (estimated)"
    return f"{most:.2f}x faster with data always ready"


def format_percent(share: float | None) -> str:
    """A share; unknown is not 0."""
    return "unknown" if share is None else f"{100 * share:.0f} %"


def _format_row(label: str, words: str) -> list[str]:
    indent = " " * LABEL
    return textwrap.wrap(words, WIDTH, initial_indent=f"{label:{LABEL}}", subsequent_indent=indent) if words else []


def _format_runner_up(v: Verdict) -> str:
    return f" (or {v.runner_up})" if v.runner_up else ""


def _format_actions(actions: list[Action]) -> Iterator[str]:
    for place, action in enumerate(actions[:MOST_ACTIONS]):
        gain = "" if action.gain is None else f"   {action.gain:.2f}x" if action.gain <= MOST_GAIN else "   > 10x"
        yield from _format_row("" if place else "do", f"{place + 1}. {action.do}{gain}")


def _format_workers(s: Signals) -> str:
    if not s.fetches:
        return ""
    who = "workers" if s.workers else "the loop itself"
    decode = f" ({format_percent(s.decode)} of that decodes)" if s.decode is not None else ""
    collate = f"; collate_fn takes {format_percent(s.collate)} of the fetch" if s.collate >= 0.05 else ""
    return (
        f"of a fetch {who} compute {format_percent(s.cpu)}{decode}, "
        f"wait {format_percent(s.blocked)}, queue for a core {format_percent(s.queued)}{collate}"
    )


def _format_step(s: Signals) -> str:
    words = f"{s.step_s * 1e3:.1f} ms, {s.fed_s * 1e3:.1f} ms with data ready ({_format_source(s)})"
    if s.replayed_s is not None:
        words += f", {s.replayed_s * 1e3:.1f} ms with batches replayed"
    if s.edge_s > 5e-5:
        words += f"; epoch starts {s.edge_s * 1e3:.1f} ms a step"
    if s.gpu:
        words += f"; idle {format_percent(s.idle)}"
    if s.gpu or s.edge_s:
        words += f"; wait {format_percent(s.wait)}"
    return words


def _format_source(s: Signals) -> str:
    """Where fed_s is from."""
    if s.ready_s is None:
        return "estimated"
    if s.fed_s == s.ready_s:
        return f"seen in {s.ready_steps} steps"
    return f"estimated; {s.ready_steps} steps took {s.ready_s * 1e3:.1f} ms"


def _format_batch(s: Signals) -> str:
    if not s.fetches:
        return ""
    read = f", {s.read_bytes / 1e3:,.0f} KB read per sample" if s.read_bytes else ""
    return f"{s.batch_cpu_s * 1e3:.1f} core-ms + {s.batch_blocked_s * 1e3:.1f} ms waiting{read}"


def _format_host(s: Signals) -> str:
    if not s.host:
        return ""
    workers = f"{s.workers} workers busy {format_percent(s.duty)}, " if s.fetches and s.workers else ""
    return f"{workers}loop {s.loop_cores:.1f} cores, others {s.others:.1f} of {s.cores} cores"


def _format_curve(v: Verdict) -> list[str]:
    told = ", ".join(f"{n}: {took * 1e3:.1f}" for n, took in v.curve.items())
    return _format_row("curve", f"num_workers {told} ms a batch, by itself") if told else []


def _format_ranks(v: Verdict) -> list[str]:
    if not v.ranks:
        return []
    shown = sorted(v.ranks.items(), key=lambda item: -(item[1] or 0.0))
    return _format_row("worst", ", ".join(f"rank {rank} {format_percent(stall)}" for rank, stall in shown[:6]))


def _format_tips(v: Verdict) -> list[str]:
    """Tips that would not help, in a line; those that do are among the actions."""
    useless = [tip for tip, result, _ in v.advice if result == "no"]
    return _format_row("not it", ", ".join(useless)) if useless and v.verdict == "data-bound" else []


def format_advice(v: Verdict) -> str:
    """All tips with their results, for --advice."""
    lines = []
    for tip, result, why in v.advice:
        lines += textwrap.wrap(f"{tip:38}{result:9}{why}", WIDTH + 20, subsequent_indent=" " * 47)
    return "\n".join(lines)
