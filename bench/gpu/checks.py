"""On a machine with a CUDA GPU: what tests/test_device.py checks without one, by the real driver.

    python bench/gpu/checks.py [FOLDER] [--only graph] [--seconds 420] [--out FILE]

Each check prints a line; one that fails prints why, and the command ends with 1. Where there is no GPU it says so and
ends with 1.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import feedwater
import torch
from needs import check_gpu
from part import OutOfTimeError, begin, make_parser
from torchvision.transforms import v2

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
OPS = [v2.RandomResizedCrop(64), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
CHECKS: dict[str, Callable[[str], None]] = {}


def check(function: Callable[[str], None]) -> Callable[[str], None]:
    """Adds it to the list."""
    CHECKS[function.__name__.removeprefix("check_")] = function
    return function


def make_loader(folder: str, **options: Any) -> Any:
    """A Loader of small pictures, normalised, with rectangles erased."""
    transform = v2.Compose([*OPS, v2.Normalize(MEAN, STD), v2.RandomErasing(0.5, value=0.3)])
    options = {"batch_size": 32, "shuffle": True, **options}
    return feedwater.Loader(folder, options.pop("transform", transform), **options)


def first_batches(folder: str, count: int = 12, **options: Any) -> list[list[torch.Tensor]]:
    """Copies on the CPU."""
    with make_loader(folder, **options) as loader:
        return [[field.cpu().clone() for field in batch] for batch, _ in zip(loader, range(count))]


def compare(ours: list[list[torch.Tensor]], theirs: list[list[torch.Tensor]]) -> None:
    """Raises AssertionError unless they are equal to the bit."""
    assert len(ours) == len(theirs) > 0
    for number, (one, other) in enumerate(zip(ours, theirs)):
        for a, b in zip(one, other, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b), f"batch {number} differs"


@check
def check_equal(folder: str) -> None:
    """Every type and layout equals the agent's last hop."""
    for dtype in ("float32", "float16", "bfloat16"):
        for layout in (torch.contiguous_format, torch.channels_last):
            options = {"dtype": dtype, "memory_format": layout}
            compare(first_batches(folder, 3, device="cuda", **options), first_batches(folder, 3, **options))


@check
def check_busy_gpu(folder: str) -> None:
    """A GPU that is far behind the host gets each batch whole, and slots are not used too early."""
    expected, seen = first_batches(folder), []
    with make_loader(folder, device="cuda", memory=8 << 20) as loader:
        for batch, _ in zip(loader, range(len(expected))):
            torch.cuda._sleep(50_000_000)
            seen.append([field.clone() for field in batch])
    compare([[field.cpu() for field in batch] for batch in seen], expected)


@check
def check_no_sync(folder: str) -> None:
    """next makes nobody wait for the GPU: torch raises where a call of its own would."""
    with make_loader(folder, device="cuda") as loader:
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        for _ in range(6):
            torch.cuda.set_sync_debug_mode("error")
            try:
                next(batches)
            finally:
                torch.cuda.set_sync_debug_mode("default")


