"""Judges and advises."""

from .rules import judge
