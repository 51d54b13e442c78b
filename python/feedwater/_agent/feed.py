"""Wants out, batches in: keeps the window full ahead of the cursor.

The cursor, which the Loader owns, is the only truth. Wants are kept by the place of their step; whatever is before the
cursor is over, whatever is not on the way ahead is cancelled, whatever is missing is asked for. So an exception at any
point, a Ctrl-C or the agent's death, is repaired by looking at what is there: the next take_batch does that.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from socket import MSG_DONTWAIT
from typing import Any

from .._common.ranks import Ranks
from .._common.waits import Waited
from .._ctaugment.policy import Weights
from .._order.steps import Step
from ..errors import Error, StallError
from .failure import error_of
from .link import POLL_S, Link, log_notice
from .plan_info import Request
from .session import IN_USE, SLACK_S, Session
from .slots import Slots
from .trace import find_parent_span
from .want import Done, Failed, Want

__all__ = ["Feed", "Upcoming"]

Upcoming = Callable[[int, int], "Step | None"]
"""The step at or after a place (epoch, start) on the way ahead; None if it is not known yet."""

MOST_POLICIES = 512
_DONE = struct.Struct("<xQ8xIIIIIIQII")
_ID = struct.Struct("<xQ")
_RETURNED = struct.Struct("<cQd")


class Feed:
    """The batches of one Loader. Not for two threads at once."""

    def __init__(self, request: Request) -> None:
        self.session = Session(request)
        self.batches = 0
        """Batches received so far."""
        self._wants: dict[tuple[int, int], Want] = {}
        """By place, in the order of need; answered or not."""
        self._out: dict[int, Want] = {}
        """By id: sent on this link and not answered. Their slots are lent."""
        self._link: Link | None = None
        self._told: dict[int, bytes] = {}
        """Policies that the agent knows, by number."""
        self._context = b""
        """What the agent was told that the spans of wants are part of."""
        self.traced = False
        """Whether the agent makes spans of batches, and is told which were returned."""
        self.ranks = Ranks(0, 1)
        self._ident = 0
        self.window = 0
        """Batches the agent would like to have wanted or ready at once."""
        self.waiting: Callable[[float], None] | None = None
        """Told now and then, while take_batch is blocked, for how long it has been."""
        self.stopped: Callable[[float], None] | None = None
        """Told, when take_batch ends, for how long this process was stopped while it was blocked."""
        self._tail: tuple[int, int] | None = None
        """Where the next want goes; None when that must be found out anew."""
        self._waited: Waited | None = None
        """The wait of the running take_batch, once it has one."""
        self._takes = 0

    def forget_wants(self) -> None:
        """Drops everything that was asked for: the same places mean other batches from now on."""
        dropped, self._wants = self._wants, {}
        self._tail = None
        if self._link is not None:
            self._cancel_wants(self._link, list(dropped.values()))

    def close(self) -> None:
        """Ends the session and lets go of all slots; batches handed out keep their mapping."""
        self.session.close()
        self._wants, self._out, self._link = {}, {}, None

    def find_wanted_step(self, key: tuple[int, int]) -> Step | None:
        """The step at key if its batch was asked for: nobody need find it again."""
        want = self._wants.get(key)
        return None if want is None else want.step

    def count_ready(self) -> int:
        """Batches that are there and were not taken."""
        return sum(want.answer is not None for want in list(self._wants.values()))

    def list_answered(self) -> list[Done]:
        """The batches that are there and were not given up, in the order of need: the one taken last, and those ahead.

        None that a file no longer open holds, which only the program can read. Never waits.
        """
        link = self.session.link
        if link is not None and link is self._link:
            try:
                link.drain_socket()
            except ConnectionError:  # the next take_batch sees to it
                pass
            self._handle_packets(link)
        done = [want.answer for want in self._wants.values() if isinstance(want.answer, Done)]
        return [answer for answer in done if answer.slots.file >= 0]

    def count_needed_slots(self, slots: Slots) -> int:
        """How many slots live batches must leave: the window's belong to the agent, whatever the program keeps."""
        return min(self.window or 1, slots.count - IN_USE)

    def take_batch(self, key: tuple[int, int], batch: int, upcoming: Upcoming) -> Done:
        """The batch of the step at key; blocks until it is there. Asks for those after it meanwhile."""
        self._takes += 1
        self._waited = None
        try:
            while True:
                try:
                    link = self._prepare_link(batch)
                    if self._waited is not None:
                        self._waited.skip_turn()
                    want = self._request_step(link, key, upcoming)
                    while want.answer is None and self._poll_link(link):
                        pass
                    while (answer := want.answer) is None:
                        self._await_answer(link, want)
                    if isinstance(answer, Done):
                        self.batches += 1
                        return answer
                    self._handle_failure(want, answer, batch)
                except ConnectionError:
                    self._tail = None
                    self._salvage_answers()
                    self.session.note_lost()
        finally:
            if self._waited is not None and self._waited.stopped_s and self.stopped is not None:
                self.stopped(self._waited.stopped_s)

    def note_returned(self, key: tuple[int, int], wait_s: float) -> None:
        """The loop has the batch of the step at key, and waited so long for it. Never waits; a batch's span ends so."""
        want, link = self._wants.get(key), self._link
        if want is not None and link is not None:
            link.send_lossy(_RETURNED.pack(b"R", want.ident, wait_s))

    def _prepare_link(self, batch: int) -> Link:
        """The link, with slots for batches of that many samples; connects anew if need be.

        Not for a forked child, which Session.check_process tells from the process that has the link.
        """
        session, link = self.session, self._link
        if link is not None and link is session.link and session.slots is not None and batch <= session.batch:
            return link
        session.reserve_slots(batch)
        link = session.ensure_link()
        if link is not self._link:  # what the last agent did not answer must be asked for again
            self._out = {}
            self._wants = {key: want for key, want in self._wants.items() if want.answer is not None}
            self._tail, self._link, self._told, self._context = None, link, {}, b""
            assert session.opened is not None
            self.window, self.traced = session.opened.window, session.opened.traced
        return link

    # -- asking -------------------------------------------------------------------------------------------------------

    def _request_step(self, link: Link, key: tuple[int, int], upcoming: Upcoming) -> Want:
        """The want of the step at key, sent now or before; and the window behind it is full."""
        if self._tail is None or key not in self._wants:
            self._replan_wants(link, key, upcoming)
        if key in self._wants:
            for earlier in [*self._wants]:
                if earlier == key:
                    break
                del self._wants[earlier]
        while True:
            tail, self._tail = self._tail, None  # an exception from here on: look again
            self._tail = self._top_up(link, tail or key, upcoming)
            if key in self._wants:
                return self._wants[key]
            self._make_room(link)

    def _replan_wants(self, link: Link, key: tuple[int, int], upcoming: Upcoming) -> None:
        """Keeps what is on the way ahead from key, cancels the rest."""
        for ident, want in list(self._out.items()):
            if not want.sent:  # an exception came between noting and sending it
                self._out.pop(ident, None)
                self._wants = {k: w for k, w in self._wants.items() if w is not want}
        assert self.session.slots is not None
        path: list[tuple[int, int]] = []
        place, limit = key, self.count_needed_slots(self.session.slots)
        while len(path) < limit:
            step = upcoming(*place)
            if step is None:
                break
            if step.size:
                path.append(step.key)
            place = step.after
        kept = {place: self._wants[place] for place in path if place in self._wants}
        dropped = [want for place, want in self._wants.items() if place not in kept]
        self._wants = kept
        self._tail = key
        self._cancel_wants(link, dropped)

    def _top_up(self, link: Link, tail: tuple[int, int], upcoming: Upcoming) -> tuple[int, int]:
        """Sends wants until the window is full, the slots are out or the way is not known further."""
        session, slots = self.session, self.session.slots
        assert slots is not None
        limit = self.count_needed_slots(slots)
        while len(self._wants) < limit:
            step = upcoming(*tail)
            if step is None:
                break
            if step.size and step.key not in self._wants:
                if step.size > session.batch:
                    slots = session.reserve_slots(step.size)
                slot = slots.find_free_slot(self._busy_slots(slots))
                if slot is None:
                    link.drain_socket()
                    self._handle_packets(link)
                    slot = slots.find_free_slot(self._busy_slots(slots))
                if slot is None:
                    break
                self._send_want(link, step, slots, slot, len(self._wants))
            tail = step.after
        return tail

    def _busy_slots(self, slots: Slots) -> set[int]:
        """The slots of all that is wanted, ready or lent."""
        return {want.slot for held in (self._wants, self._out) for want in held.values() if want.slots is slots}

    def _send_want(self, link: Link, step: Step, slots: Slots, slot: int, ahead: int) -> None:
        if step.indices is not None:
            slots.columns["index"][slot, : step.size] = step.indices
        if step.policy is not None:
            self._send_policy(link, step.policy)
        if self.traced:
            self._send_trace_context(link)
        self._ident += 1
        want = Want(self._ident, step, slots, slot)
        self._out[want.ident] = want
        link.send(want.encode_packet(ahead, self.ranks.world), want.sent)
        self._wants[step.key] = want

    def _send_policy(self, link: Link, policy: Weights) -> None:
        """Sends a policy before the first want that names it."""
        number, encoded = policy.step + 1, policy.encoded
        if self._told.get(number) != encoded:
            link.send(b"T" + struct.pack("<Q", number) + encoded, [])
            self._told[number] = encoded
            self._told.pop(number - MOST_POLICIES, None)

    def _send_trace_context(self, link: Link) -> None:
        """Tells what the spans of the wants from now on are part of, where that is news."""
        context = struct.pack("<I", self.ranks.rank) + find_parent_span()
        if context != self._context:
            link.send(b"S" + context, [])
            self._context = context

    def _cancel_wants(self, link: Link, wants: list[Want]) -> None:
        """They stay out, and their slots lent, until the agent answers."""
        idents = [want.ident for want in wants if want.ident in self._out]
        for first in range(0, len(idents), 1000):
            some = idents[first : first + 1000]
            link.send(struct.pack(f"<c{len(some)}Q", b"X", *some), [])

    def _make_room(self, link: Link) -> None:
        """No slot for the batch that is needed now: waits for a cancelled want, else gives up a later batch."""
        assert self.session.slots is not None
        if self.session.slots.await_slot():
            return
        if any(self._wants.get(want.step.key) is not want for want in self._out.values()):
            self._await_answer(link)
        elif self._wants:
            last = next(reversed(self._wants))
            self._cancel_wants(link, [self._wants.pop(last)])
        else:
            raise Error("no slot is free although none is wanted: this is a bug in feedwater")

    # -- receiving ----------------------------------------------------------------------------------------------------

    def _poll_link(self, link: Link) -> bool:
        """Takes in what the agent has said, one packet of it, without waiting; whether there was one."""
        came = bool(link.inbox) or link.receive(MSG_DONTWAIT)
        if came:
            self._handle_packets(link)
        return came

    def _await_answer(self, link: Link, want: Want | None = None) -> None:
        """Takes in what the agent says next; blocks until it says something, but not for long."""
        if self._waited is None:
            self._waited = Waited(POLL_S)
        waited = self._waited
        came = bool(link.inbox) or link.receive()
        waited.end_turn()
        if came:
            self._handle_packets(link)
        else:
            self._check_stalled(waited)
        if self.waiting is not None and (want is None or want.answer is None):
            self.waiting(waited.seconds)

    def _check_stalled(self, waited: Waited) -> None:
        request = self.session.request
        limit = request.timeout if self.batches else request.start_timeout
        if limit and waited.seconds > limit + SLACK_S:
            self.session.note_lost(hung=True)
            raise StallError(
                f"the agent has said nothing for {limit + SLACK_S:.0f} s; it is ended, next starts another"
            )

    def _salvage_answers(self) -> None:
        """The agent is gone: what it finished before is in the socket still."""
        link = self.session.link
        if link is None or link is not self._link:
            return
        try:
            link.drain_socket()
        except ConnectionError:
            pass
        self._handle_packets(link)

    def _handle_packets(self, link: Link) -> None:
        """Notes all packets of the inbox. Each may be noted twice: it is deleted after it was noted."""
        inbox = link.inbox
        while inbox:
            packet = inbox[0]
            kind = packet[:1]
            if kind == b"D":
                self._note_done(packet)
            elif kind in (b"E", b"X"):
                self._note_failed(packet, None if kind == b"X" else json.loads(packet[9:]))
            elif kind == b"N":
                log_notice(packet)
            del inbox[0]

    def _note_done(self, packet: bytes) -> None:
        told = _DONE.unpack_from(packet)
        ident, self.window, json_bytes = told[:3]
        want = self._out.get(ident)
        if want is None:
            return
        details = json.loads(packet[_DONE.size : _DONE.size + json_bytes]) if json_bytes else None
        if details is not None and "stores" in details:
            self.session.add_stores(details["stores"])
        want.answer = Done(want, details, told[3:])
        self._out.pop(ident, None)

    def _note_failed(self, packet: bytes, error: dict[str, Any] | None) -> None:
        (ident,) = _ID.unpack_from(packet)
        want = self._out.get(ident)
        if want is None:
            return
        want.answer = Failed(error, self._takes)
        self._out.pop(ident, None)

    def _handle_failure(self, want: Want, answer: Failed, batch: int) -> None:
        """There is no batch. Raises the error that stands, if one does; else the running take_batch asks again."""
        self._wants = {key: other for key, other in self._wants.items() if other is not want}
        self._tail = None
        error = answer.error
        if error is None:
            return
        if error.get("kind") == "room" and error["bytes"] > want.slots.stride:
            self.session.reserve_slots(batch, int(error["bytes"] * 1.25))
            return
        if error.get("kind") == "stall" and answer.take < self._takes:  # it was true then; perhaps not now
            return
        raise error_of(error)
