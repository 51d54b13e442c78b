"""Memory that the driver was told of: registered while someone holds it, then unregistered, and only then unmapped.

A registration that outlives its mapping makes the driver read old pages for whatever is mapped there later. So the
order is kept whoever lets go of the memory last, in whichever thread.
"""

from __future__ import annotations

import ctypes
import logging
import mmap
import os
from collections import deque
from typing import NamedTuple

from .runtime import Registrar

__all__ = ["Registered", "end_registrations"]

log = logging.getLogger("feedwater")


class _Part(NamedTuple):
    """What is registered of a mapping."""

    runtime: Registrar
    address: int


class _Ended(NamedTuple):
    """A mapping that nobody holds any more."""

    memory: mmap.mmap
    parts: list[_Part]
    owner: int
    """The process that registered it."""


_ENDED: deque[_Ended] = deque()


class Registered:
    """Owns a mapping and what the driver was told of it. Leases hold it in place of the mapping.

    Its end calls no CUDA: that may come in any thread, in a finaliser, at the interpreter's exit. It puts the mapping
    on a list, and the loop's thread does the rest in a later next or close. What is not done then, or fails, leaves
    the memory mapped for ever: the mapping is counted once more as long as anything of it is registered.
    """

    __slots__ = ("__weakref__", "_memory", "_owner", "_parts", "refused")

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory, self._owner = memory, os.getpid()
        self._parts: list[_Part] = []
        self.refused = ""
        """Why the driver refused the latest registration; "" if none was refused."""

    def register_part(self, runtime: Registrar, address: int, nbytes: int) -> bool:
        """Tells the driver of part of the mapping, which makes its pages resident; whether it agreed."""
        part = _Part(runtime, address)
        if not self._parts:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._memory))
        if part not in self._parts:  # it is where an exception came amid an earlier call
            self._parts.append(part)  # noted before it is done: whatever comes between, it is undone once
        self.refused = runtime.register_memory(address, nbytes)
        if self.refused:
            self._parts.remove(part)
            if not self._parts:
                ctypes.pythonapi.Py_DecRef(ctypes.py_object(self._memory))
        return not self.refused

    def __del__(self, ended: deque[_Ended] = _ENDED) -> None:
        if getattr(self, "_parts", None):  # there is none if an interrupt struck first
            ended.append(_Ended(self._memory, self._parts, self._owner))


def end_registrations() -> None:
    """Unregisters what nobody holds any more, and unmaps it. For the loop's thread. Nothing is done in a forked child:
    there the memory stays mapped, and its driver knows of none.
    """
    while _ENDED:
        try:
            ended = _ENDED.popleft()
        except IndexError:  # the last one is another thread's
            return
        if ended.owner != os.getpid():
            continue
        if ended.parts[0].runtime.is_capturing():  # a wait would end the capture: a later call does it
            _ENDED.appendleft(ended)
            return
        failed = _unregister_parts(ended.parts)
        if failed:
            log.warning("the driver does not give back %d parts of shared memory: they stay mapped", failed)
        else:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(ended.memory))


def _unregister_parts(parts: list[_Part]) -> int:
    """How many of them the driver still knows; all where it does not answer, as one does that is lost."""
    try:
        parts[0].runtime.finish_reads()
        return sum(not part.runtime.unregister_memory(part.address) for part in parts)
    except RuntimeError:
        return len(parts)
