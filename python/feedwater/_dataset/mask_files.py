"""Masks: how the files of masks are called, and which numbers their pixels stand for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from .._common.numbers import to_whole

__all__ = ["Masks"]

MOST = 255
MOST_COLOURS = 4096


class Masks:
    """A folder of masks whose names or numbers are not the Loader's own, for Loader(…, masks=Masks(…)).

    folder          as masks= takes it: a folder here, or with nodes "root/path"
    suffix          what names of masks have behind those of their pictures, before the ending: Cityscapes has
                    "_gtFine_labelIds"
    picture_suffix  what names of pictures have there: Cityscapes has "_leftImg8bit"
    palette         {(r, g, b): number}, or a list of colours, whose places are the numbers, for masks that are PNGs of
                    colours; or {number in the file: number}, for others in place of them
    others          the number of all colours, or numbers, that palette does not name; None: such a mask is refused

    Numbers are from 0 to 255. What a transform puts around masks is a number as it is, and not looked up.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        suffix: str = "",
        picture_suffix: str = "",
        palette: Mapping[Any, int] | Iterable[tuple[int, int, int]] | None = None,
        others: int | None = None,
    ) -> None:
        for name, value in (("suffix", suffix), ("picture_suffix", picture_suffix)):
            if not isinstance(value, str) or "/" in value:
                raise TypeError(f"{name}={value!r:.80}: needs the end of a name, without its ending")
        if palette is None and others is not None:
            raise ValueError("others= is about what palette= does not name, and there is none")
        self.folder, self.suffix, self.picture_suffix = folder, suffix, picture_suffix
        self.others = None if others is None else _to_number(others, "others")
        self.colours: dict[tuple[int, int, int], int] = {}
        """Numbers by colours."""
        self.numbers: dict[int, int] = {}
        """Numbers by those in the files."""
        if palette is not None:
            self._read_palette(palette)

    def _read_palette(self, palette: Any) -> None:
        listed = not isinstance(palette, Mapping)
        rows = [(colour, number) for number, colour in enumerate(palette)] if listed else list(palette.items())
        for key, number in rows:
            if isinstance(key, (tuple, list)):
                self.colours[_to_colour(key)] = _to_number(number, f"the number of {key!r}")
            elif listed:
                raise TypeError(f"palette: {key!r:.60} is no colour (r, g, b)")
            else:
                self.numbers[_to_number(key, "a number of the file")] = _to_number(number, f"the number of {key!r}")
        if self.colours and self.numbers:
            raise ValueError("palette has colours and numbers: a mask has one of them")
        if not rows:
            raise ValueError("palette names nothing")
        if len(self.colours) > MOST_COLOURS:
            raise ValueError(f"palette has {len(self.colours):,} colours, at most {MOST_COLOURS:,}")

    def to_plan(self) -> dict[str, Any]:
        """What the plan says of them, besides where they lie."""
        said: dict[str, Any] = {
            "picture_suffix": self.picture_suffix,
            "suffix": self.suffix,
            "palette": [[*colour, number] for colour, number in sorted(self.colours.items())],
            "numbers": [[*row] for row in sorted(self.numbers.items())],
        }
        said = {name: value for name, value in said.items() if value}
        return said if self.others is None else said | {"others": self.others}

    def __repr__(self) -> str:
        return f"<feedwater.Masks in {os.fspath(self.folder)}>"


def _to_number(value: Any, what: str) -> int:
    number = to_whole(value)
    if number is None or not 0 <= number <= MOST:
        raise ValueError(f"palette: {what} is {value!r:.60}, and masks hold numbers from 0 to {MOST}")
    return number


def _to_colour(value: Any) -> tuple[int, int, int]:
    if len(value) != 3:
        raise ValueError(f"palette: {value!r:.60} is no colour (r, g, b)")
    red, green, blue = (_to_number(one, f"a part of {tuple(value)!r:.60}") for one in value)
    return red, green, blue
