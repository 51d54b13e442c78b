"""The socket to the agent: packets and the notes of them stay together, whatever strikes."""

from __future__ import annotations

import json
import logging
import os
import socket
import struct
import sys
import threading
from typing import Any

import pytest
from interrupt import Strike

from feedwater import StallError
from feedwater._agent.link import Link


@pytest.fixture
def pair() -> Any:
    """A link, and the agent's end of it."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link = Link(mine)
    yield link, theirs
    link.close()
    theirs.close()


def struck(function: Any) -> Any:
    """Runs function with an interrupt at each of its places in turn; yields after each whether it was struck."""
    nth = 1
    while True:
        strike = Strike(nth)
        try:
            strike.run(function)
        except KeyboardInterrupt:
            yield True
        else:
            yield False
            if strike.places < nth:
                return
        nth += 1


@pytest.mark.skipif(sys.version_info < (3, 11), reason="see interrupt.py")
def test_a_packet_is_noted_exactly_when_it_is_sent(pair: Any) -> None:
    link, theirs = pair
    theirs.setblocking(False)
    sent: list[int] = []
    strikes = arrived = 0
    for hit in struck(lambda: link.send(b"packet", sent)):
        strikes += hit
        try:
            theirs.recv(100)
            arrived += 1
        except BlockingIOError:
            pass
        assert len(sent) == arrived
    assert strikes >= 2
    assert arrived >= 2


@pytest.mark.skipif(sys.version_info < (3, 11), reason="see interrupt.py")
def test_a_packet_is_kept_exactly_when_it_is_taken(pair: Any) -> None:
    link, theirs = pair
    total = strikes = 0
    theirs.send(b"0")
    for hit in struck(link.receive):
        strikes += hit
        if len(link.inbox) > total:
            total += 1
            theirs.send(str(total).encode())
        assert link.inbox == [str(i).encode() for i in range(total)], "none lost, none twice"
    assert strikes >= 2
    assert total >= 2


def test_a_link_closed_by_another_thread_is_at_its_end(pair: Any) -> None:
    link, _ = pair
    link.close()
    with pytest.raises(ConnectionError):
        link.receive()
    with pytest.raises(ConnectionError):
        link.send(b"x", [])


def test_the_end_is_an_error(pair: Any) -> None:
    link, theirs = pair
    theirs.send(b"last")
    theirs.close()
    assert link.receive()
    for _ in range(2):
        with pytest.raises(ConnectionError):
            link.receive()
    with pytest.raises(ConnectionError):
        link.send(b"x", [])
    with pytest.raises(ConnectionError):
        link.call("status", {}, timeout=1)


def answer(
    theirs: socket.socket, *, ok: bool = True, value: Any = None, blob: bytes = b"", seq: int | None = None
) -> Any:
    """Answers one call, as the agent does; returns it."""
    packet, handles, _, _ = socket.recv_fds(theirs, 65536, 4)
    asked = json.loads(packet[5:] or os.pread(handles[0], os.fstat(handles[0]).st_size, 0))
    text = json.dumps(value).encode()
    os.ftruncate(handles[0], len(text) + len(blob))
    os.pwrite(handles[0], text + blob, 0)
    number = struct.unpack_from("<I", packet, 1)[0] if seq is None else seq
    theirs.send(b"A" + struct.pack("<IB3xQQ", number, ok, len(text), len(blob)))
    for handle in handles:
        os.close(handle)
    return asked


def test_a_call_waits_for_its_own_answer_and_keeps_the_rest(pair: Any) -> None:
    link, theirs = pair
    asked: list[Any] = []

    def serve() -> None:
        theirs.send(b"D first")
        theirs.send(b"A" + struct.pack("<IB3xQQ", 0, 1, 0, 0))  # of a call that was interrupted
        asked.append(answer(theirs, value={"n": [1, 2]}, blob=b"pixels"))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    theirs_answer = link.call("replay", {"epoch": 3}, timeout=30)
    thread.join(30)
    assert theirs_answer == (True, {"n": [1, 2]}, b"pixels")
    assert asked == [{"method": "replay", "params": {"epoch": 3}}]
    assert link.inbox == [b"D first"]


def test_notices_are_logged_while_a_call_waits(pair: Any, caplog: pytest.LogCaptureFixture) -> None:
    link, theirs = pair
    told = threading.Event()

    def notice(level: str, message: str) -> None:
        theirs.send(b"N" + json.dumps({"level": level, "message": message}).encode())

    class Waiting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.set()

    def serve() -> None:
        notice("info", "nodes listed")
        notice("warning", "nodes cannot be listed")
        assert told.wait(30), "a call that is not answered yet"
        answer(theirs, ok=False, value={"kind": "stall"})

    logger, handler = logging.getLogger("feedwater"), Waiting(logging.WARNING)
    logger.addHandler(handler)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        with caplog.at_level(logging.INFO, "feedwater"):
            assert not link.call("open", {}, timeout=30)[0]
    finally:
        logger.removeHandler(handler)
    thread.join(30)
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("INFO", "nodes listed"),
        ("WARNING", "nodes cannot be listed"),
    ]
    assert link.inbox == []


@pytest.mark.parametrize("count", [1, 10_000, 300_000])
def test_a_call_may_be_longer_than_a_packet(pair: Any, count: int) -> None:
    link, theirs = pair
    asked: list[Any] = []
    thread = threading.Thread(target=lambda: asked.append(answer(theirs, value="yes", blob=b"pixels")), daemon=True)
    thread.start()
    assert link.call("replay", {"indices": [*range(count)]}, timeout=30) == (True, "yes", b"pixels")
    thread.join(30)
    assert asked == [{"method": "replay", "params": {"indices": [*range(count)]}}]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_has_not_are_refused_before_anything_is_sent(pair: Any, number: float) -> None:
    link, theirs = pair
    theirs.setblocking(False)
    with pytest.raises(ValueError, match=r"open: a number is infinite or none at all .*must be finite"):
        link.call("open", {"plan": {"p": number}}, timeout=30)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)


def test_a_call_that_fails_brings_the_error_object(pair: Any) -> None:
    link, theirs = pair
    thread = threading.Thread(
        target=answer, args=(theirs,), kwargs={"ok": False, "value": {"kind": "bug"}}, daemon=True
    )
    thread.start()
    assert link.call("open", {}, timeout=30) == (False, {"kind": "bug"}, b"")
    thread.join(30)


def test_a_call_that_is_not_answered_ends(pair: Any) -> None:
    link, _ = pair
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StallError, match="did not answer 'open'"):
        link.call("open", {}, timeout=0)
    assert len(os.listdir("/proc/self/fd")) == before
