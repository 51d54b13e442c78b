"""Figures of tests, for who reads them."""

from __future__ import annotations


def report(line: str) -> None:
    """A measured number, for the reader of `pytest -s`."""
    print(f"\n    {line}", end="", flush=True)
