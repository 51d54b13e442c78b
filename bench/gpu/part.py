"""What the four parts of make test-gpu share: their time, the file of their results, and pictures where none are given.

A part ends within its time, whatever hangs, and what was found until then lies in its file.
"""

from __future__ import annotations

import argparse
import faulthandler
import time
from pathlib import Path

SECONDS = 420
GRACE_S = 30
PICTURES, SIDE, CLASSES = 1024, 320, 4


class OutOfTimeError(Exception):
    """What comes next would not end within the part's time."""


class Part:
    """One run of one part."""

    def __init__(self, seconds: float = SECONDS, out: str | None = None) -> None:
        self._end, self._out = time.monotonic() + seconds, Path(out) if out else None
        if self._out is not None:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            self._out.write_text("")

    def say(self, text: str) -> None:
        """A line for the terminal and the file, at once."""
        print(text, flush=True)
        self._write(text)

    def _write(self, text: str) -> None:
        if self._out is not None:
            with self._out.open("a") as file:
                file.write(text + "\n")

    def end(self, verdict: str, failed: list[str]) -> None:
        """Raises SystemExit with the verdict on those that failed, if there are any; the file has it too."""
        if failed:
            told = f"{verdict}: {', '.join(failed)}"
            self._write(told)
            raise SystemExit(told)

    def left_s(self, needed: float = 0.0) -> float:
        """Seconds that are left. Raises OutOfTimeError if there are fewer than needed."""
        left = self._end - time.monotonic()
        if left <= needed:
            raise OutOfTimeError(f"{max(0.0, left):.0f} s are left, and {needed:.0f} s are needed")
        return left

    def end_hanging(self) -> None:
        """From now on the process ends by itself, with a traceback, a while after its time."""
        faulthandler.dump_traceback_later(self.left_s() + GRACE_S, exit=True)


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Arguments of all parts."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", nargs="?", help="photographs in class folders; pictures are made where it is left out"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="longest time of the part")
    parser.add_argument("--out", help="file for the lines that are printed")
    return parser


def begin(args: argparse.Namespace, folder: str) -> Part:
    """The part of these arguments; args.folder is there afterwards: below folder where none was given."""
    part = Part(args.seconds, args.out)
    part.end_hanging()
    if args.folder is None:
        args.folder = str(make_pictures(Path(folder) / "pictures"))
        part.say(f"no folder was given: {PICTURES} pictures of {SIDE} x {SIDE} were made")
    return part


def make_pictures(folder: Path, count: int = PICTURES) -> Path:
    """JPEG files in class folders, with as much detail as photographs have."""
    from PIL import Image

    for number in range(count):
        path = folder / f"class-{number % CLASSES}" / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        small = (SIDE // 4, SIDE // 4)
        bands = [Image.effect_noise(small, 40 + (number * 7 + band * 31) % 60) for band in range(3)]
        Image.merge("RGB", bands).resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(path, quality=85)
    return folder
