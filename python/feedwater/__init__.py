"""Feedwater: batches of decoded and augmented pictures for training loops, from this machine or from nodes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._loader import Loader
from ._version import __version__
from .errors import (
    AccessError,
    AgentError,
    DataError,
    DeviceError,
    Error,
    ForkedError,
    NotYetError,
    NumericsError,
    PlanError,
    PythonError,
    RevisionError,
    SampleError,
    StallError,
    StateMismatchError,
    UnsupportedTransformError,
    VersionError,
)

if TYPE_CHECKING:
    from . import callbacks, hf, testing, transforms
    from ._dataset.bytes_source import Bytes
    from ._dataset.coco import Coco
    from ._dataset.mask_files import Masks
    from ._dataset.table import Table
    from ._remote import RemoteDataset
    from ._stages.stages import stages
    from .doctor.live import diagnose
    from .transforms import Views

__all__ = [
    "AccessError",
    "AgentError",
    "Bytes",
    "Coco",
    "DataError",
    "DeviceError",
    "Error",
    "ForkedError",
    "Loader",
    "Masks",
    "NotYetError",
    "NumericsError",
    "PlanError",
    "PythonError",
    "RemoteDataset",
    "RevisionError",
    "SampleError",
    "StallError",
    "StateMismatchError",
    "Table",
    "UnsupportedTransformError",
    "VersionError",
    "Views",
    "__version__",
    "callbacks",
    "diagnose",
    "hf",
    "stages",
    "testing",
    "transforms",
]


def __getattr__(name: str) -> Any:
    """What not every program needs comes when it is asked for; RemoteDataset needs torch."""
    if name == "RemoteDataset":
        from ._remote import RemoteDataset

        return RemoteDataset
    if name == "stages":
        from ._stages.stages import stages

        return stages
    if name in ("callbacks", "hf", "testing", "transforms"):
        return import_module(f".{name}", __name__)
    if name == "Views":
        return import_module(".transforms", __name__).Views
    if name == "diagnose":
        from .doctor.live import diagnose

        return diagnose
    if name == "Bytes":
        from ._dataset.bytes_source import Bytes

        return Bytes
    if name == "Coco":
        from ._dataset.coco import Coco

        return Coco
    if name == "Masks":
        from ._dataset.mask_files import Masks

        return Masks
    if name == "Table":
        from ._dataset.table import Table

        return Table
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
