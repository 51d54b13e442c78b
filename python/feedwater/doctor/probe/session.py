"""This process's loops, and the report that is written of them every two seconds and at exit."""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any
from weakref import WeakKeyDictionary

from . import looks, proc, settings
from .loop import WARM_STEPS, Handed, Loop

SAVE_NS = 2_000_000_000
RARELY = 1000
"""Times what the last report took to write: at least that long until the next."""
SAVE_AT = (40, 200)
"""Steps of a loop after which a report is written in any case: for scripts that are killed, for the first verdict."""
MEMORY_AT = range(20, 20_000, 20)


class Session:
    """Of one process; a forked child has its own, once it uses a loader."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loops: list[Loop] = []
        self._loop_of: WeakKeyDictionary[Any, Loop] = WeakKeyDictionary()
        self._name = f"run-{self.pid}-{time.time_ns()}.json"
        """A program that execs another begins again under the same pid."""
        self._inside = self._failed = False
        self._saved = self._save_took = 0
        self._start: dict[str, Any] = {}
        self._resident: list[tuple[int, int]] = []
        self._memory = proc.Resident()
        self._cores = sorted(os.sched_getaffinity(0))
        """That this process may use: what other ones do is not about it."""
        self.looks = looks.Looks()
        atexit.register(self.end_session)

    # -- steps --------------------------------------------------------------------------------------------------------

    def loop_of(self, loader: Any, about: Callable[[Any], dict[str, Any]]) -> Loop:
        """Of a loader of the script."""
        loop = self._loop_of.get(loader)
        if loop is None:
            loop = self._loop_of[loader] = self.add_loop(about(loader))
        return loop

    def add_loop(self, about: dict[str, Any]) -> Loop:
        """A loop of its own."""
        self.loops.append(Loop(about))
        return self.loops[-1]

    def advance_loop(self, loop: Loop, iterator: Any, original: Callable[[Any], Any]) -> Any:
        """next of the script's iterator, timed. A loader inside a loader is its own affair."""
        if self._inside or self._failed:
            loop.release_workers()
            return original(iterator)
        began = perf_counter_ns()
        if loop.steps >= loop.look_by or began >= loop.look_at:
            return self._advance_closely(loop, iterator, original)
        self._inside = True
        try:
            batch = original(iterator)
        except BaseException:
            loop.end_pass()
            raise
        finally:
            self._inside = False
        loop.count_step(began, perf_counter_ns())
        return batch

    def _advance_closely(self, loop: Loop, iterator: Any, original: Callable[[Any], Any]) -> Any:
        again = loop.next_replayed()
        if again is not None:
            return again
        self._inside = True
        try:
            if self.looks.open:
                self.looks.note_entry()
            try:
                entered = self._call_quietly(loop.enter_next, iterator)
            except Handed as handed:
                loop.end_pass()
                raise handed.error from handed.error.__cause__
            try:
                batch = original(iterator)
            except BaseException:
                self._call_quietly(loop.end_pass)
                self._call_quietly(self._save_now_and_then)
                raise
            if entered is not None:
                self._call_quietly(loop.leave_next, entered, batch)
                self._call_quietly(self._housekeep, loop, batch)
            return batch
        finally:
            self._inside = False

    def _housekeep(self, loop: Loop, batch: Any) -> None:
        loop.replay.remember_batch(batch)
        if loop.steps == WARM_STEPS and not self._start:
            self._start = self._read_usage()
        self.looks.note_step(loop)
        if loop.has_passed(MEMORY_AT):
            self._resident.append((sum(loop.steps for loop in self.loops), self._memory.nbytes()))
        if loop.has_passed(SAVE_AT):
            self.save_report()
        self._save_now_and_then()
        loop.end_look(perf_counter_ns(), go_on=self.looks.open)

    def _call_quietly(self, call: Callable[..., Any], *args: Any) -> Any:
        """The script must not notice: after a failure nothing is measured any more."""
        if self._failed:
            return None
        try:
            return call(*args)
        except Exception as error:
            self._failed = True
            for loop in self.loops:
                loop.release_workers()
            settings.note_error(f"{call.__qualname__}: {error!r}")
            return None

    # -- the report ---------------------------------------------------------------------------------------------------

    def _read_usage(self) -> dict[str, Any]:
        return {
            "machine": proc.read_machine(self._cores),
            "now_ns": perf_counter_ns(),
            "cpu_ns": time.process_time_ns(),
            "queued_ns": proc.main_queueing_ns(),
            "agent_s": proc.children_s("feedwater") if self._is_ours() else 0.0,
            "steps": sum(loop.steps for loop in self.loops),
        }

    def _is_ours(self) -> bool:
        return any(loop.about["loader"].startswith("feedwater") for loop in self.loops)

    def make_report(self) -> dict[str, Any]:
        """Everything so far."""
        torch = sys.modules.get("torch")
        end = self._read_usage()
        return {
            "pid": self.pid,
            "rank": int(os.environ.get("RANK", 0)),
            "world": int(os.environ.get("WORLD_SIZE", 1)),
            "cores": len(self._cores),
            "allowed": self._cores,
            "torch_threads": torch.get_num_threads() if torch is not None else 0,
            "start": self._start or end,
            "end": end,
            "resident": self._resident[-400:],
            "failure": _describe_failure(),
            "failed": self._failed,
            **self.looks.dump(),
            "loops": [loop.dump() for loop in self.loops],
        }

    def save_report(self) -> None:
        """Writes the report, all of it or nothing."""
        if self.pid != os.getpid() or not settings.FOLDER:
            return
        text = json.dumps(self.make_report())
        path = f"{settings.FOLDER}/{self._name}"  # the folder of now: diagnose() has one while it runs
        with open(path + ".part", "w") as file:
            file.write(text)
        os.replace(path + ".part", path)
        self._saved = perf_counter_ns()

    def _save_now_and_then(self) -> None:
        now = perf_counter_ns()
        if now - self._saved > max(SAVE_NS, RARELY * self._save_took):
            self.save_report()
            self._save_took = perf_counter_ns() - now

    def end_session(self) -> None:
        """The interpreter ends."""
        if self.pid == os.getpid():
            self.looks.close_window()
            try:
                self.save_report()
            except Exception as error:  # the doctor may be gone with its folder
                settings.note_error(f"the last report: {error!r}")


def _describe_failure() -> str:
    """The exception that ends the script, in a line."""
    error = getattr(sys, "last_value", None)
    return "" if error is None else f"{type(error).__name__}: {error}"[:300]


class Holder:
    """This process's session."""

    def __init__(self) -> None:
        self.current: Session | None = None
        """None until it is asked for."""

    def get_session(self) -> Session:
        """Made when it is first asked for, again in a forked child."""
        if self.current is None:
            self.current = Session()
        return self.current

    def forget_session(self) -> None:
        """It was the parent's."""
        self.current = None


sessions = Holder()
os.register_at_fork(after_in_child=sessions.forget_session)
