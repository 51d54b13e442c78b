"""Processes that run the program's Python: started, fed, watched and ended.

They are spawned, never forked, and hear no Ctrl-C. They end with their socket and with the process that started them,
whatever the program's function is at.
"""

from __future__ import annotations

import atexit
import logging
import mmap
import multiprocessing.util
import os
import pickle
import select
import signal
import socket
import struct
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._agent import memory
from .._agent.link import Link
from .._agent.slots import Slots
from .._common.waits import Waited
from ..errors import PythonError
from .worker import Look, Map, Report, run_worker

__all__ = ["Member", "Pool", "ignore_interrupts"]

log = logging.getLogger("feedwater")

DEATHS, DEATHS_WITHIN_S = 3, 60
GRACE_S, TURN_S = 1, 0.1
BOARD_BYTES = 4096
NAME, READER = "feedwater-python-", "feedwater-bytes-"
"""How names of the processes begin: of these, and of those of Bytes."""
GUARD = (
    'Is the script itself guarded by `if __name__ == "__main__":`? Its other lines run again in each process, as with '
    "DataLoader(multiprocessing_context='spawn')"
)


class Member:
    """One process."""

    def __init__(self, place: int, process: Any, sock: socket.socket) -> None:
        self.place, self.process, self.sock = place, process, sock
        self.link = Link(sock)
        self.mapped: set[int] = set()
        """Serials of the files it has."""
        self.ready = False


class _Shared:
    """A file that processes map, open as long as the slots in it live."""

    def __init__(self, serial: int, slots: Slots) -> None:
        self.serial, self.size = serial, slots.count * slots.stride
        self.file = os.dup(slots.file)
        # No __del__: when the interpreter goes, module os has gone before.
        weakref.finalize(self, os.close, self.file)


