"""The agent's error objects (docs/agent.md) as exceptions."""

from __future__ import annotations

import json
from typing import Any

from .._common.filenames import from_json
from .._torchvision.pillow import not_heard
from ..errors import (
    AccessError,
    AgentError,
    DataError,
    Error,
    NumericsError,
    PlanError,
    RevisionError,
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
        cause = error.get("cause") or message
        text = f"{error.get('key')} (index {error.get('index')}): {error.get('op')}: {cause}{where}. {_way_out(error)}"
        known = {name: error[name] for name in ("key", "index", "op", "node", "cause") if error.get(name) is not None}
        if "key" in known:
            known["key"] = from_json(known["key"])
        return SampleError(text, **known)
    if kind == "plan":
        field, nearest = error.get("field") or "plan", error.get("nearest")
        if nearest:
            spelled = _spell_transform(nearest)
            message, nearest = message.replace(nearest, spelled), spelled
        near = f" (nearest: {nearest})" if nearest and nearest not in message else ""
        return PlanError((message if message.startswith(field) else f"{field}: {message}") + near)
    if kind == "data":
        path = error.get("path")
        return DataError(f"{path}: {message}" if path and path not in message else message)
    if kind == "numerics":
        return NumericsError(message + _list_nodes(error.get("nodes"), message))
    if kind == "revision":
        known = {name: error.get(name) for name in ("unit", "pinned", "found", "pinned_build", "build")}
        return RevisionError(message + _list_nodes(error.get("nodes"), message), **known)
    if kind == "version":
        return VersionError(message + _list_nodes(error.get("nodes"), message))
    if kind == "access":
        return AccessError(message + _list_nodes(error.get("nodes"), message))
    if kind == "stall":
        return StallError(message + _list_nodes(error.get("nodes"), message))
    return AgentError(f"the agent failed: {message}")


def _way_out(error: dict[str, Any]) -> str:
    """What to do about a sample. Masks of another kind are so all together, and leaving them out leaves nothing."""
    if error.get("op") == "mask" and "a mask has a palette" in str(error.get("cause")):
        return (
            "Save the masks' numbers once as 8-bit grey, ids in an array [H, W], say: "
            "PIL.Image.fromarray(ids.astype(numpy.uint8)).save(…)"
        )
    switch = not_heard(str(error.get("op")), str(error.get("cause")))
    look = "" if error.get("replayed") else f", or loader.replay({error.get('index')}) to look"
    out = f'Pass on_error="skip" or "substitute" to go on without it{look}'
    return f"{switch}. {out}" if switch else out


def _spell_transform(nearest: str) -> str:
    """A plan's transform as it is written in Python, and for a crop, which gives a size, what else gives it."""
    try:
        step = json.loads(nearest)
    except ValueError:
        return nearest
    if not isinstance(step, dict) or "op" not in step:
        return nearest
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in step.items()}
    op = values.pop("op")
    if op == "CenterCrop":
        size = values["size"]
        return f"CenterCrop({size}), RandomResizedCrop({size}) or Resize({size})"
    return f"{op}({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def _list_nodes(nodes: Any, message: str) -> str:
    """A line per node that the message does not name already."""
    lines = [f"\n  {n['addr']}: {n.get('error') or n.get('state')}" for n in nodes or () if n["addr"] not in message]
    return "".join(lines)
