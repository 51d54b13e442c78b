"""Looking at single samples again: their pixels, and every number that was drawn for them."""

from __future__ import annotations

import base64
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common import filenames
from .._order.steps import Indices
from ..errors import DataError, Error
from .failure import error_of
from .index_use import NO_USE, Counts
from .session import SLACK_S, Session

__all__ = ["Last", "Sample", "check_index", "keys_of", "replay_samples"]

KEYS_AT_ONCE = 2048
"""Samples whose names are asked for at once: a node tells 4096 at most."""
PIXELS_AT_ONCE = 8
"""Samples made again at once: a node gives 60 MiB of pixels at most."""


@dataclass(frozen=True)
class Sample:
    """One sample as a batch had it, before the last hop."""

    key: str
    index: int
    label: int
    image: npt.NDArray[np.uint8] | None
    """[height, width, 3], several crops below each other; None where it does not decode, and with Views."""
    draws: list[dict[str, Any]]
    """Per op: {"op": its class, "applied": whether it did anything, and its parameters, named as torchvision does}."""
    repeat: int = 0
    """Tells the appearances of one sample in one epoch apart."""
    error: Error | None = None
    """Why it does not decode."""
    encoded_bytes: int = 0
    """Size of its file."""
    mask: npt.NDArray[np.uint8] | None = None
    """With masks=: [height, width]."""
    views: tuple[Sample, ...] = ()
    """With Views: the sample as each of them has it, with that one's image and draws."""
    values: dict[str, bytes] = field(default_factory=dict)
    """Fields that the data has besides pictures and labels, by name."""
    result: dict[str, Any] | None = None
    """What python= made of it, after the last hop, by the names of fields, as numpy arrays."""


class Totals:
    """Counts since the Loader was made. Never changed, but replaced."""

    __slots__ = ("batches", "copied", "index", "nbytes", "samples", "skipped", "substituted")

    def __init__(
        self,
        batches: int = 0,
        samples: int = 0,
        nbytes: int = 0,
        copied: int = 0,
        skipped: int = 0,
        substituted: int = 0,
        index: Counts = NO_USE,
    ) -> None:
        self.batches, self.samples, self.nbytes = batches, samples, nbytes
        self.copied, self.skipped, self.substituted, self.index = copied, skipped, substituted, index


class Last:
    """The last batch that the iterator returned."""

    __slots__ = ("_places", "_session", "epoch", "indices", "position")

    def __init__(self, epoch: int, position: int, indices: Indices, places: Indices | None, session: Session) -> None:
        self.epoch = epoch
        self.position = position
        """This rank's first position in the epoch's order."""
        self.indices = indices
        """Of its samples in the data set, row by row; -1 where a row holds none."""
        self._places = places
        self._session = session

    def __repr__(self) -> str:
        return f"Last(epoch={self.epoch}, position={self.position}, indices={self.indices})"

    def place(self, row: int) -> int:
        """A row's position in the epoch's order, of all ranks. Rows that were left out have one too."""
        return self.position + (row if self._places is None else int(self._places[row]))

    @property
    def keys(self) -> list[str]:
        """The samples' names; asked for when looked at. Empty where a row holds none."""
        return keys_of(self._session, self.epoch, self.indices)


