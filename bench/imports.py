"""What `import feedwater` costs, and what it brings along.

    python bench/imports.py [--rounds 5]

Time of `import feedwater` less that of `import numpy`, each timed within a fresh process, in turns; and whether torch,
grpc or google.protobuf came with it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

import machine
from figure import Figure, report

HEAVY = ("torch", "grpc", "google.protobuf")
TIMED = """
import sys, time
began = time.perf_counter()
import {name}
print((time.perf_counter() - began) * 1000, *[heavy for heavy in {heavy} if heavy in sys.modules])
"""


def run(name: str) -> tuple[float, list[str]]:
    """Milliseconds that the import took in a process of its own, and the heavy modules that came with it."""
    command = [sys.executable, "-c", TIMED.format(name=name, heavy=HEAVY)]
    took, *heavy = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.split()
    return float(took), heavy


def main() -> None:
    """Runs all imports and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="five imports of each per round")
    parser.add_argument("--figures", metavar="FILE", help="add the figures to this file")
    args = parser.parse_args()
    print(machine.settings())
    took: dict[str, list[float]] = {"numpy": [], "feedwater": []}
    heavy: set[str] = set()
    for name in took:
        run(name)  # the files are in the page cache from now on
    for _, name in machine.turns(5 * args.rounds, list(took)):
        milliseconds, found = run(name)
        took[name].append(milliseconds)
        heavy.update(found)
    for name, times in took.items():
        print(f"import {name:10} {statistics.median(times):6.1f} ms ({min(times):.1f} … {max(times):.1f})")
    print(f"of {', '.join(HEAVY)} it brings: {', '.join(sorted(heavy)) or 'none'}")
    more = statistics.median(took["feedwater"]) - statistics.median(took["numpy"])
    figures = [
        Figure("import feedwater, more than numpy's", more, 150, "ms"),
        Figure("heavy modules that come with it", len(heavy), 0),
    ]
    report(figures, args.figures)


if __name__ == "__main__":
    main()
