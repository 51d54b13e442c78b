"""preview(): a picture of what the transforms do, for people."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ._agent import binary, revisions
from ._arguments import checks
from ._config import Config
from .errors import DataError, Error, VersionError

__all__ = ["Preview", "draw_preview"]


@dataclass(frozen=True, repr=False)
class Preview:
    """A sheet of pictures. Notebooks show it; save() writes it to a file."""

    png: bytes
    """The sheet, as a PNG file."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the PNG file, and returns its path. Raises ValueError for a name that promises another format."""
        target = Path(path)
        if target.suffix.lower() != ".png":
            raise ValueError(
                f"save({str(target)!r}): what is written is a PNG, call it {target.with_suffix('.png').name}"
            )
        target.write_bytes(self.png)
        return target

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"<Preview: a PNG of {len(self.png):,} bytes; notebooks show it, save(path) writes it>"


def draw_preview(config: Config, samples: int, epochs: int, seed: int, width: int) -> Preview:
    """Runs `feedwater preview` on the Loader's plan and folder.

    Raises TypeError or ValueError for numbers that the program would refuse in words of its own, DataError if the
    folder is not on this machine, and Error with what the program says if it fails.
    """
    flags = {
        "samples": checks.check_within("samples", samples, 1, 1000),
        "epochs": checks.check_within("epochs", epochs, 1, 100),
        "seed": checks.seed_of(seed),
        "width": checks.check_within("width", width, 32, 2048),
    }
    folder = config.source.local or ("" if config.source.root else config.source.path)
    if not folder:
        raise DataError(
            f"preview() draws pictures of a folder of this machine, and {config.source.name} is on the nodes: run "
            "`feedwater preview` there, or look at single samples with replay()"
        )
    program = binary.find_program()
    command = [program, "preview", folder, "--plan", "-", "--out", "-"]
    command.append(f"--greeting={json.dumps(revisions.make_greeting())}")
    command += [f"--{name}={value}" for name, value in flags.items()]
    plan = json.dumps(config.to_plan()).encode()
    files = () if config.source.table is None else (config.source.table.fileno(),)
    command += [f"--table=/proc/self/fd/{file}" for file in files]
    run = subprocess.run(  # noqa: S603 (our own program)
        command, input=plan, capture_output=True, check=False, pass_fds=files
    )
    if run.returncode:
        said = run.stderr.decode(errors="replace").removeprefix("feedwater: ").strip()
        if "--greeting" in said:  # a program of before greetings does not know the flag
            raise VersionError(revisions.find_mismatch(None, program) or said)
        if "of different releases" in said:
            raise VersionError(revisions.find_replaced() or said)
        raise Error(said)
    return Preview(run.stdout)
