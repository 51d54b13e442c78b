"""explain(): what a plan compiles to, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._agent.index_use import NO_USE, IndexUse
from ._agent.plan_info import PlanInfo
from ._arguments.checks import run_length_of
from ._common.constants import COPY_SHARE
from ._config import Config

if TYPE_CHECKING:
    from ._plan.pictures import Picture
    from ._python.batches import Stage

__all__ = ["explain_plan"]

LAST_HOP = "last hop"


def explain_plan(
    config: Config, opened: PlanInfo, stage: Stage | None = None, index: IndexUse = NO_USE, late: IndexUse = NO_USE
) -> str:
    """A table of the ops: where each runs, in whose arithmetic, how exact; and what runs it."""
    rows: list[tuple[str, ...]] = [("op", "place", "dialect", "tier", "arguments")]
    left = list(opened.ops)
    for number, picture in enumerate(config.pictures):
        if config.views:
            rows.append((f"view {number}", "", "", "", ""))
        count = len(picture.compiled.plan_ops())
        rows += _list_rows(picture, left[:count])
        del left[:count]
    if stage is not None:
        rows.append(("python", "here", "its own", "-", stage.name))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join(
        [
            *lines,
            "",
            *_describe_run(config, opened),
            *_describe_index(index, late),
            *_describe_kept(index),
            *_describe_price(stage),
        ]
    )


def _describe_index(use: IndexUse, late: IndexUse) -> list[str]:
    """What indexes pictures had so far, and which copies they lacked of late."""
    if not use.decoded:
        return []
    hits, copies, misses = (f"{100 * count / use.decoded:.0f} %" for count in use[:3])
    line = f"index     of {use.decoded:,} pictures decoded so far {hits} had an index, {copies} a copy, {misses} none"
    lines = [line]
    if late.made_copies:
        lines.append(f"          of late {late.made_copies:,} had their copy made on the way, which is slow once")
    if late.decoded and late.missing_copies >= COPY_SHARE * late.decoded:
        missing = f"{100 * late.missing_copies / late.decoded:.0f} %"
        room = "--index-copies or FEEDWATER_INDEX_COPIES gives room: docs/image-index.md"
        lines.append(f"          of late {missing} could have had a copy, which decodes faster; {room}")
    return lines


def _describe_kept(use: IndexUse) -> list[str]:
    """How much decoding kept pixels saved."""
    if not use.kept:
        return []
    return [f"kept      {use.kept:,} pictures so far were not decoded, for their pixels were kept: docs/keep.md"]


def _describe_price(stage: Stage | None) -> list[str]:
    """What python= costs beside what nodes do, which it cuts the plan from."""
    if stage is None:
        return []
    line = f"python    in {stage.pool.count} processes on this machine, on each sample; nodes do what is above it"
    if not stage.samples:
        return [line, "          its price is known after the first batches"]
    each_s = stage.busy_s / stage.samples
    most = stage.pool.count / each_s
    return [line, f"          {each_s * 1e3:.2f} ms per sample so far: {most:,.0f} samples/s at most"]


def _list_rows(picture: Picture, ops: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """What is done to one picture."""
    made, compiled = [_make_row(op) for op in ops], picture.compiled
    last: list[tuple[str, ...]] = [
        (name.split("(")[0], LAST_HOP, "tensor", "A", _format_arguments(name)) for name in compiled.tail
    ]
    erasing = zip((row for row in made if row[1] == LAST_HOP), compiled.erased_behind)
    for number, (row, behind) in enumerate(erasing):
        last.insert(behind + number, row)
    if picture.final.dtype != compiled.table.dtype:
        last.append(("dtype", LAST_HOP, "tensor", "A", picture.final.dtype))
    return [row for row in made if row[1] != LAST_HOP] + last


def _make_row(op: dict[str, Any]) -> tuple[str, ...]:
    given = (op.get("arguments") or {}).items()
    arguments = ", ".join(f"{name}={value}" for name, value in given if name != "dialect")
    return op["name"], op["place"], op["dialect"], op["tier"], arguments


def _format_arguments(name: str) -> str:
    return name.partition("(")[2].removesuffix(")")


def _describe_run(config: Config, opened: PlanInfo) -> list[str]:
    where = ", ".join(config.nodes) if config.nodes else "this machine"
    output = config.pictures[0].final
    order = "channels first" if output.channels_first else "channels last"
    dtypes = dict.fromkeys(picture.final.dtype for picture in config.pictures)
    several = f"{len(config.pictures)} views, " if config.views else ""
    masks = []
    if config.masks is not None:
        masks = [f"masks     {config.masks.name}: uint8, moved as pictures are, by the nearest one"]
    batches = [
        f"batches   {several}{' and '.join(dtypes)}, {order}, {'torch tensors' if output.torch else 'numpy arrays'}"
    ]
    if config.targets is not None:
        batches.append("targets   moved in this process, by torchvision's functions and what nodes drew")
    if config.python is not None:
        batches = ["batches   what python= returns, stacked"]
    if config.batch_transform is not None:
        batches.append("then      batch_transform, in this process, on whole batches")
    if config.device is not None:
        batches.append(f"device    {config.device}: copied from shared memory ahead of the loop")
    if config.pin_memory:
        batches.append("pinned    every tensor, once the program has begun to use CUDA; peek() gives ordinary copies")
    return [
        f"data      {config.source.name}: {opened.samples:,} samples, {len(opened.classes)} classes, "
        f"fingerprint {opened.fingerprint[:12]}",
        *masks,
        *_describe_order(config),
        *([f"cut       {config.cut}"] if config.cut else []),
        f"made on   {where} ({opened.workers} workers here, kernels {opened.kernels or 'unknown'})",
        *batches,
        f"hashes    plan {opened.plan_hash[:12]}  order {opened.order_hash[:12]}  pixels {opened.pixel_hash[:12]}  "
        f"numerics {opened.numerics[:12]}",
        f"place     last hop: a table of 256 values per channel, used by {_hop_place(config)}",
        "tier      A: the same bytes as the reference; B: within one level; C: same distribution",
    ]


def _describe_order(config: Config) -> list[str]:
    count = run_length_of(config.shuffle)
    if count <= 1:
        return []
    return [f"order     runs of {count:,} neighbours stay together, and are permuted anew each epoch"]


def _hop_place(config: Config) -> str:
    if config.device is None:
        return "the agent; costs this process nothing"
    if any(picture.device_hop is not None for picture in config.pictures):
        return "the GPU, which gets bytes"
    if all(picture.output.dtype == "uint8" for picture in config.pictures):
        return "the agent; the GPU gets bytes"
    return "the agent, and the GPU gets its floats: with python=, noise or erased crops it stays there"
