"""On a machine with a CUDA GPU: what batches on the device cost, each figure beside what it is held against.

    python bench/gpu/figures.py [FOLDER] [--batch 256] [--steps 100] [--rounds 3] [--seconds 420] [--out FILE]

It prints the host's time in next for a batch that is ready, the bandwidth of its copies against a pinned
cudaMemcpyAsync of the same size, and ResNet-50's images a second with ready batches of each way against synthetic data
on the device. Where there is no GPU it says so and ends with 1.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import torch
from loop import AUGMENT, FLOATS, Step, on_device
from needs import check_gpu
from part import OutOfTimeError, Part, begin, make_parser
from torchvision.transforms import v2


def next_ms(folder: str, batch: int, steps: int, more: tuple[Any, ...] = ()) -> float:
    """The host's median time in next, of a batch that was copied ahead, beside a GPU that is at work."""
    batches, busy, took = on_device(folder, batch, 0, more), torch.randn(4096, 4096, device="cuda"), []
    for _ in range(steps):
        for _ in range(20):
            busy @ busy
        time.sleep(0.5)  # until batches are ready
        began = time.perf_counter()
        next(batches)
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e3


def seconds_of(copy: Any, rounds: int = 20) -> float:
    """The GPU's median time of a copy, by events."""
    took = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        copy()
        end.record()
        torch.cuda.synchronize()
        took.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(took)


def bandwidth(batch: int) -> tuple[float, float, float]:
    """Bytes a second from a registered slot and from memory of cudaHostAlloc; the ms that registering a slot takes."""
    from feedwater._agent.slots import Field, Slots, align_stride
    from feedwater._device.runtime import find_runtime

    nbytes = batch * 224 * 224 * 3
    slots, gpu = Slots(2, align_stride(nbytes)), find_runtime(torch, "cuda")
    began = time.perf_counter()
    reason = slots.register_slot(0, gpu)
    took_ms = (time.perf_counter() - began) * 1e3
    if reason:
        raise SystemExit(f"the driver does not register shared memory: {reason}")
    slot = torch.from_numpy(slots.lease_array(0, Field("image", "uint8", (nbytes,), 0), 1)[0]).fill_(1)
    pinned = torch.ones(nbytes, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(nbytes, dtype=torch.uint8, device="cuda")
    ours, theirs = (seconds_of(lambda s=source: target.copy_(s, non_blocking=True)) for source in (slot, pinned))
    return nbytes / ours, nbytes / theirs, took_ms


def synthetic(batch: int) -> Iterator[Any]:
    """One batch on the device, again and again."""
    images = torch.randint(0, 256, (batch, 3, 224, 224), dtype=torch.uint8, device="cuda")
    return repeat((images.contiguous(memory_format=torch.channels_last), torch.zeros(batch, dtype=torch.long).cuda()))


def ready(folder: str, batch: int, way: str) -> Iterator[Any]:
    """Batches of a folder of few pictures, small ones, so that the way makes them faster than the GPU takes them."""
    if way == "synthetic":
        return synthetic(batch)
    if way == "device":
        return on_device(folder, batch, 0)
    images = torch.randint(0, 256, (batch * 4, 3, 224, 224), dtype=torch.uint8)
    data = torch.utils.data.TensorDataset(images, torch.zeros(len(images), dtype=torch.long))
    loader = torch.utils.data.DataLoader(data, batch, num_workers=8, pin_memory=True, persistent_workers=True)
    return (batch for _ in repeat(None) for batch in loader)


def images_s(batches: Iterator[Any], batch: int, steps: int) -> float:
    """ResNet-50's rate."""
    step = Step()
    for _ in range(20):
        step(*next(batches))
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step(*next(batches))
    torch.cuda.synchronize()
    return batch * steps / (time.perf_counter() - began)


def compare_rates(part: Part, folder: str, batch: int, steps: int, rounds: int) -> str:
    """ResNet-50 with each kind of data, in turns."""
    rates: dict[str, list[float]] = {"synthetic": [], "device": [], "dataloader": []}
    try:
        for _ in range(rounds):
            began = time.monotonic()
            for way, found in rates.items():
                part.left_s(60)
                found.append(images_s(ready(folder, batch, way), batch, steps))
            part.left_s((time.monotonic() - began) * 1.2)
    except OutOfTimeError as error:
        part.say(f"no further round: {error}")
    medians = {way: statistics.median(found) for way, found in rates.items() if found}
    return "\n".join(
        f"ResNet-50 {way:10} {rate:8.0f} images/s, {rate / medians['synthetic']:.3f} of synthetic data, "
        f"{len(rates[way])} rounds"
        for way, rate in medians.items()
    )


def attempt(part: Part, name: str, measure: Callable[[], str], failed: list[str]) -> None:
    """Says what was measured, or why it was not: the other figures do not depend on it."""
    try:
        part.left_s()
        part.say(measure())
    except Exception as error:
        traceback.print_exc()
        part.say(f"{name} not measured: {type(error).__name__}: {error}")
        failed.append(name)


def main() -> None:
    """Measures and prints."""
    parser = make_parser(__doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    check_gpu("measured", args.out)
    with tempfile.TemporaryDirectory() as made:
        part = begin(args, made)
        part.say(
            f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, batch {args.batch}, {v2.Compose(AUGMENT)}"
        )
        failed: list[str] = []

        def measure_next(name: str, more: tuple[Any, ...] = ()) -> str:
            return f"{name:20} {next_ms(args.folder, args.batch, 20, more):.3f} ms (reach 0.3)"

        def measure_copies() -> str:
            ours, theirs, took_ms = bandwidth(args.batch)
            speeds = f"{ours / 1e9:.1f} GB/s, pinned {theirs / 1e9:.1f}: {ours / theirs:.3f} (reach 0.95)"
            return f"copies               {speeds}\nregistering a slot   {took_ms:.1f} ms, once"

        def measure_rates() -> str:
            return compare_rates(part, args.folder, args.batch, args.steps, args.rounds)

        attempt(part, "next", lambda: measure_next("next on the host"), failed)
        attempt(part, "next of floats", lambda: measure_next("  normalised floats", FLOATS), failed)
        attempt(part, "copies", measure_copies, failed)
        attempt(part, "ResNet-50", measure_rates, failed)
        part.end("not measured", failed)


if __name__ == "__main__":
    main()
