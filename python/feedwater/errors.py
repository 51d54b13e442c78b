"""What can go wrong, one class per thing a caller decides by. All derive from Error."""

from __future__ import annotations

from typing import Any

from ._common.filenames import escape_name

__all__ = [
    "AccessError",
    "AgentError",
    "DataError",
    "DeviceError",
    "Error",
    "ForkedError",
    "NotYetError",
    "NumericsError",
    "PlanError",
    "PythonError",
    "RevisionError",
    "SampleError",
    "StallError",
    "StateMismatchError",
    "UnsupportedTransformError",
    "VersionError",
]


class Error(RuntimeError):
    """Base of all errors of this package. Names that are not UTF-8 are escaped in messages, not in attributes."""

    def __init__(self, message: str = "") -> None:
        super().__init__(escape_name(message))


class SampleError(Error):
    """A completely read file does not decode. The Loader stands before its batch: the next iter() meets it again."""

    def __init__(
        self, message: str, *, key: str = "", index: int = -1, op: str = "", node: str = "", cause: str = ""
    ) -> None:
        super().__init__(message)
        self.key = key
        """Name of the sample in its data set."""
        self.index = index
        """Number of the sample in its data set."""
        self.op = op
        """The op that refused it: "decode" or the name of a transform."""
        self.node = node
        """Address of the node that said so; empty for this machine."""
        self.cause = cause
        """What the op said."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _sample_error, (str(self), self.key, self.index, self.op, self.node, self.cause)


def _sample_error(message: str, key: str, index: int, op: str, node: str, cause: str) -> SampleError:
    return SampleError(message, key=key, index=index, op=op, node=node, cause=cause)


class PythonError(Error):
    """What python= names raised, or its processes ended. The Loader stands before its batch; iter() retries it."""

    def __init__(self, message: str, *, key: str = "", index: int = -1) -> None:
        super().__init__(message)
        self.key = key
        """Name of the sample in its data set; empty if no one sample is to blame."""
        self.index = index
        """Number of the sample in its data set."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _python_error, (str(self), self.key, self.index)


def _python_error(message: str, key: str, index: int) -> PythonError:
    return PythonError(message, key=key, index=index)


class StallError(Error, TimeoutError):
    """No batch came in time; the message holds each node's last error. Calling next again goes on waiting."""


class UnsupportedTransformError(Error, TypeError):
    """A transform that nodes cannot run; the message names the op, the argument and the nearest supported form."""


class PlanError(Error, ValueError):
    """A plan that no node can run."""


class StateMismatchError(Error, ValueError):
    """The loaded state belongs to other data, another order or other pixels; the message says which part differs."""


class ForkedError(Error):
    """A live Loader was used in a forked child of the process that made it."""


class DataError(Error):
    """The data set is missing, empty, changed, different between nodes, or too much of it is broken."""


class DeviceError(Error):
    """The GPU has no memory for a batch, is lost, or cannot take one now. The Loader stands before its batch."""


class AccessError(Error, PermissionError):
    """Nodes and this side do not trust each other, or no node allows what was asked for."""


class AgentError(Error):
    """The agent cannot be started, or dies again and again; the message holds its last log lines."""


class NumericsError(Error):
    """No node has the numerics that the job is pinned to."""


class RevisionError(Error):
    """No node makes the bytes that the job began with: a unit of their code is of another revision.

    unit names it; pinned is the job's revision of it, which the build pinned_build had, found that of build.
    """

    def __init__(
        self,
        message: str,
        *,
        unit: str | None = None,
        pinned: int | None = None,
        found: int | None = None,
        pinned_build: str | None = None,
        build: str | None = None,
    ) -> None:
        super().__init__(message)
        self.unit, self.pinned, self.found, self.pinned_build, self.build = unit, pinned, found, pinned_build, build


class VersionError(Error):
    """No node speaks the protocol of this version; the message says what to update."""


class NotYetError(Error, NotImplementedError):
    """A designed feature that this version does not have; the message says what to do instead."""
