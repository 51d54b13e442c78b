"""What feedwater-nvml, the program that reads NVIDIA GPUs, says; nothing where it is not there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Any

__all__ = ["Gpus"]

NAME = "feedwater-nvml"
LAST_BYTES = 1 << 18


class Gpus:
    """Reads while the block runs, into a file, so that no thread is needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Gpus:
        program = _find_program()
        if program:
            self._file = tempfile.TemporaryFile()
            try:
                self._process = subprocess.Popen(  # noqa: S603
                    [program, "--interval", "2s"], stdout=self._file, stderr=subprocess.DEVNULL, start_new_session=True
                )
            except OSError:
                self._process = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(2)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._file is not None:
            self._file.close()

    def list_gpus(self) -> list[dict[str, Any]]:
        """GPUs with their processes, from all recent lines; empty: unknown."""
        if self._file is None:
            return []
        size = os.fstat(self._file.fileno()).st_size
        start = max(0, size - LAST_BYTES)
        lines = os.pread(self._file.fileno(), LAST_BYTES, start).split(b"\n")
        return [gpu for line in lines[start > 0 : -1] for gpu in _parse_line(line)]


def _parse_line(line: bytes) -> list[dict[str, Any]]:
    """Of one line; those of a container that does not see other processes are left out."""
    try:
        read = json.loads(line)
    except ValueError:
        return []
    gpus: list[dict[str, Any]] = read.get("gpus", []) if read.get("host_pids", True) else []
    return gpus


def _find_program() -> str | None:
    """FEEDWATER_NVML, else beside the feedwater program, else on PATH."""
    named = os.environ.get("FEEDWATER_NVML")
    if named is not None:
        return named or None
    binary = os.environ.get("FEEDWATER_BINARY")
    beside = Path(binary).with_name(NAME) if binary else None
    return str(beside) if beside is not None and beside.is_file() else shutil.which(NAME)
