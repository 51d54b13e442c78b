"""Trace context: what the spans that the agent makes of batches are part of; docs/tracing.md."""

from __future__ import annotations

import os
import sys

__all__ = ["find_parent_span"]

MOST_BYTES = 64
"""More than the text of a trace context has."""


def find_parent_span() -> bytes:
    """The span that this code runs in, as W3C writes it: OpenTelemetry's if the program uses it, else TRACEPARENT's.

    Empty: none. What it is worth the agent finds out.
    """
    current = getattr(sys.modules.get("opentelemetry.trace"), "get_current_span", None)
    if current is not None:
        span = current().get_span_context()
        if span.is_valid:
            return b"00-%032x-%016x-%02x" % (span.trace_id, span.span_id, span.trace_flags)
    return os.environ.get("TRACEPARENT", "").encode("ascii", "replace")[:MOST_BYTES]
