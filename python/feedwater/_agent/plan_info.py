"""What a Loader asks the agent to open, and the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .._common.filenames import from_json
from .slots import Field
from .table_text import TableText
from .trust import Trust

__all__ = ["PlanInfo", "Request"]


@dataclass(frozen=True)
class Request:
    """What a Loader asks the agent for."""

    plan: dict[str, Any]
    nodes: tuple[str, ...]
    local: str | None
    job: Callable[[], str]
    """Asked for when the plan is opened: ranks may not know of each other before."""
    workers: int
    timeout: float
    start_timeout: float
    memory: int | None
    """Most bytes for slots; None: as the machine has room."""
    labels_unused: bool
    """Whether the program asks for no labels: where the data has none, a plan without them does."""
    table: TableText | None
    """The list of files that the plan names."""
    last_hop: dict[str, dict[str, Any]]
    """How fields of pictures leave the agent, by name."""
    trust: Trust = field(default_factory=Trust)


@dataclass(frozen=True)
class PlanInfo:
    """The agent's answer to open."""

    plan: str
    plan_hash: str
    order_hash: str
    pixel_hash: str
    numerics: str
    revisions: dict[str, Any] | None
    """Of the units that make the job's batches, as a state has them."""
    fingerprint: str
    stores: dict[str, str]
    """Of servers that the data lies on: digests of the versions of its objects, by digests of the store."""
    samples: int
    classes: tuple[str, ...]
    fields: tuple[Field, ...]
    """Of one sample, as nodes make them; not placed yet."""
    ops: tuple[dict[str, Any], ...]
    window: int
    version: str
    kernels: str
    workers: int
    nodes: tuple[dict[str, Any], ...]
    traced: bool
    """Whether the agent makes spans of batches."""

    @classmethod
    def from_answer(cls, answer: dict[str, Any]) -> PlanInfo:
        """Reads the answer's JSON."""
        same = ("plan", "plan_hash", "order_hash", "pixel_hash", "numerics", "fingerprint", "samples", "window")
        return cls(
            **{name: answer[name] for name in same},
            **{name: answer.get(name, "") for name in ("version", "kernels")},
            revisions=answer.get("revisions"),
            stores=answer.get("stores") or {},
            classes=tuple(from_json(entry["name"]) for entry in answer.get("classes") or ()),
            fields=tuple(Field(f["name"], f["dtype"], tuple(f["shape"]), 0) for f in answer["fields"]),
            ops=tuple(answer.get("ops") or ()),
            workers=answer.get("workers", 0),
            nodes=tuple(answer.get("nodes") or ()),
            traced=bool(answer.get("traced")),
        )

    def find_field(self, name: str) -> Field:
        """The field of that name, which is there."""
        return next(field for field in self.fields if field.name == name)

    def identity(self) -> tuple[str, str, str]:
        """What must not change when another agent takes over."""
        return self.fingerprint, self.order_hash, self.pixel_hash
