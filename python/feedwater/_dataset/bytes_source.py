"""Bytes: a data set that the program reads in a way of its own, in place of files."""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import shutil
import socket
import tempfile
import weakref
from typing import Any
from urllib.parse import quote

from .._common.homes import home_of
from ..errors import DataError

__all__ = ["Bytes"]

MOST_WORKERS = 8
"""Processes by default."""


class Bytes:
    """Samples that a program reads by itself, for Loader(feedwater.Bytes(dataset, version="1"), …): LMDB, HDF5, a zip.

    dataset   an object with read(i) -> (bytes, label), the bytes of picture i as in a file and a whole number, or None
              where there are no labels; and with len(). It is pickled and called in processes of its own, one call at
              a time in each: open files in read, or in __setstate__, not before
    version   names what it has: another one where any sample's bytes or label are other ones
    workers   how many processes; by default one for each core, at most 8

    Pictures are decoded by this machine: with nodes= it is refused. When it is first used each sample is read once, for
    its length and label. That list is kept, for as long as version, length and the pickled object stay the same. The
    fingerprint is made of numbers, lengths and labels.
    """

    def __init__(self, dataset: Any, *, version: str, workers: int | None = None) -> None:
        if not callable(getattr(dataset, "read", None)) or not hasattr(dataset, "__len__"):
            raise TypeError(f"dataset={type(dataset).__name__}: needs read(i) -> (bytes, label) and len()")
        if not isinstance(version, str) or not version:
            raise TypeError(f"version={version!r:.80}: pass a string that names what the data set has")
        if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
            raise ValueError(f"workers={workers!r:.80}: pass a number of processes, 1 at least")
        try:
            self._pickled = pickle.dumps(dataset)
        except Exception as error:
            raise TypeError(
                f"dataset: {type(dataset).__name__} cannot be sent to another process ({error}): keep the path, and "
                "open the file when read is first called"
            ) from error
        if len(dataset) < 1:
            raise DataError("the data set is empty")
        self._samples, self._workers = len(dataset), workers
        named = repr((version, self._samples, home_of(dataset))).encode()
        self.place = f"python://{hashlib.sha256(named + self._pickled).hexdigest()[:32]}"
        """Names the data, wherever it is read."""
        self._served: _Served | None = None

    def __len__(self) -> int:
        return self._samples

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_served": None}

    def start_serving(self) -> str:
        """The place, with the socket that processes listen on; starts them if they are not there."""
        from .._python.batches import count_cores

        if self._served is None or self._served.owner != os.getpid():
            self._served = _Served(self._pickled, self._workers or min(MOST_WORKERS, count_cores()))
            weakref.finalize(self, self._served.close)
        return f"{self.place}?socket={quote(self._served.socket)}"

    def close(self) -> None:
        """Ends the processes; they start again when they are needed."""
        served, self._served = self._served, None
        if served is not None:
            served.close()


class _Served:
    """Processes that answer on a socket."""

    def __init__(self, pickled: bytes, workers: int) -> None:
        import multiprocessing

        from .._python.pool import READER, ignore_interrupts, leave_main_out
        from .bytes_worker import serve_samples

        self.owner = os.getpid()
        self._folder = tempfile.mkdtemp(prefix="feedwater-bytes-")  # nobody else may enter it
        self.socket = os.path.join(self._folder, "socket")
        context = multiprocessing.get_context("spawn")
        theirs, self._life = context.Pipe(duplex=False)
        self._processes = []
        with socket.socket(socket.AF_UNIX) as listener, theirs:
            listener.bind(self.socket)
            listener.listen(1024)
            for place in range(workers):
                process = context.Process(
                    target=serve_samples,
                    args=(listener, theirs, pickled, workers),
                    name=f"{READER}{place}",
                    daemon=True,
                )
                with ignore_interrupts(), leave_main_out(pickled):
                    process.start()
                self._processes.append(process)
        atexit.register(self.close)

    def close(self) -> None:
        if self.owner != os.getpid():
            return
        atexit.unregister(self.close)
        self._life.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        processes, self._processes = self._processes, []
        for process in processes:
            process.join(1)
            if process.exitcode is None:
                process.kill()
                process.join()
