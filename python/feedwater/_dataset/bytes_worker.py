"""The other side of Bytes: a process that calls read(i) of the program's data set, and answers the agent by a socket.

A question is 9 bytes: what is asked for, and the number of a sample. An answer is a status, a label, a length, and the
bytes. All connections of a process are answered by one thread, so read need not know about threads.
"""

from __future__ import annotations

import contextlib
import operator
import os
import pickle
import socket
import struct
import threading
import time
import traceback
from multiprocessing import connection, parent_process
from typing import Any

__all__ = ["serve_samples"]

QUESTION, ANSWER = struct.Struct("<BQ"), struct.Struct("<Bqq")
COUNT, SIZE, BYTES = range(3)
"""What is asked for."""
ANSWERED, RAISED = range(2)
UNLABELLED = -(1 << 63)
MOST_CHARACTERS = 6000
"""Of what was raised."""
PATIENCE_S = 5.0
"""A process that has a connection leaves others so long to processes that have none."""
TURN_S = 0.5


def serve_samples(listener: socket.socket, life: Any, dataset: bytes, workers: int) -> None:
    """Answers until the program that started it ends, or closes the other end of life."""
    threading.Thread(target=_end_with, args=(life, listener.getsockname()), daemon=True).start()
    _Server(listener, pickle.loads(dataset), workers).serve_forever()  # noqa: S301 (of the program's own process)


def _end_with(life: Any, path: str) -> None:
    parent = parent_process()
    connection.wait([life] if parent is None else [life, parent.sentinel])
    with contextlib.suppress(OSError):  # a program that was killed has left its socket, in a folder made for it
        os.unlink(path)
        os.rmdir(os.path.dirname(path))
    os._exit(0)


class _Server:
    def __init__(self, listener: socket.socket, dataset: Any, workers: int) -> None:
        self._listener, self._dataset, self._workers = listener, dataset, workers
        self._connections: list[socket.socket] = []
        self._waiting_since: float | None = None
        listener.setblocking(False)

    def serve_forever(self) -> None:
        while True:
            if not self._connections:
                connection.wait([self._listener])
                self._accept()
                continue
            for sock in connection.wait(self._connections, TURN_S):
                self._answer(sock)
            self._look_for_more()

    def _look_for_more(self) -> None:
        """Takes a connection that no process without one has taken: some have ended."""
        if not connection.wait([self._listener], 0):
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = time.monotonic()
        elif time.monotonic() - self._waiting_since > PATIENCE_S:
            self._waiting_since = None
            self._accept()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:  # another process was faster
            return
        sock.setblocking(True)
        self._connections.append(sock)

    def _answer(self, sock: Any) -> None:
        try:
            question = sock.recv(QUESTION.size, socket.MSG_WAITALL)
            if len(question) == QUESTION.size:
                head, body = self._reply(*QUESTION.unpack(question))
                sock.sendall(head)
                if body:
                    sock.sendall(body)
                return
        except OSError:  # the agent has gone, or wants it no more
            pass
        self._connections.remove(sock)
        sock.close()

    def _reply(self, what: int, number: int) -> tuple[bytes, bytes | memoryview]:
        try:
            if what == COUNT:
                return ANSWER.pack(ANSWERED, len(self._dataset), self._workers), b""
            data, label = _check_sample(self._dataset.read(number))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            said = f"read({number}) raised {type(error).__name__}: {error} ({where.filename}, line {where.lineno})"
            text = said[:MOST_CHARACTERS].encode(errors="replace")
            return ANSWER.pack(RAISED, 0, len(text)), text
        return ANSWER.pack(ANSWERED, label, len(data)), data if what == BYTES else b""


def _check_sample(sample: Any) -> tuple[memoryview, int]:
    """What read returned."""
    try:
        data, label = sample
    except (TypeError, ValueError):
        raise TypeError(f"it returned {type(sample).__name__}, and should return (bytes, label)") from None
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"it returned {type(data).__name__} for the file's bytes")
    number = UNLABELLED if label is None else operator.index(label)
    return memoryview(data).cast("B"), number
