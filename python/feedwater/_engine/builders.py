"""Who makes the loop's batches of slots: on the host, in worker processes, on a GPU."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .._agent.feed import Feed
from .._agent.plan_info import PlanInfo
from .._batch.batch import Builder
from .._config import Config
from .._device.transfer import Transfer
from .._device.watch import StreamWatch
from .._meter.pace import Pace

if TYPE_CHECKING:
    from .._python.batches import Stage

__all__ = ["make_builder", "make_host_builder", "make_transfer"]


def make_transfer(device: str, pace: Pace) -> Transfer:
    """Copies to the GPU that device means, which is found out now and is the same ever after."""
    from .._device import runtime

    transfer = Transfer(runtime.find_runtime(sys.modules["torch"], device))
    watch = StreamWatch(
        f"the program has tensors of further streams on {transfer.runtime.name}: one that works on a batch by itself, "
        "as in classes that fetch ahead, has to wait first, side.wait_stream(torch.cuda.current_stream()), or it reads "
        "the batch before it was copied; docs/device.md#classes-that-fetch-ahead"
    )

    def note_landing(stream: Any) -> None:
        pace.note_landing(stream)
        watch.note_batch(transfer.runtime, [stream])

    transfer.landed = note_landing
    return transfer


def make_builder(config: Config, opened: PlanInfo, feed: Feed, python: Stage | None, transfer: Transfer | None) -> Any:
    """The Builder of a Loader's batches. python: what runs python=; transfer: copies to a GPU."""
    if transfer is None:
        return make_host_builder(config, opened, feed, python)
    from .._batch.device_batch import DeviceBuilder, MovedBuilder

    if python is None:
        return DeviceBuilder(transfer, feed, config.pictures, opened, config.names, config.as_dict, config.relabel)
    return MovedBuilder(transfer, make_host_builder(config, opened, feed, python))


def make_host_builder(config: Config, opened: PlanInfo, feed: Feed, python: Stage | None) -> Builder:
    """One whose batches lie in the CPU's memory."""
    look = config.pictures, opened, config.names, config.as_dict
    if python is None:
        return Builder(*look)
    from .._python.batches import PythonBuilder

    builder: Builder = PythonBuilder(python, feed, *look)
    return builder