class Pool:
    """A fixed number of processes. Not for two threads at once, except drop_handles."""

    def __init__(self, function: bytes, look: Look, count: int) -> None:
        self.count, self.of_main = count, is_of_main(function)
        self._function, self._look = function, look
        self._members: list[Member | None] = [None] * count
        self._files: weakref.WeakKeyDictionary[Slots, _Shared] = weakref.WeakKeyDictionary()
        self._serial = 0
        self._deaths: deque[float] = deque(maxlen=DEATHS)
        self._owner = 0
        self._board: tuple[int, mmap.mmap] | None = None

    # -- life ---------------------------------------------------------------------------------------------------------

    def start_workers(self) -> list[Member]:
        """All processes; starts those that are not there. Does not wait for them."""
        if None in self._members:
            self._check_bootstrap()
            if self._board is None:
                file = memory.create_scratch_file("board")
                os.ftruncate(file, BOARD_BYTES)
                self._board = file, mmap.mmap(file, BOARD_BYTES)
                self._owner = os.getpid()
                _pools.add(self)
            for place, member in enumerate(self._members):
                if member is None:
                    self._members[place] = self._spawn_worker(place)
        return [member for member in self._members if member is not None]

    def _check_bootstrap(self) -> None:
        if multiprocessing.current_process().daemon:
            raise PythonError(
                "python= starts processes, and this one is daemonic, which may start none: make it with "
                "multiprocessing.Process(daemon=False), or do without python=, by batch_transform=fn(batch, rng)"
            )
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise PythonError(f"a process for python= came to a Loader of its own while it started. {GUARD}")

    def _spawn_worker(self, place: int) -> Member:
        assert self._board is not None
        struct.pack_into("<q", self._board[1], 8 * place, -1)
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            context = multiprocessing.get_context("spawn")
            process = context.Process(
                target=run_worker,
                args=(theirs, place, os.getpid(), self._function, self._look),
                name=f"{NAME}{place}",
                daemon=True,
            )
            with ignore_interrupts(), leave_main_out(self._function):
                process.start()
        except BaseException:
            mine.close()
            raise
        finally:
            theirs.close()
        member = Member(place, process, mine)
        packet = pickle.dumps(Map(0, BOARD_BYTES, ()))
        try:
            socket.send_fds(mine, [packet], [self._board[0]])
        except OSError:  # it is gone already, which the first look at it will tell
            pass
        return member

    def close(self) -> None:
        """Ends all processes and waits for them: a second for what they want to do at exit, then by force."""
        if self._owner != os.getpid():
            return
        members = [member for member in self._members if member is not None]
        self._members = [None] * self.count
        _pools.discard(self)
        for member in members:
            member.link.shutdown()
        waited = Waited(TURN_S, TURN_S)
        for member in members:
            _await_end(member.process, waited)
            if member.process.exitcode is None:
                member.process.kill()
                member.process.join()
            member.link.close()
            member.process.close()
        self._forget_board()

    def drop_handles(self) -> None:
        """Like close, but takes no lock and waits for nothing; called by finalisers."""
        if self._owner != os.getpid():
            return
        for member in self._members:
            if member is not None:
                member.link.shutdown()
                member.link.close()
        self._members = [None] * self.count
        self._forget_board()

    def _forget_board(self) -> None:
        board, self._board = self._board, None
        if board is not None:
            os.close(board[0])

    # -- work ---------------------------------------------------------------------------------------------------------

    def register_slots(self, slots: Slots) -> int:
        """The number of the slots' file, which stays open as long as they live."""
        shared = self._files.get(slots)
        if shared is None:
            self._serial += 1
            shared = self._files[slots] = _Shared(self._serial, slots)
        return shared.serial

    def send_job(self, member: Member, packet: bytes, sent: list[int], *needs: Slots) -> None:
        """Sends a job, after the files it needs; sent is longer by one exactly when it is on its way."""
        try:
            for slots in needs:
                shared = self._files[slots]
                if shared.serial not in member.mapped:
                    keep = tuple(other.serial for other in self._files.values())
                    told = pickle.dumps(Map(shared.serial, shared.size, keep))
                    socket.send_fds(member.sock, [told], [shared.file])
                    member.mapped.add(shared.serial)
            member.link.send(packet, sent)
        except ConnectionError:  # it ended: wait sees that
            pass

    def wait_reports(self, timeout_s: float, handle: Callable[[Report], None]) -> None:
        """Hands on what processes say; returns when any did, or after timeout_s seconds. A report may come twice.

        Raises PythonError when a process cannot start, or when they end again and again.
        """
        members = self.start_workers()
        poll = select.poll()
        for member in members:
            poll.register(member.sock.fileno(), select.POLLIN)
        poll.poll(0 if any(member.link.inbox for member in members) else timeout_s * 1000)
        for member in members:
            ended = False
            try:
                member.link.drain_socket()
            except ConnectionError:
                ended = True
            inbox = member.link.inbox
            while inbox:
                if inbox[0]:
                    self._handle_message(member, pickle.loads(inbox[0]), handle)  # noqa: S301 (of our own process)
                del inbox[0]
            if ended:
                self._replace_worker(member)

    def _handle_message(self, member: Member, message: Any, handle: Callable[[Report], None]) -> None:
        if isinstance(message, Report):
            handle(message)
            return
        member.ready = True
        if message.error:
            self._reap_worker(member)
            raise PythonError(f"python= cannot be loaded in its process: {message.error}\n\nThere:\n{message.trace}")

    def _replace_worker(self, member: Member) -> None:
        """A process ended by itself: another takes its place. Raises PythonError if that does not help."""
        index = self._at_work_on(member)
        code = self._reap_worker(member)
        how = f"a process for python= ended ({_describe_exit(code)})"
        where = f" at the sample of index {index}" if index >= 0 else ""
        if not member.ready:
            advice = f" {GUARD}" if self.of_main else ""
            raise PythonError(f"{how} while it started; what it printed may say why.{advice}")
        self._deaths.append(time.monotonic())
        if len(self._deaths) == DEATHS and self._deaths[-1] - self._deaths[0] < DEATHS_WITHIN_S:
            self._deaths.clear()
            raise PythonError(f"{how}{where} for the {DEATHS}rd time within a minute", index=index)
        log.warning("%s%s, starting another; no sample is lost", how, where)

    def _reap_worker(self, member: Member) -> int | None:
        """Reaps a process that is done for. Its exit code; None if it had to be killed."""
        self._members[member.place] = None
        _await_end(member.process, Waited(TURN_S, TURN_S))
        code: int | None = member.process.exitcode
        if code is None:
            member.process.kill()
            member.process.join()
        member.link.close()
        return code

    def count_started(self) -> int:
        """Processes that have the function."""
        return sum(member is not None and member.ready for member in self._members)

    def at_work_on(self) -> list[int]:
        """The indices of the samples that processes have in hand."""
        members = [member for member in self._members if member is not None]
        return [index for member in members if (index := self._at_work_on(member)) >= 0]

    def _at_work_on(self, member: Member) -> int:
        return -1 if self._board is None else int(struct.unpack_from("<q", self._board[1], 8 * member.place)[0])


def _await_end(process: Any, waited: Waited) -> None:
    """Waits for a process's end, no longer than what is left of GRACE_S; what waited knows of is over."""
    process.join(0)
    while process.exitcode is None and (left := GRACE_S - waited.end_turn()) > 0:
        process.join(min(left, TURN_S))


@contextmanager
def ignore_interrupts() -> Iterator[None]:
    """What is started inside hears no Ctrl-C; one that comes meanwhile is heard here afterwards."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start would end the blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_of_main(function: bytes) -> bool:
    """Whether a pickled function needs the program's script, which its processes run again then."""
    return b"__main__" in function


@contextmanager
def leave_main_out(function: bytes) -> Iterator[None]:
    """Processes that are started inside do not run the program's script again, where the pickled function is not of it.

    That is most of what their start takes: scripts import frameworks that the function has no use for. multiprocessing
    asks get_preparation_data by the process's name, so that it says what it always does for others' processes.
    """
    from multiprocessing import spawn

    if is_of_main(function):
        yield
        return
    before = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        told: dict[str, Any] = before(name)
        if name.startswith((NAME, READER)):
            told = {key: value for key, value in told.items() if not key.startswith("init_main_from")}
        return told

    spawn.get_preparation_data = get_preparation_data
    try:
        yield
    finally:
        spawn.get_preparation_data = before


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "it closed its socket"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # signals of real time have no names but the first and the last
        return f"killed by signal {-code}"


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _at_exit() -> None:
    for pool in list(_pools):
        pool.close()


atexit.register(_at_exit)
"""After multiprocessing's own, so before it, which would wait for ever for a process that does not end."""
