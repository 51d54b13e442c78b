"""Times what a DataLoader's workers do, or the main process where it has none: the fetcher is made where it works, so
fork, spawn and forkserver are all seen and nothing is pickled.
"""

from __future__ import annotations

import os
from time import perf_counter_ns
from typing import Any

from . import settings
from .board import Board


class Here:
    """This process's board, a new one after a fork."""

    def __init__(self) -> None:
        self._board: Board | None = None
        self._failed = False

    def forget_measures(self) -> None:
        """Forgets what was measured: a new folder, or a forked child."""
        self._board, self._failed = None, False

    def find_board(self) -> Board | None:
        """None once it has failed."""
        if self._failed:
            return None
        if self._board is None:
            self._board = Board()
        return self._board

    def note_failure(self, error: Exception) -> None:
        """Nothing more is measured here."""
        self._failed = True
        settings.note_error(f"fetch: {error!r}")


here = Here()
os.register_at_fork(after_in_child=here.forget_measures)


def patch(module: Any) -> None:
    """Of torch.utils.data._utils.fetch."""
    _time_collate(module._BaseDatasetFetcher)
    _time_fetch(module._MapDatasetFetcher)
    _time_fetch(module._IterableDatasetFetcher)


def _time_collate(base: Any) -> None:
    begin = base.__init__

    def __init__(self: Any, dataset: Any, auto_collation: Any, collate_fn: Any, drop_last: Any) -> None:  # noqa: N807
        begin(self, dataset, auto_collation, collate_fn, drop_last)
        self._doctor_collate_ns, self._doctor_samples = 0, 0

        def collate(samples: Any) -> Any:
            self._doctor_samples = len(samples) if auto_collation and hasattr(samples, "__len__") else 1
            began = perf_counter_ns()
            try:
                return collate_fn(samples)
            finally:
                self._doctor_collate_ns += perf_counter_ns() - began

        self.collate_fn = collate

    base.__init__ = __init__


def _time_fetch(kind: Any) -> None:
    original = kind.fetch

    def fetch(self: Any, indices: Any) -> Any:
        try:
            board = here.find_board()
            if board is not None:
                board.begin_fetch()
        except Exception as error:
            here.note_failure(error)
            board = None
        try:
            return original(self, indices)
        finally:
            if board is not None:
                _leave_board(self, board)

    kind.fetch = fetch


def _leave_board(fetcher: Any, board: Board) -> None:
    try:
        board.end_fetch(fetcher._doctor_samples, fetcher._doctor_collate_ns)
    except Exception as error:
        here.note_failure(error)
    fetcher._doctor_collate_ns = fetcher._doctor_samples = 0
