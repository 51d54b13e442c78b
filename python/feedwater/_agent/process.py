"""The agent of this process: one for all its Loaders, started when the first one needs it.

It is another process, in a session of its own, so a Ctrl-C of the terminal is not for it; it ends by itself when this
process does, however that ends. There are no threads here: its death is noticed by whoever waits for it.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import socket
import threading
import time
import weakref
from collections import deque
from typing import Protocol

from ..errors import AgentError
from . import memory
from .child import spawn_agent

__all__ = ["Agent", "User", "agent"]

log = logging.getLogger("feedwater")

DEATHS, DEATHS_WITHIN_S = 3, 60
GRACE_S = 1
TAIL_BYTES = 4000
EXIT_USAGE = 2
"""Of an agent that refuses its environment, see docs/configuration.md."""


class User(Protocol):
    """What holds a connection."""

    def close_in_fork(self) -> None:
        """Closes this process's copies of handles; called in a forked child, must not touch the parent's."""

    def drop_handles(self) -> None:
        """Closes its handles; called when the interpreter exits."""


class _Process:
    """A running agent: its process, its control socket, its log."""

    def __init__(self) -> None:
        from . import binary  # here, because it imports much that only a start needs

        self.owner = os.getpid()
        self.forced = False
        """It did not end by itself: end had to kill it."""
        self.log = memory.create_scratch_file("log")
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.child = spawn_agent(binary.find_program(), theirs.fileno(), self.log)
        except BaseException:
            self.control.close()
            os.close(self.log)
            raise
        finally:
            theirs.close()

    def adopt_socket(self) -> socket.socket:
        """A new socket whose other end the agent has. Raises ConnectionError if the agent is gone."""
        if self.control.fileno() < 0:
            raise ConnectionResetError("its end was begun and interrupted")
        try:
            mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError as error:
            raise AgentError(f"no socket for a Loader: {error.strerror} (raise ulimit -n?)") from error
        try:
            socket.send_fds(self.control, [b"L"], [theirs.fileno()])
        except BaseException:
            mine.close()
            raise
        finally:
            theirs.close()
        return mine

    def end_process(self, grace: float) -> tuple[int | None, str]:
        """Ends it, by force after grace seconds, and reaps it. Its exit code and the end of its log."""
        if os.getpid() != self.owner:
            return None, ""
        try:
            self.control.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.control.close()
        code = self.child.wait(grace)
        if code is None:
            self.forced = True
            self.child.kill()
            code = self.child.wait(10)
        return code, self._last_words()

    def _last_words(self) -> str:
        log, self.log = self.log, -1
        if log < 0:
            return ""
        size = os.fstat(log).st_size
        tail = os.pread(log, TAIL_BYTES, max(0, size - TAIL_BYTES)).decode(errors="replace").strip()
        os.close(log)
        return tail

    def forget_process(self) -> None:
        """Closes the handles of a process that belongs to our parent."""
        self.control.close()
        os.close(self.log)
        self.child.close_handle()


class Agent:
    """Starts, restarts and ends the agent. connect, lost and release may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._exiting = False
        self._deaths: deque[float] = deque(maxlen=DEATHS)
        self._users: weakref.WeakSet[User] = weakref.WeakSet()
        self.serial = 0
        """How many agents there have been; the current one's number."""
        self.memory_was_short = False
        """The last agent died while the kernel killed for want of memory."""
        self._oom_kills = 0

    @property
    def pid(self) -> int | None:
        """The agent's process, while it runs."""
        return self._process.child.pid if self._process else None

    def connect_user(self, user: User) -> tuple[socket.socket, int]:
        """A socket to the agent, which is started if need be, and the agent's serial number."""
        if self._exiting:
            _park_thread()
        with self._lock:
            while True:
                if self._process is None:
                    self._oom_kills = memory.oom_kills()
                    self._process = _Process()
                    self.serial += 1
                try:
                    sock = self._process.adopt_socket()
                except ConnectionError:
                    self._end_process()
                    continue
                self._users.add(user)
                return sock, self.serial

    def note_lost(self, serial: int, *, hung: bool = False) -> None:
        """Tells that the agent of that number is gone. It is reaped on return, so nobody writes to its slots any more.

        Raises AgentError if it was the third within a minute, or refused what the environment says.
        """
        with self._lock:
            if serial == self.serial and self._process is not None:
                self._end_process(grace=0 if hung else GRACE_S)

    def release_user(self, user: User) -> None:
        """The user needs the agent no more. The last one ends it."""
        with self._lock:
            self._users.discard(user)
            if not self._users and self._process is not None:
                process, self._process = self._process, None
                process.end_process(GRACE_S)

    def _end_process(self, grace: float = GRACE_S) -> None:
        assert self._process is not None
        code, tail = self._process.end_process(grace)
        ours = self._process.forced and code == -signal.SIGKILL
        self._process = None
        self._deaths.append(time.monotonic())
        self.memory_was_short = code == -signal.SIGKILL and not ours and memory.oom_kills() > self._oom_kills
        why = "killed by the Loader: it did not end by itself" if ours else _describe_exit(code)
        how = f"the feedwater agent ended ({why})"
        if code == EXIT_USAGE and tail.startswith("feedwater: "):  # Go ends a panic by the same code
            raise AgentError(f"the feedwater agent cannot start: {tail.removeprefix('feedwater: ')}")
        if len(self._deaths) == DEATHS and self._deaths[-1] - self._deaths[0] < DEATHS_WITHIN_S:
            raise AgentError(f"{how} for the {DEATHS}rd time within a minute. Its last words:\n{tail or '(none)'}")
        log.warning("%s, starting another; no batch is lost. %s", how, tail[-300:])

    def _at_exit(self) -> None:
        self._exiting = True
        process, self._process = self._process, None
        try:
            if process is not None:
                process.end_process(GRACE_S)
            for user in list(self._users):
                user.drop_handles()
        except BaseException:  # a second Ctrl-C: the agent sees our end by itself
            if process is not None:
                process.child.kill()

    def _in_forked_child(self) -> None:
        process, self._process = self._process, None
        users, self._users = list(self._users), weakref.WeakSet()
        self._lock = threading.Lock()
        self._deaths.clear()
        if process is not None:
            process.forget_process()
        for user in users:
            user.close_in_fork()


def _park_thread() -> None:
    """The interpreter is exiting: a daemon thread that still iterates has nothing to say any more."""
    if threading.current_thread() is not threading.main_thread():
        threading.Event().wait()
    raise AgentError("the interpreter is exiting")


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "cannot be killed"
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


agent = Agent()
"""The agent of this process."""

atexit.register(agent._at_exit)
os.register_at_fork(after_in_child=agent._in_forked_child)
