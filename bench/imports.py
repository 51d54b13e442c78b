"""What `import feedwater` costs, and what it brings along.

    python bench/imports.py [--rounds 5]

Time of `import feedwater` less that of `import numpy`, each timed within a fresh process, in turns, from compiled files
as an installer leaves them; and whether torch, grpc or google.protobuf came with it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import machine
from figure import Figure, report

HEAVY = ("torch", "grpc", "google.protobuf")
TIMED = """
import sys, time
began = time.perf_counter()
import {name}
print((time.perf_counter() - began) * 1000, *[heavy for heavy in {heavy} if heavy in sys.modules])
"""


def run(name: str, cache: str) -> tuple[float, list[str]]:
    """Milliseconds that the import took in a process of its own, and the heavy modules that came with it."""
    command = [sys.executable, "-c", TIMED.format(name=name, heavy=HEAVY)]
    env = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    took, *heavy = done.stdout.split()
    return float(took), heavy


def measure(rounds: int) -> tuple[dict[str, list[float]], set[str]]:
    """Times by module, and the heavy modules that came along."""
    took: dict[str, list[float]] = {"numpy": [], "feedwater": []}
    heavy: set[str] = set()
    with tempfile.TemporaryDirectory() as cache:
        for name in took:
            run(name, cache)  # compiles
        for _, name in machine.turns(rounds, list(took)):
            milliseconds, found = run(name, cache)
            took[name].append(milliseconds)
            heavy.update(found)
    return took, heavy


def main() -> None:
    """Runs all imports and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="five imports of each per round")
    parser.add_argument("--figures", metavar="FILE", help="add the figures to this file")
    args = parser.parse_args()
    print(machine.settings())
    took, heavy = measure(5 * args.rounds)
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
