"""Which streams of the GPUs a program uses, as torch's allocator tells."""

from __future__ import annotations

from typing import Any

__all__ = ["is_foreign", "used_streams"]


def used_streams(cuda: Any) -> set[tuple[int, int]]:
    """Device and stream of all tensors of torch.cuda that are alive, but for what a CUDA graph was captured with."""
    return {
        (segment["device"], segment["stream"])
        for segment in _list_segments(cuda)
        if segment["allocated_size"] and tuple(segment.get("segment_pool_id", (0, 0))) == (0, 0)
    }


def is_foreign(stream: Any) -> bool:
    """Whether another library made the stream, and may destroy it: torch numbers those by their handles, and its own
    otherwise.
    """
    return bool(stream.cuda_stream and stream.stream_id == stream.cuda_stream)


def _list_segments(cuda: Any) -> list[dict[str, Any]]:
    """The allocator's memory, without what torch recorded of its past: that may be long, and is copied each time."""
    try:
        found: list[dict[str, Any]] = cuda.memory_snapshot(include_traces=False)
    except TypeError:  # an older torch
        found = cuda.memory_snapshot()
    return found
