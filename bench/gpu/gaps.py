"""What a trace of torch.profiler says of the GPU: how long it stood still, and how much of that was inside next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

NEXT = "enumerate(DataLoader)#"
"""Begins the name of a span in which the loop was in next: PyTorch's own label, and Feedwater's."""
WORK = {"kernel", "gpu_memcpy", "gpu_memset"}

Spans = list[tuple[float, float]]
"""Apart and in order; seconds."""


class Idle(NamedTuple):
    """Of the whole steps of a trace: from the begin of the first next to that of the last one."""

    steps: int
    step_s: float
    busy_s: float
    """Per step, some kernel, copy or fill at work, on whatever stream."""
    wait_s: float
    """Per step, the loop in next."""
    waiting_idle_s: float
    """Per step, the loop in next and the GPU not at work."""

    @property
    def idle_s(self) -> float:
        """Per step, the GPU not at work, for whatever reason."""
        return self.step_s - self.busy_s


def read(trace: dict[str, Any], device: int = 0) -> Idle:
    """Idle of one GPU, from a trace in Chrome's format, as export_chrome_trace writes it."""
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    waits = merged(_span(event) for event in events if _is_next(event))
    work = merged(
        _span(event) for event in events if event.get("cat") in WORK and event["args"].get("device") == device
    )
    if len(waits) < 2:
        raise ValueError(f"the trace has {len(waits)} spans of {NEXT}…: two steps at least are needed")
    begin, end = waits[0][0], waits[-1][0]
    waits, work = clipped(waits, begin, end), clipped(work, begin, end)
    steps = len(waits)
    parts = (end - begin, total(work), total(waits), total(waits) - total(common(waits, work)))
    return Idle(steps, *(seconds / steps for seconds in parts))


def _is_next(event: dict[str, Any]) -> bool:
    return event.get("cat") == "user_annotation" and event["name"].startswith(NEXT)


def _span(event: dict[str, Any]) -> tuple[float, float]:
    return event["ts"] * 1e-6, (event["ts"] + event.get("dur", 0)) * 1e-6


def merged(spans: Iterable[tuple[float, float]]) -> Spans:
    """The same moments, as spans that do not touch."""
    out: Spans = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((begin, end))
    return out


def clipped(spans: Spans, begin: float, end: float) -> Spans:
    """What of them lies between two moments."""
    return [(max(a, begin), min(b, end)) for a, b in spans if b > begin and a < end]


def common(one: Spans, other: Spans) -> Spans:
    """The moments that are in both."""
    return list(_common(one, other))


def _common(one: Spans, other: Spans) -> Iterator[tuple[float, float]]:
    i = j = 0
    while i < len(one) and j < len(other):
        begin, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if begin < end:
            yield begin, end
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1


def total(spans: Spans) -> float:
    """Seconds."""
    return sum(end - begin for begin, end in spans)
