"""On a machine with a CUDA GPU: the idle meter against a trace of torch.profiler, in six kinds of loop.

    python bench/gpu/kinds.py [FOLDER] [--batch 128] [--steps 40] [--way device] [--seconds 420] [--out FILE]

Each kind runs twice with the same data: as it comes, and with the first batch again and again. The idle of the trace
that is gone in the second is the truth. Where there is no GPU it says so and ends with 1.
"""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from loop import KINDS
from main import WAYS, Bench, FailedRunError
from needs import check_gpu
from part import OutOfTimeError, begin, make_parser

MOST_ERROR = 0.01
"""Of the step."""


def line_of(kind: str, told: dict[str, Any]) -> str:
    """A kind's row."""
    names = ("step_s", "truth_s", "meter_s")
    cells = ["?" if told[name] is None else f"{told[name] * 1e3:.2f}" for name in names]
    error = "unknown" if told["error"] is None else f"{told['error']:+.2%}"
    return f"{kind:10}" + "".join(f"{cell:>12}" for cell in cells) + f"{error:>12}"


def main() -> None:
    """Measures and prints; ends with 1 where the meter is off by more than it may be, or knows nothing."""
    parser = make_parser(__doc__)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warm", type=int, default=15)
    parser.add_argument("--way", choices=WAYS, default="device")
    args = parser.parse_args()
    check_gpu("measured", args.out)
    failed: list[str] = []
    columns = "".join(f"{name:>12}" for name in ("step", "truth", "meter", "error"))
    with tempfile.TemporaryDirectory() as folder:
        part = begin(args, folder)
        bench = Bench(part, args)
        part.say(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, {args.way}\n{'ms a step':10}{columns}")
        for kind in KINDS:
            try:
                told = bench.traced(args.way, folder, "--kind", kind)
            except (OutOfTimeError, FailedRunError) as error:
                part.say(f"{kind:10}not measured: {error}")
                failed.append(kind)
                continue
            part.say(line_of(kind, told))
            if told["error"] is None or abs(told["error"]) > MOST_ERROR:
                failed.append(kind)
        part.end(f"off by more than {MOST_ERROR:.0%} of the step, or not known", failed)


if __name__ == "__main__":
    main()
