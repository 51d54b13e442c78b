"""The stage table: where the steps of a training loop spend their time."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from ..errors import Error
from .hooks import Hooks
from .timeline import INNER_LOOP, STAGES, TORN, Host, Loop, Timeline

__all__ = ["Row", "Stages", "stages"]

EMPTY = "no whole step was seen yet: iterate a feedwater.Loader or a torch DataLoader inside the with block"


class Row(NamedTuple):
    """One stage, per step."""

    stage: str
    mean_s: float
    p50_s: float
    p99_s: float
    share: float
    """Part of the step, by means."""


def stages(model: Any = None, optimizer: Any = None) -> Stages:
    """Measures where the steps of a training loop spend their time:

        with feedwater.stages(model, optimizer) as s:
            for x, y in loader:
                ...
        print(s)

    Loops over a feedwater.Loader or a torch DataLoader are seen. A step goes from one call of next to the following
    one in the same pass; its stages are data wait, host-to-device (Tensor.to and .cuda), forward (of the model),
    backward, optimizer and other, which is all the rest: the loss, zero_grad, logging. Each moment belongs to the
    innermost stage, so they add up to the step. On a GPU with CUDA events the clock is the GPU's: its data wait is how
    long it stood still for data. Without, it is the host's. No sync is added.

    model and optimizer may each be one or a list of several; give what you call, the compiled or wrapped model. Left
    out, all optimizers count, and the modules with parameters that the first steps call outermost; later ones, and
    those compiled by model.compile(), are in other then. To find them costs torch.compile a recompilation.

    Left out, and counted as such: the first step of each loop (the first four while models are looked for), steps with
    another loop inside (evaluation), and steps that an exception broke off inside a stage. What lies between two passes
    is no step. Of several loops the table shows the one that trains.
    """
    return Stages(_as_list(model), _as_list(optimizer))


def _as_list(given: Any) -> list[Any]:
    return [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]


class Stages:
    """What `with feedwater.stages()` measured. May be looked at inside the block and after it, and entered again."""

    def __init__(self, models: Sequence[Any] = (), optimizers: Sequence[Any] = ()) -> None:
        self._models, self._optimizers = models, optimizers
        self._timeline = Timeline()
        self._hooks: Hooks | None = None
        self._problems: list[str] = []

    def __enter__(self) -> Stages:
        if self._hooks is not None:
            raise Error("these stages are being measured already: use another feedwater.stages() for a nested block")
        self._timeline.resume()
        self._hooks = Hooks(self._timeline, self._models, self._optimizers)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hooks, self._hooks = self._hooks, None
        assert hooks is not None
        hooks.close()
        self._timeline.pause()
        self._problems = [*hooks.problems]
        if not hooks.models:
            self._problems.append("no model was seen: forward is in other. Pass it: feedwater.stages(model)")
        elsewhere = self._timeline.find_elsewhere()
        if elsewhere:
            self._problems.append(f"{elsewhere}: only the loop's own stream is measured")

    # -- numbers ------------------------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """A row per stage, in order, and "step" last. Empty before the first whole step."""
        spent = self._spent_times()
        if not len(spent):
            return []
        table = np.column_stack([spent[:, : len(STAGES)], spent[:, : len(STAGES)].sum(axis=1)])
        figures = np.vstack([table.mean(axis=0), np.percentile(table, [50, 99], axis=0)]).T.tolist()
        step_s = figures[-1][0] or 1.0
        return [Row(name, a, b, c, a / step_s) for name, (a, b, c) in zip((*STAGES, "step"), figures)]

    @property
    def steps(self) -> int:
        """Steps in the table: the latest 10,000 at most."""
        return len(self._main_loop().steps)

    @property
    def clock(self) -> str:
        """Whose clock it is, "host" or "gpu"."""
        return "host" if isinstance(self._timeline.clock, Host) else "gpu"

    @property
    def wait_s(self) -> float:
        """Mean time per step the loop was blocked in next, by the host's clock. A GPU may have been busy meanwhile."""
        spent = self._spent_times()
        return float(spent[:, len(STAGES)].mean()) if len(spent) else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; times in seconds."""
        rows = {row.stage: {k: v for k, v in row._asdict().items() if k != "stage"} for row in self.rows()}
        step = rows.pop("step", None)
        return {
            "clock": self.clock,
            "steps": self.steps,
            "left_out": dict(self._main_loop().left_out),
            "wait_s": self.wait_s,
            "step": step,
            "stages": rows,
            "notes": self._list_notes(),
        }

    def _main_loop(self) -> Loop:
        """The loop of the table: the one with most training steps, else with most steps; the first of equals."""
        self._timeline.read_marks()
        return max(self._timeline.loops, key=lambda loop: (loop.trained, len(loop.steps)), default=Loop())

    def _spent_times(self) -> Any:
        """Steps by stages, and the host's wait."""
        return np.array(self._main_loop().steps, dtype=float).reshape(-1, len(STAGES) + 1)

    # -- text ---------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        rows = self.rows()
        lines = [EMPTY]
        if rows:
            lines = [f"{'stage':16}{'mean ms':>10}{'p50 ms':>10}{'p99 ms':>10}{'share':>9}"]
            lines += [_format_row(row) for row in rows]
            lines.append(self._summary_line())
        return "\n".join([*lines, *self._list_notes()])

    def _summary_line(self) -> str:
        left_out = [f"{number} {why}" for why, number in self._main_loop().left_out.items()]
        clock = "the host's clock" if self.clock == "host" else "the GPU's clock"
        words = f"{self.steps:,} steps by {clock}, blocked in next {self.wait_s * 1e3:.2f} ms a step"
        return f"{words}; left out: {', '.join(left_out)}" if left_out else words

    def _list_notes(self) -> list[str]:
        notes = [*self._problems]
        if self._timeline.failure:
            notes.append(f"measuring ended: {self._timeline.failure}")
        if self._timeline.strayed:
            notes.append("work on further streams counts where the loop's stream waits for it")
        left_out = self._main_loop().left_out
        if left_out[TORN]:
            notes.append("steps broken off inside a stage: an exception that was caught, or next inside a closure")
        if left_out[INNER_LOOP]:
            notes.append("steps with another loop inside: evaluation, or a loop in a loop")
        return notes


def _format_row(row: Row) -> str:
    times = "".join(f"{seconds * 1e3:10.2f}" for seconds in row[1:4])
    return f"{row.stage:16}{times}{row.share:9.1%}"