def check_index(name: str, value: Any, count: int) -> int:
    """value as one of the numbers below count; raises TypeError or IndexError."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f"replay: {name}={value!r} is no whole number") from None
    if not 0 <= whole < count:
        raise IndexError(f"replay: {name}={whole}: it must be one of 0 to {count - 1}")
    return whole


def keys_of(session: Session, epoch: int, indices: Indices) -> list[str]:
    """The names of samples."""
    held = indices[indices >= 0]
    names: list[str] = []
    for first in range(0, len(held), KEYS_AT_ONCE):
        some = [int(index) for index in held[first : first + KEYS_AT_ONCE]]
        params = {"epoch": epoch, "indices": some, "repeats": [0] * len(some), "pixels": False}
        answer, _ = session.call("replay", params, session.request.start_timeout or SLACK_S)
        names += [filenames.from_json(sample["key"]) for sample in answer["samples"]]
    row = iter(names)
    return [next(row) if index >= 0 else "" for index in indices]


def replay_samples(session: Session, params: dict[str, Any]) -> list[Sample]:
    """Makes samples again, some at a time. params name them as docs/agent.md says."""
    samples: list[Sample] = []
    for part in _split_request(params, PIXELS_AT_ONCE):
        try:
            samples += _replay_part(session, part)
        except DataError:  # together they may be more than an answer has room for
            if _count(part) == 1:
                raise
            for one in _split_request(part, 1):
                samples += _replay_part(session, one)
    return samples


def _replay_part(session: Session, params: dict[str, Any]) -> list[Sample]:
    timeout = session.request.start_timeout or float("inf")
    answer, blob = session.call("replay", {**params, "pixels": True}, timeout)
    entries = answer["samples"]
    ends = [*(entry["offset"] for entry in entries[1:]), len(blob)]
    return [_parse_sample(entry, blob, end) for entry, end in zip(entries, ends)]


def _count(params: dict[str, Any]) -> int:
    return len(params["indices"]) if "indices" in params else int(params["count"])


def _split_request(params: dict[str, Any], most: int) -> Iterator[dict[str, Any]]:
    """The same samples in the same order, at most so many in each part."""
    listed, count = "indices" in params, _count(params)
    for first in range(0, count, most):
        last = min(count, first + most)
        if listed:
            yield params | {name: params[name][first:last] for name in ("indices", "repeats")}
        else:
            yield params | {"position": params["position"] + first, "count": last - first}


def _parse_sample(entry: dict[str, Any], blob: bytes, end: int) -> Sample:
    draws: list[dict[str, Any]] = entry.get("draws") or []
    error = error_of({"kind": "sample", "replayed": True, **entry["error"]}) if entry.get("error") else None
    several = bool(draws) and draws[0]["op"] == "Views"
    sample = Sample(
        key=filenames.from_json(entry["key"]),
        index=entry["index"],
        label=entry["label"],
        image=None if error or several else _read_pixels(entry, entry["offset"], blob),
        draws=[] if several else draws,
        repeat=entry.get("repeat", 0),
        error=error,
        encoded_bytes=entry.get("encoded_bytes", 0),
        values={name: base64.b64decode(value) for name, value in (entry.get("values") or {}).items()},
    )
    if several:
        return replace(sample, views=_parse_views(sample, draws[0]["views"], entry["offset"], blob, end))
    if sample.image is not None and entry["offset"] + sample.image.nbytes < end:
        return replace(sample, mask=_read_mask(sample.image, entry["offset"] + sample.image.nbytes, blob))
    return sample


def _parse_views(sample: Sample, views: list[dict[str, Any]], start: int, blob: bytes, end: int) -> tuple[Sample, ...]:
    """The sample as each view has it; their pixels lie behind each other, each with its mask where there are some."""
    made = []
    pixels = sum(int(view["height"]) * int(view["width"]) for view in views)
    masked = 3 * pixels < end - start
    for view in views:
        image, mask = _read_pixels(view, start, blob), None
        start += image.nbytes
        if masked:
            mask = _read_mask(image, start, blob)
            start += mask.nbytes
        made.append(replace(sample, image=image, mask=mask, draws=view["transforms"]))
    return tuple(made)


def _read_mask(image: npt.NDArray[np.uint8], start: int, blob: bytes) -> npt.NDArray[np.uint8]:
    """That of a picture, which has a number for each pixel."""
    shape = image.shape[:2]
    mask: npt.NDArray[np.uint8] = np.frombuffer(blob, np.uint8, math.prod(shape), start).reshape(shape).copy()
    return mask


def _read_pixels(sized: dict[str, Any], start: int, blob: bytes) -> npt.NDArray[np.uint8]:
    shape = int(sized["height"]), int(sized["width"]), 3
    pixels: npt.NDArray[np.uint8] = np.frombuffer(blob, np.uint8, math.prod(shape), start).reshape(shape).copy()
    return pixels