def run_rank(rank: int, folder: str, out: str, device: str) -> None:
    """One of two ranks: a model in DDP over gloo, and its batches kept in a file."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{out}/store", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3 * 64 * 64, 2).to(device))
    seen: list[list[torch.Tensor]] = []
    with make_loader(folder, device=device) as loader:
        for batch, _ in zip(loader, range(4)):
            model(batch[0].flatten(1)).sum().backward()
            seen.append([field.cpu().clone() for field in batch])
    torch.save(seen, f"{out}/{rank}")
    torch.distributed.destroy_process_group()


@check
def check_ranks(folder: str, device: str = "cuda") -> None:
    """Two ranks on one GPU, by gloo, as NCCL has one GPU for each: each has its own part."""
    with tempfile.TemporaryDirectory() as out:
        torch.multiprocessing.spawn(run_rank, (folder, out, device), nprocs=2)
        for rank in range(2):
            compare(torch.load(Path(out) / str(rank)), first_batches(folder, 4, rank=rank, num_replicas=2))


@check
def check_streams(folder: str) -> None:
    """A loop that changes streams, and two Loaders."""
    expected, seen = first_batches(folder), []
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    with make_loader(folder, device="cuda") as one, make_loader(folder, device="cuda") as two:
        for number, (batch, other) in enumerate(zip(one, two)):
            if number == len(expected):
                break
            with torch.cuda.stream(streams[number % 2]):
                streams[number % 2].wait_stream(torch.cuda.default_stream())
                torch.cuda._sleep(5_000_000)
                seen.append([field.clone() for field in other])
                for field in other:
                    field.record_stream(streams[number % 2])
            assert batch[0].is_cuda
    torch.cuda.synchronize()
    compare([[field.cpu() for field in batch] for batch in seen], expected)


@check
def check_graph(folder: str) -> None:
    """Batches copied into what a CUDA graph reads; next in a capture is refused."""
    expected, seen = first_batches(folder), []
    with make_loader(folder, device="cuda") as loader:
        batches = iter(loader)
        first = next(batches)
        static, made = first[0].clone(), torch.empty_like(first[0])
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            made.copy_(static * 1.0)
            try:
                next(batches)
                raise AssertionError("next in a capture was not refused")
            except feedwater.DeviceError:
                pass
        for batch in [first, *(batch for batch, _ in zip(batches, range(len(expected) - 1)))]:
            static.copy_(batch[0])
            graph.replay()
            seen.append([made.clone(), batch[1]])
    compare([[field.cpu() for field in batch] for batch in seen], expected)


@check
def check_compile(folder: str) -> None:
    """A compiled function reads batches, and item() each step syncs."""
    double = torch.compile(lambda x: x * 2)
    expected = [2 * batch[0] for batch in first_batches(folder)]
    with make_loader(folder, device="cuda") as loader:
        for batch, other in zip(loader, expected):
            made = double(batch[0])
            made.mean().item()
            assert torch.equal(made.cpu(), other)


@check
def check_break_and_close(folder: str) -> None:
    """Breaks, close amid copies, and batches that outlive the Loader."""
    expected = first_batches(folder, 1)
    for _ in range(5):
        loader = make_loader(folder, device="cuda")
        kept = next(iter(loader))
        torch.cuda._sleep(20_000_000)
        loader.close()
        compare([[field.cpu() for field in kept]], expected)


@check
def check_out_of_memory(folder: str) -> None:
    """No memory on the GPU is told, and nothing is lost."""
    expected, seen, refused = first_batches(folder, 6), [], 0
    with make_loader(folder, device="cuda") as loader:
        batches = iter(loader)
        while len(seen) < len(expected):
            if len(seen) == 3 and not refused:
                torch.cuda.empty_cache()
                torch.cuda.set_per_process_memory_fraction(1e-6)
                try:
                    while True:
                        seen.append([field.cpu() for field in next(batches)])
                except feedwater.DeviceError as error:
                    if "CUDA out of memory" not in str(error):
                        raise
                    refused += 1
                torch.cuda.set_per_process_memory_fraction(1.0)
            seen.append([field.cpu() for field in next(batches)])
    compare(seen[: len(expected)], expected)


@check
def check_pinned(folder: str) -> None:
    """pin_memory=True: every field is pinned, and copies that do not block read the right batch."""
    expected, seen = first_batches(folder), []
    torch.cuda.init()
    with make_loader(folder, pin_memory=True) as loader:
        for batch, _ in zip(loader, range(len(expected))):
            assert all(field.is_pinned() for field in batch)
            torch.cuda._sleep(20_000_000)
            seen.append([field.to("cuda", non_blocking=True) for field in batch])
    compare([[field.cpu() for field in batch] for batch in seen], expected)


@check
def check_refusal(folder: str) -> None:
    """A registration that is refused leaves no error behind."""
    from feedwater._device.runtime import find_runtime

    gpu = find_runtime(torch, "cuda")
    memory = torch.empty(1 << 20, dtype=torch.uint8)
    address = -(-memory.data_ptr() // 4096) * 4096
    assert gpu.register_memory(address, 8192) == ""
    reason = gpu.register_memory(address, 8192)
    assert reason, "the same memory was registered twice"
    torch.ones(8, device="cuda").add_(1).cpu()
    assert gpu.unregister_memory(address)
    assert not gpu.unregister_memory(address)
    torch.ones(8, device="cuda").add_(1).cpu()


def main() -> None:
    """Runs the checks."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", choices=CHECKS)
    args = parser.parse_args()
    check_gpu("checked", args.out)
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        part = begin(args, made)
        part.say(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}")
        for name in [args.only] if args.only else CHECKS:
            try:
                part.left_s()
                CHECKS[name](args.folder)
                part.say(f"ok      {name}")
            except OutOfTimeError as error:
                failed += 1
                part.say(f"not run {name}: {error}")
            except Exception:
                failed += 1
                part.say(f"FAILED  {name}\n{traceback.format_exc()}")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
