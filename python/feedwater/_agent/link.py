"""One Loader's socket to the agent: whole packets out and in (docs/agent.md describes them).

A Ctrl-C may strike between any two steps of Python code, and must neither lose a packet nor send one twice. So each
system call and the note of its result are *one* call into C, list.extend(map(call, …)): either both happen or neither.
"""

from __future__ import annotations

import errno
import json
import logging
import mmap
import os
import socket
import struct
from typing import Any

from .._common.waits import Waited
from ..errors import StallError
from . import memory

__all__ = ["Answer", "Link", "log_notice"]

log = logging.getLogger("feedwater")

PACKET_BYTES = 65536
POLL_S = 1
_TIMEVAL = struct.pack("ll", POLL_S, 0)


class Answer:
    """An answer to a call: ok, and the file that holds the JSON and what follows it."""

    __slots__ = ("blob_bytes", "json_bytes", "ok", "seq")

    def __init__(self, packet: bytes) -> None:
        self.seq, ok, self.json_bytes, self.blob_bytes = struct.unpack_from("<IB3xQQ", packet, 1)
        self.ok = bool(ok)


def log_notice(packet: bytes) -> None:
    """Tells the trainer's log what the agent has to say."""
    notice = json.loads(packet[1:])
    log.log(logging.WARNING if notice.get("level") == "warning" else logging.INFO, "%s", notice["message"])


def _check_closed(error: OSError) -> None:
    """A socket that another thread has closed is at its end like any other: raises ConnectionError for it."""
    if error.errno == errno.EBADF:
        raise ConnectionResetError("the socket was closed") from error


def _encode_request(method: str, params: dict[str, Any]) -> bytes:
    try:
        return json.dumps({"method": method, "params": params}, allow_nan=False).encode()
    except ValueError as error:
        raise ValueError(f"{method}: a number is infinite or none at all ({error}): arguments must be finite") from None


class Link:
    """A connected socket. Not for two threads at once, except close."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEVAL)
        self._sock = sock
        self._recv = sock.recv
        self._send = sock.send
        self._seq = 0
        self.inbox: list[bytes] = []
        """Packets that were received and not yet handled, oldest first; the handler deletes them."""

    def send(self, packet: bytes, sent: list[int]) -> None:
        """Sends one packet; sent is longer by one exactly when it is on its way. Raises ConnectionError at the end."""
        try:
            sent.extend(map(self._send, (packet,)))
        except OSError as error:
            _check_closed(error)
            raise

    def send_lossy(self, packet: bytes) -> None:
        """Sends a packet that may get lost: never waits, and leaves it to others to see that the agent is gone."""
        try:
            self._send(packet, socket.MSG_DONTWAIT)
        except OSError:
            pass

    def receive(self, flags: int = 0) -> bool:
        """Puts the next packet into the inbox. False if none came within POLL_S. Raises ConnectionError at the end."""
        try:
            self.inbox.extend(map(self._recv, (PACKET_BYTES,), (flags,)))
        except BlockingIOError:
            return False
        except OSError as error:
            _check_closed(error)
            raise
        if not self.inbox[-1]:
            raise ConnectionResetError("the agent closed the socket")
        return True

    def drain_socket(self) -> None:
        """Puts all packets that are there into the inbox, without waiting."""
        while self.receive(socket.MSG_DONTWAIT):
            pass

    def call(self, method: str, params: dict[str, Any], *files: int, timeout: float) -> tuple[bool, Any, bytes]:
        """Asks and waits for the answer: ok, the JSON, the bytes after it. Other packets stay in the inbox.

        Raises ConnectionError when the agent ends meanwhile, StallError after timeout seconds, ValueError for numbers
        that JSON has not.
        """
        self._seq += 1
        text = _encode_request(method, params)
        result = memory.create_scratch_file(method)
        try:
            head = b"C" + struct.pack("<I", self._seq)
            if len(head) + len(text) > PACKET_BYTES:  # the agent finds it where its answer will be
                with open(result, "wb", closefd=False) as file:
                    file.write(text)
                text = b""
            self._send_call(head + text, [result, *files])
            answer = self._await_reply(method, timeout)
            with mmap.mmap(result, answer.json_bytes + answer.blob_bytes, prot=mmap.PROT_READ) as told:
                return answer.ok, json.loads(told[: answer.json_bytes]), told[answer.json_bytes :]
        finally:
            os.close(result)

    def exchange_greetings(self, own: dict[str, Any], timeout: float) -> dict[str, Any] | None:
        """Tells what this side is and returns what the agent is; None from one that does not know greetings.

        Raises StallError after timeout seconds.
        """
        packet = b"V" + json.dumps(own).encode()
        self.send(packet, [])
        waited = Waited(POLL_S)
        while True:
            try:
                came = self.receive()
            except ConnectionError:
                if any(packet[:1] == b"N" for packet in self.inbox):  # that it does not know the packet
                    return None
                raise
            for at, packet in enumerate(self.inbox):
                if packet[:1] == b"V":
                    del self.inbox[at]
                    return dict(json.loads(packet[1:]))
            if waited.end_turn() > timeout and not came:
                raise StallError("the agent did not say its version in time")

    def _send_call(self, packet: bytes, files: list[int]) -> None:
        try:
            socket.send_fds(self._sock, [packet], files)
        except OSError as error:
            _check_closed(error)
            raise

    def _await_reply(self, method: str, timeout: float) -> Answer:
        seen, waited = 0, Waited(POLL_S)
        while True:
            while seen < len(self.inbox):
                packet = self.inbox[seen]
                if packet[:1] == b"N":  # a call may take minutes, and fail: it is logged what for
                    log_notice(packet)
                    del self.inbox[seen]
                    continue
                if packet[:1] != b"A":
                    seen += 1
                    continue
                del self.inbox[seen]
                answer = Answer(packet)
                if answer.seq == self._seq:  # else of a call that was interrupted
                    return answer
            came = self.receive()
            if waited.end_turn() > timeout and not came:
                raise StallError(f"the agent did not answer {method!r} in time")

    def shutdown(self) -> None:
        """Ends the connection, and a receive of another thread with it. Never call it in a forked child."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        """Closes this process's copy of the socket."""
        self._sock.close()
