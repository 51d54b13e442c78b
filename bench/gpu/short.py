"""On a machine with a CUDA GPU that is had for minutes: all four parts in short, one after the other.

    python bench/gpu/short.py [FOLDER] [--seconds 420] [--out FILE]

Each part is a process of its own, and gets its share of what time is left; what it does not get to is said. What one
does not use is the next one's. It ends with 1 where a part did, after all of them. Where there is no GPU it says so.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from main import run_within
from needs import check_gpu, check_packages
from part import GRACE_S, OutOfTimeError, Part, begin, make_parser

HERE = Path(__file__).resolve().parent
PARTS: dict[str, tuple[float, list[str]]] = {
    "checks": (0.3, []),
    "figures": (0.45, ["--rounds", "1", "--steps", "60"]),
    "kinds": (0.75, ["--steps", "20", "--warm", "8"]),
    "main": (1.0, ["--rounds", "1", "--steps", "30", "--warm", "10"]),
}
"""What is asked of a part, and its share of the time that is left when it begins."""


def run_part(part: Part, name: str, folder: str) -> bool:
    """Says what a part says; whether it ended well."""
    share, options = PARTS[name]
    seconds = (part.left_s(GRACE_S) - GRACE_S) * share
    command = [sys.executable, str(HERE / f"{name}.py"), folder, "--seconds", f"{seconds:.0f}", *options]
    part.say(f"-- {name}, {seconds:.0f} s")
    with tempfile.NamedTemporaryFile("r") as told:  # what it says until it ends, however it does
        try:
            code, _ = run_within(seconds + GRACE_S, [*command, "--out", told.name])
        except OutOfTimeError as error:
            code = str(error)
        part.say(told.read())
    if code:
        part.say(f"{name} ended with {code}")
    return not code


def main() -> None:
    """Runs the parts."""
    args = make_parser(__doc__).parse_args()
    check_packages()
    check_gpu("checked", args.out)
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as made:
        part = begin(args, made)
        for name in PARTS:
            try:
                if not run_part(part, name, args.folder):
                    failed.append(name)
            except OutOfTimeError as error:
                part.say(f"-- {name} was not run: {error}")
                failed.append(name)
        part.end("not all is as it should be", failed)


if __name__ == "__main__":
    main()
