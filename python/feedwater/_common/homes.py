"""Which class an object is of, by its full name: those of other libraries are known without importing them."""

from __future__ import annotations

from typing import Any

__all__ = ["home_of", "homes_of"]


def home_of(value: Any) -> str:
    """Its class, as "module.name"."""
    return _name_class(type(value))


def homes_of(value: Any) -> list[str]:
    """Its class, and those that this is derived from."""
    return [_name_class(kind) for kind in type(value).__mro__]


def _name_class(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
