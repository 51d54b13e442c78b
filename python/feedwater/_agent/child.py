"""Starting and ending the agent's process."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from .._common.waits import Waited
from ..errors import AgentError

__all__ = ["Child", "spawn_agent"]

NAME = "feedwater"
FIRST_SAFE_HANDLE = 10
TURN_S = 0.1
_Action = tuple[int, ...]


class Child:
    """A process of ours. Everything goes by its pidfd where there is one, so a foreign reaper cannot mislead us."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None
        self._pidfd = _open_pidfd(pid)

    def wait(self, timeout: float) -> int | None:
        """Waits and reaps. The exit code (negative: a signal), or None if it still runs after timeout seconds."""
        turn_s = TURN_S if self._pidfd is not None else 0.005
        waited = Waited(turn_s, turn_s)
        while self._code is None and not self._try_reap():
            left = timeout - waited.end_turn()
            if left <= 0:
                return None
            if self._pidfd is None:
                time.sleep(min(left, turn_s))
            else:
                _await_end(self._pidfd, min(left, turn_s))
        return self._code

    def kill(self) -> None:
        """Kills it if it is not reaped yet. Does not wait."""
        if self._code is not None:
            return
        try:
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _try_reap(self) -> bool:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # the program reaps all children itself
            if self._pidfd is None or _await_end(self._pidfd, 0):
                self._note_end(0)
                return True
            return False
        if pid:
            self._note_end(os.waitstatus_to_exitcode(status))
        return bool(pid)

    def _note_end(self, code: int) -> None:
        self._code = code
        self.close_handle()

    def close_handle(self) -> None:
        """Closes the handle of the process; in a forked child, where the process is not ours."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


def _open_pidfd(pid: int) -> int | None:
    """A handle of the process; None where the kernel is older than 5.3 or a filter forbids it."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _await_end(pidfd: int, timeout: float) -> bool:
    """Waits for the process's end. Not by select(), which takes no handles from 1024 on."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(timeout * 1000))


def spawn_agent(program: str, control: int, log: int) -> Child:
    """Starts `feedwater agent` in a session of its own, with the handles that docs/agent.md names."""
    mine = _open_pidfd(os.getpid())
    opened = [mine] if mine is not None else []
    try:
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        opened.append(null)
        wanted = [null, null, log, control, *([mine] if mine is not None else [])]
        # Sources below the targets would be overwritten before their turn, so all move up first.
        sources = [fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, FIRST_SAFE_HANDLE) for handle in wanted]
        opened += sources
        actions: list[_Action] = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(sources)]
        environment = {key: value for key, value in os.environ.items() if key != "FEEDWATER_AGENT_PIDFD"}
        if mine is not None:
            environment["FEEDWATER_AGENT_PIDFD"] = "4"
        return _start_program(program, [*actions, *_close_inherited(len(sources))], environment)
    except OSError as error:
        raise AgentError(f"cannot start the agent, {program!r}: {_explain_start_error(error)}") from error
    finally:
        for handle in opened:
            os.close(handle)


def _start_program(program: str, actions: Sequence[_Action], environment: dict[str, str]) -> Child:
    launch = partial(
        os.posix_spawn,
        file_actions=actions,
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP],
    )
    try:
        return _launch_program(launch, program, environment)
    except PermissionError:
        if not _on_noexec(program):
            raise
        copy = _copy_to_memory(program)
        try:
            return _launch_program(launch, f"/proc/self/fd/{copy}", environment)
        finally:
            os.close(copy)


def _launch_program(launch: Callable[..., int], path: str, environment: dict[str, str]) -> Child:
    started: list[int] = []
    try:
        started.extend(map(launch, (path,), ([NAME, "agent"],), (environment,)))  # start and note in one: see _link
        return Child(started[0])
    except BaseException:
        for pid in started:  # a half-started agent is no agent
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        raise


def _close_inherited(kept: int) -> list[_Action]:
    """Closes what other libraries left open for children: an agent must not keep their devices and ports.

    libc takes no number that is not below the limit of open files, as it is now: the agent closes those itself.
    """
    actions: list[_Action] = []
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        most = sys.maxsize
    for name in _open_handles():
        try:
            if kept <= int(name) < most and os.get_inheritable(int(name)):
                actions.append((os.POSIX_SPAWN_CLOSE, int(name)))
        except OSError:  # the listing's own handle
            continue
    return actions


def _open_handles() -> list[str]:
    """Of this process; none where there is no /proc to tell them, and the agent closes what it got."""
    try:
        return os.listdir("/proc/self/fd")
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return []


def _on_noexec(program: str) -> bool:
    return bool(os.statvfs(program).f_flag & os.ST_NOEXEC)


def _copy_to_memory(program: str) -> int:
    """The program as a memory file, for a file system that is mounted noexec."""
    low = os.memfd_create("feedwater", os.MFD_CLOEXEC)
    try:
        with open(low, "wb", closefd=False) as file:
            file.write(Path(program).read_bytes())
        return fcntl.fcntl(low, fcntl.F_DUPFD, FIRST_SAFE_HANDLE)
    finally:
        os.close(low)


def _explain_start_error(error: OSError) -> str:
    text = error.strerror or str(error)
    if error.errno == errno.EACCES:
        return f"{text} (is it executable, and not on a file system mounted noexec?)"
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.EINVAL):
        return f"{text} (no file handles left? raise ulimit -n)"
    if error.errno == errno.ENOMEM:
        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        limit = "" if most == resource.RLIM_INFINITY else f", whose address space ulimit -v limits to {most:,} bytes"
        return f"{text} (no memory is left for another process{limit})"
    if error.errno == errno.ENOEXEC:
        return f"{text} (built for another platform?)"
    return text
