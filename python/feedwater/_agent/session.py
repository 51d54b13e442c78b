"""One Loader's life with the agent: connect, open the plan, hand over the slots; again whenever the agent died."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .._common.constants import ALIGN
from .._common.filenames import to_json
from ..errors import AgentError, DataError, Error, ForkedError, PlanError, StallError, VersionError
from . import memory, revisions
from .failure import error_of
from .link import Link
from .plan_info import PlanInfo, Request
from .process import agent
from .slots import Field, Slots, align_array, align_stride

__all__ = ["Session"]

log = logging.getLogger("feedwater")

IN_USE = 3
"""Slots beyond the window: the batch just returned, the one still bound to the loop's variable, one the user keeps."""
NO_LABELS = "fields: the data has no labels"
"""How the refusal of a plan begins that has labels where the data has none."""
MOST_SLOTS = 64
FEWEST_SLOTS = IN_USE + 1
SLACK_S = 30
"""How much longer than the agent's own time limits we wait before we take it for hung."""


class Session:
    """A connection that comes back. Not for two threads at once, except close and drop_handles."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.opened: PlanInfo | None = None
        self.slots: Slots | None = None
        self.batch = 0
        """Samples per batch that the slots have room for."""
        self.numerics: str | None = None
        """The numerics that a loaded state pins."""
        self.revisions: dict[str, Any] | None = None
        """The revisions that it pins."""
        self.stores: dict[str, str] | None = None
        """The stores that it pins."""
        self.link: Link | None = None
        self.respawns = -1
        self.make_slots: Callable[[int, int], Slots] = Slots
        """What makes so many slots of so many bytes."""
        self._serial = 0
        self._gone: tuple[int, bool] | None = None
        self._owner = 0
        self._forked = self._closed = self._collected = False
        self._halvings = 0
        self._need = 0

    def ensure_link(self) -> Link:
        """The link; connects, starts and restarts the agent as needed."""
        self.check_process()
        while self.link is None:
            self.check_open()
            if self._gone is not None:
                serial, hung = self._gone
                agent.note_lost(serial, hung=hung)
                self._gone = None
                if agent.memory_was_short:
                    self._halvings += 1
                    self._drop_slots()
            try:
                self._connect_link()
            except ConnectionError:
                self._gone = (self._serial, False)
            except Error:
                if self.opened is None:  # so that the next Loader's agent has the environment as it is then
                    agent.release_user(self)
                raise
            except OSError as error:
                _check_named(error)
                raise
        return self.link

    def check_open(self) -> None:
        """Raises Error if the Loader was closed, or ForkedError as check_process does."""
        self.check_process()
        if self._closed:
            raise Error("this Loader is closed")
        if self._collected:
            raise Error(
                "this Loader was garbage, and is closed: what asks it for a batch is in a cycle of references with it, "
                "and its finaliser came later. Ask for no batches in __del__, or break the cycle"
            )

    def check_process(self) -> None:
        """Raises ForkedError in a forked child of the process that uses this Loader."""
        if self._forked or (self._owner and self._owner != os.getpid()):
            raise ForkedError(
                "this Loader is in use in the process that forked this one, and batches cannot be shared with it: "
                "make a Loader in the process that iterates it (pickling one makes a fresh copy)"
            )

    def note_lost(self, *, hung: bool = False) -> None:
        """The link broke, or nothing comes from it: the agent is ended and reaped before the next live."""
        link = self.link
        if link is None:
            return
        self._gone = (self._serial, hung)
        self.link = None
        link.close()

    def open_anew(self) -> None:
        """Has the plan opened once more by the agent that there is, which lists the data set anew if it has changed.

        Slots are new ones: the agent may still write into those it was lent. Raises DataError if samples are others.
        """
        link, self.link = self.link, None
        if link is not None:
            link.close()
            self.respawns -= 1
        self._drop_slots()
        if self.opened is not None:
            self.opened = replace(self.opened, stores=self.stores or {})
        self.ensure_link()

    def add_stores(self, stores: dict[str, str]) -> None:
        """Pins what nodes that came later read, too."""
        if self.opened is not None:
            self.opened = replace(self.opened, stores={**stores, **self.opened.stores})

    def call(self, method: str, params: dict[str, Any], timeout: float) -> tuple[Any, bytes]:
        """Asks the agent; its errors are raised."""
        while True:
            link = self.ensure_link()
            try:
                return self._call_link(link, method, params, timeout=timeout)
            except ConnectionError:
                self.note_lost()
            except StallError:
                self.note_lost(hung=True)
                raise

    def _call_link(
        self, link: Link, method: str, params: dict[str, Any], *files: int, timeout: float
    ) -> tuple[Any, bytes]:
        ok, answer, blob = link.call(method, params, *files, timeout=timeout)
        if not ok:
            raise error_of(answer)
        return answer, blob

    def _connect_link(self) -> None:
        try:
            self._connect_once()
        except PlanError as error:
            if not self._leave_out_labels(error):
                raise
            self._connect_once()

    def _connect_once(self) -> None:
        sock, self._serial = agent.connect_user(self)
        link = Link(sock)
        try:
            self._check_greeting(link)
            self._open_plan(link)
            if self.slots is not None:
                self._hand_over(link)
        except BaseException:  # the agent forgets this Loader when its socket closes
            link.close()
            raise
        self._owner = os.getpid()
        self.link = link
        self.respawns += 1

    def _leave_out_labels(self, refused: PlanError) -> bool:
        """Whether the plan was refused for labels that the data has not, and that the program does not ask for.

        Plans have labels although nobody asks for them: so a job goes on from the states of before others had none.
        """
        plan = self.request.plan
        if not str(refused).startswith(NO_LABELS) or not self.request.labels_unused or "label" not in plan["fields"]:
            return False
        fields = [name for name in plan["fields"] if name != "label"]
        self.request = replace(self.request, plan={**plan, "fields": fields})
        return True

    def _check_greeting(self, link: Link) -> None:
        """Raises VersionError if the agent's program is of another release than this package."""
        from . import binary

        theirs = link.exchange_greetings(revisions.make_greeting(), SLACK_S)
        wrong = revisions.find_mismatch(theirs, binary.find_program())
        if wrong is not None:
            raise VersionError(wrong)

    def _open_plan(self, link: Link) -> None:
        wanted = self.request
        params = {
            "plan": wanted.plan,
            "nodes": list(wanted.nodes),
            **wanted.trust.open_members(),
            "local": wanted.local and to_json(wanted.local),
            "job": wanted.job(),
            "numerics": self.opened.numerics if self.opened else self.numerics,
            "revisions": self.opened.revisions if self.opened else self.revisions,
            "stores": self.opened.stores if self.opened else self.stores,
            "fingerprint": self.opened.fingerprint if self.opened and wanted.nodes else None,  # an agent was lost
            "workers": wanted.workers,
            "start_timeout": wanted.start_timeout,
            "timeout": wanted.timeout,
        }
        files = () if wanted.table is None else (wanted.table.fileno(),)
        answer, _ = self._call_link(link, "open", params, *files, timeout=_call_limit(wanted.start_timeout))
        opened = PlanInfo.from_answer(answer)
        if self.opened is not None and opened.identity() != self.opened.identity():
            raise DataError("the data set changed while it was in use: its samples are others now. Start anew")
        if opened.samples == 0:
            source = wanted.plan["source"]
            name = wanted.local or "/".join(filter(None, (source["root"], source["path"])))
            raise DataError(f"{name}: no pictures in it")
        self.opened = opened

    def reserve_slots(self, batch: int, need: int = 0) -> Slots:
        """Slots for batches of that many samples, of at least need bytes; new ones if those at hand are too small."""
        link = self.ensure_link()
        if self.slots is None or batch > self.batch or need > self.slots.stride:
            self.batch, self._need = max(batch, self.batch), max(need, self._need)
            self._renew_slots(link)
        assert self.slots is not None
        return self.slots

    def _drop_slots(self) -> None:
        """Batches in them stay good: they keep the mapping."""
        slots, self.slots = self.slots, None
        if slots is not None:
            slots.close()

    def _renew_slots(self, link: Link) -> None:
        self._drop_slots()
        try:
            self._hand_over(link)
        except ConnectionError:
            raise
        except BaseException as error:  # half done: the agent may hold memory that we know nothing of
            self.link = None
            link.close()
            self._drop_slots()
            if isinstance(error, OSError) and not isinstance(error, Error):
                _check_named(error)
            raise

    def _hand_over(self, link: Link) -> None:
        """Gives memory to the agent and learns where in a slot each field lies."""
        while True:
            slots = self.slots = self.slots or self._make_slots()
            params = {
                "count": slots.count,
                "stride": slots.stride,
                "batch": self.batch,
                "last_hop": self.request.last_hop,
            }
            ok, answer, _ = link.call("slots", params, slots.file, timeout=SLACK_S)
            if ok:
                break
            if answer.get("kind") != "room" or answer["bytes"] <= slots.stride:
                raise error_of(answer)
            self._need = answer["bytes"]
            self._drop_slots()
        fields = [Field(f["name"], f["dtype"], tuple(f["shape"]), f["offset"]) for f in answer["fields"]]
        slots.place_fields(fields, self.batch)

    def _make_slots(self) -> Slots:
        assert self.opened is not None
        cap = self.request.memory
        limit = memory.slot_allowance(cap) >> self._halvings
        stride = self._choose_stride(limit)
        count = min(limit // stride, MOST_SLOTS)
        if count < FEWEST_SLOTS:
            if cap is not None and not self._halvings:
                raise ValueError(
                    f"memory={cap:,} holds {max(0, count)} batches of {stride:,} bytes; at least {FEWEST_SLOTS} are "
                    f"needed: pass memory={FEWEST_SLOTS * stride:,} or a smaller batch_size"
                )
            count = FEWEST_SLOTS
            self._check_room(count * stride)
        slots = self.make_slots(count, stride)
        most = self.opened.window + IN_USE
        if slots.reserved and count > most:  # room in a file system is taken whether it is used or not
            slots.close()
            slots = self.make_slots(max(FEWEST_SLOTS, most), stride)
        return slots

    def _check_room(self, need: int) -> None:
        """Raises ValueError if not even the fewest batches fit into the machine."""
        room = memory.available_bytes()
        if need > room:
            raise ValueError(
                f"a batch of {self.batch:,} samples takes {need // FEWEST_SLOTS:,} bytes, and {FEWEST_SLOTS} must fit: "
                f"{need:,} bytes, where this machine has {room:,} left. Pass a smaller batch_size"
            )

    def _choose_stride(self, limit: int) -> int:
        assert self.opened is not None
        size = 0
        for field in self.opened.fields:
            dtype = self.request.last_hop.get(field.name, {}).get("dtype", field.dtype)
            sample = Field(field.name, dtype, field.shape, 0)
            if sample.ragged:  # sizes are not known: as much as there may be, of which only what is written counts
                size += limit // (self.opened.window + IN_USE) - self.batch * ALIGN
                continue
            nbytes = self.batch * sample.stored_type.itemsize
            for side in sample.shape:
                nbytes *= side
            size += align_array(nbytes)
        return align_stride(max(size, self._need))

    def close(self) -> None:
        """Ends it for good; the last session of the process ends the agent. Batches handed out stay good."""
        self._closed = True
        mine = not self._forked and self._owner == os.getpid()
        link, self.link = self.link, None
        if link is not None:
            if mine:
                link.shutdown()
            link.close()
        self._drop_slots()
        if mine:
            agent.release_user(self)

    def drop_handles(self) -> None:
        """Like close, but takes no lock and waits for nothing; called by finalisers."""
        if self.link is not None:
            self.link.close()
        if self.slots is not None:
            self.slots.close()

    def note_collected(self) -> None:
        """drop_handles of a Loader that is garbage. Other finalisers, which may come later, get no batches any more."""
        self._collected = True
        self.drop_handles()

    def close_in_fork(self) -> None:
        """Closes this process's copies of the handles; the parent goes on undisturbed."""
        self._forked = self.link is not None or self._owner != 0
        self.drop_handles()


def _check_named(error: OSError) -> None:
    """Raises one of ours instead where we know what to do about it."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        raise AgentError(f"no file handles left ({error.strerror}): raise ulimit -n") from error


def _call_limit(timeout: float) -> float:
    return timeout + SLACK_S if timeout else float("inf")
