"""The agent's error objects (docs/agent.md) as exceptions."""

from __future__ import annotations

from typing import Any

from .errors import (
    AccessError,
    AgentError,
    DataError,
    Error,
    NumericsError,
    PlanError,
    SampleError,
    StallError,
    VersionError,
)

__all__ = ["error_of"]


def error_of(error: dict[str, Any]) -> Error:
    """The exception for an error object of the agent."""
    kind, message = error.get("kind"), error.get("message", "no message")
    if kind == "sample":
        where = f" on node {error['node']}" if error.get("node") else ""
        text = (
            f"{error.get('key')} (index {error.get('index')}): "
            f"{error.get('op')}: {error.get('cause') or message}{where}. "
            f'Pass on_error="skip" or "substitute" to go on without it, or loader.replay({error.get("index")}) to look'
        )
        known = {name: error[name] for name in ("key", "index", "op", "node", "cause") if error.get(name) is not None}
        return SampleError(text, **known)
    if kind == "plan":
        field, nearest = error.get("field") or "plan", error.get("nearest")
        near = f" (nearest: {nearest})" if nearest and nearest not in message else ""
        return PlanError((message if message.startswith(field) else f"{field}: {message}") + near)
    if kind == "data":
        path = error.get("path")
        return DataError(f"{path}: {message}" if path and path not in message else message)
    if kind == "numerics":
        return NumericsError(message + _each(error.get("nodes"), message))
    if kind == "version":
        return VersionError(message + _each(error.get("nodes"), message))
    if kind == "access":
        return AccessError(message + _each(error.get("nodes"), message))
    if kind == "stall":
        return StallError(message + _each(error.get("nodes"), message))
    return AgentError(f"the agent failed: {message}")


def _each(nodes: Any, message: str) -> str:
    """A line per node that the message does not name already."""
    lines = [f"\n  {n['addr']}: {n.get('error') or n.get('state')}" for n in nodes or () if n["addr"] not in message]
    return "".join(lines)
