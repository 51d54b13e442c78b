"""The whole state of a run: a cursor, and what it is a cursor of. JSON, the same on every rank; see state_dict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._agent.plan_info import PlanInfo
from ._agent.revisions import KNOWN
from ._common.numbers import to_whole
from ._version import __version__
from .errors import DataError, StateMismatchError

__all__ = ["VERSION", "State"]

VERSION = 2
AFTER_OTHERS = (
    "Samples and their order are the same; what is made of them may differ, and docs/revisions.md says in what. "
    "load_state_dict(state, strict=False) goes on with the next sample; the release that saved it makes the old bytes"
)
AFTER_ORDER = (
    "In another order samples come twice, and others not at all: use the release that saved it until the epoch ends, "
    "or load_state_dict(state, strict=False) if that does not matter"
)
"""What a state is good for after an upgrade."""


@dataclass(frozen=True)
class State:
    """A loaded state, until it is known to fit."""

    epoch: int
    consumed: int
    raw: dict[str, Any]

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> State:
        """Reads what state_dict gave. An empty one is the beginning."""
        if not isinstance(state, Mapping):
            raise TypeError(f"load_state_dict takes what state_dict() gave, not {state!r:.50}; {{}} is the beginning")
        raw = dict(state)
        if not raw:
            return cls(0, 0, {})
        if raw.get("version") not in (1, VERSION):
            raise StateMismatchError(
                f"the state has version {raw.get('version')!r}; this feedwater reads versions 1 to {VERSION}: "
                "use the release that saved it, or a later one"
            )
        epoch, consumed = to_whole(raw.get("epoch")), to_whole(raw.get("consumed"))
        if epoch is None or consumed is None or epoch < 0 or consumed < 0:
            told = f"epoch={raw.get('epoch')!r} and consumed={raw.get('consumed')!r}"
            raise StateMismatchError(f"the state has {told}: not a state of a Loader")
        if not _is_of_units(raw.get("revisions")):
            raise StateMismatchError(f"the state has revisions={raw['revisions']!r:.80}: not a state of a Loader")
        if not _is_of_stores(raw.get("stores")):
            raise StateMismatchError(f"the state has stores={raw['stores']!r:.80}: not a state of a Loader")
        return cls(epoch, consumed, raw)

    def check_order(self, seed: int, shuffle: bool | str, opened: PlanInfo | None) -> None:
        """Raises StateMismatchError if the state belongs to another order, and says what differs.

        Where nothing is opened, of what the arguments tell alone.
        """
        now = describe_order(seed, shuffle, opened)
        for name, what in _ORDER:
            before = self.raw.get(name)
            if before is not None and now[name] is not None and before != now[name]:
                raise StateMismatchError(
                    f"the state is of another order: {what} was {_shorten_value(before)}, "
                    f"is {_shorten_value(now[name])}. A cursor means nothing there: start without the state, "
                    "or with what it was saved with"
                )

    def check_known(self) -> None:
        """Raises StateMismatchError for a state of before revisions were told that is of a build nobody knows."""
        numerics = self.raw.get("numerics")
        if self.raw.get("version") == 1 and numerics is not None and numerics not in KNOWN:
            raise StateMismatchError(
                f"the state has version 1, and its numerics {_shorten_value(numerics)} are of no build that is known: "
                "whether nodes of today make the same bytes cannot be told. load_state_dict(state, strict=False) goes "
                "on with what they make"
            )

    def check_image(self, now: str | None) -> None:
        """Raises StateMismatchError if the state is of another column of pictures, whose sizes may be the same.

        States saved before columns were told go on.
        """
        before = self.raw.get("image", now)
        if before != now:
            raise StateMismatchError(
                f"the state is of other pictures: image was {before!r}, is {now!r}. "
                "If that is meant, load_state_dict(state, strict=False)"
            )

    def check_pixels(self, opened: PlanInfo) -> None:
        """Raises StateMismatchError if the state was saved with other transforms or on other pixel code."""
        for name, what, now in (
            ("pixels", "transforms (pixel hash)", opened.pixel_hash),
            ("numerics", "numerics of the nodes", opened.numerics),
        ):
            before = self.raw.get(name)
            if before is not None and before != now:
                raise StateMismatchError(
                    f"the state is of other pixels: {what} were {_shorten_value(before)}, are {_shorten_value(now)}. "
                    "If that is meant, load_state_dict(state, strict=False)"
                )
        self._check_revisions(opened.revisions)
        before = self.raw.get("stores") or {}
        if any(opened.stores.get(store, versions) != versions for store, versions in before.items()):
            raise DataError(
                "objects of the data set were replaced in its bucket since the state was saved, by others of the same "
                "names and sizes: put the old ones back. To go on with those that are there now, "
                "load_state_dict(state, strict=False)"
            )

    def _check_revisions(self, now: dict[str, Any] | None) -> None:
        before = self.raw.get("revisions")
        if not before or not now:
            return
        for part in ("trainer", "plan"):
            ours, theirs = before.get(part) or {}, now.get(part) or {}
            unit = min((u for u in {*ours, *theirs} if ours.get(u) != theirs.get(u)), default=None)
            if unit is not None:
                raise StateMismatchError(
                    f"the state is of other bytes: {_tell_revisions(unit, part, before, now)}. "
                    f"{AFTER_ORDER if unit == 'order' else AFTER_OTHERS}"
                )


def _tell_revisions(unit: str, part: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Which revision a unit was of, which it is of, and whose. A state names the build of the nodes alone."""
    was, build = (before.get(part) or {}).get(unit), before.get("build")
    has = (now.get(part) or {}).get(unit)
    if part == "trainer":
        return (
            f"{unit} is of revision {has} in this feedwater, {__version__}, and was of {was} (nodes of build {build})"
        )
    return f"{unit} was of revision {was} (build {build}), is of {has} (build {now.get('build')})"


def _is_of_units(revisions: Any) -> bool:
    """Whether these are revisions as state_dict gives them: maps from units to numbers, and a build; or None."""
    if revisions is None:
        return True
    if not isinstance(revisions, Mapping) or not isinstance(revisions.get("build", ""), str):
        return False
    parts = [revisions.get(part) or {} for part in ("plan", "codecs", "trainer")]
    return all(isinstance(part, Mapping) and all(type(n) is int and n >= 0 for n in part.values()) for part in parts)


def _is_of_stores(stores: Any) -> bool:
    """Whether these are stores as state_dict gives them: versions by the store, or None."""
    if stores is None:
        return True
    return isinstance(stores, Mapping) and all(isinstance(text, str) for pair in stores.items() for text in pair)


LONGEST = 32
"""Longer text is a digest, of which the first part is shown."""
_ORDER = (
    ("snapshot", "the data set (fingerprint)"),
    ("seed", "seed"),
    ("shuffle", "shuffle"),
    ("order", "the order (hash)"),
)


def describe_order(seed: int, shuffle: bool | str, opened: PlanInfo | None) -> dict[str, Any]:
    """What a cursor is a cursor of; None for what is not known yet."""
    return {
        "version": VERSION,
        "snapshot": opened and opened.fingerprint,
        "seed": seed,
        "shuffle": shuffle,
        "order": opened and opened.order_hash,
        "pixels": opened and opened.pixel_hash,
        "numerics": opened and opened.numerics,
        "revisions": opened and opened.revisions,
        "stores": opened and opened.stores,
    }


def _shorten_value(value: Any) -> Any:
    return f"{value[:12]}…" if isinstance(value, str) and len(value) > LONGEST else value
