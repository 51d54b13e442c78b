"""URLs for messages: without what nobody else should read."""

from __future__ import annotations

import re

__all__ = ["without_secrets"]

_USER = re.compile(r"(?<=//)(?:[^/@]*|[^/@:]*:(?!\d+(?:/|$))[^@]*)@")
# Values of all options but those that an URL of a bucket may have.
_VALUE = re.compile(r"(?<=[?&])((?!endpoint=|region=|style=|anonymous=|socket=)[\w%.\[\]-]+=)[^&]*")


def without_secrets(place: str) -> str:
    """A place, of an URL without names, passwords and values of options that there are not."""
    if not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", place):
        return place
    return _VALUE.sub(r"\1…", _USER.sub("…@", place))
