"""The last hop on a GPU: what ToDtype and Normalize make of each value of a channel, looked up in the agent's table.

A table's elements are moved, never computed with, so pictures are equal to the agent's to the bit in every type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .._value_table import CHANNELS, VALUES, Table
from .runtime import Runtime

__all__ = ["Hop"]

MOST_VALUES = 1 << 22
"""Values of pictures that are looked up at once: the places in the table take four bytes of the GPU for each."""


class Hop:
    """Makes pictures of one field final, on the GPU."""

    def __init__(
        self,
        runtime: Runtime,
        torch: Any,
        table: Table,
        layout: Literal["hwc", "chw"],
        erasures: Sequence[Table] = (),
    ) -> None:
        self._runtime, self._torch = runtime, torch
        self._dtype = getattr(torch, table.dtype)
        self._planar = layout == "chw"
        self._table = runtime.upload_constant(_read_table(torch, table, self._dtype))
        self._first = runtime.upload_constant(torch.arange(CHANNELS, dtype=torch.int32, device="cpu") * VALUES)
        """Where each channel's values begin in the table."""
        self._erasures = [
            runtime.upload_constant(_read_table(torch, one, self._dtype)[::VALUES].clone()) for one in erasures
        ]
        """What rectangles are filled with, a value for each channel."""
        self._made_on = runtime.current_stream()

    def finish_pictures(self, raw: Any, boxes: Any = None, valid: Any = None) -> Any:
        """Pictures uint8 [..., H, W, C] in their final type, as [..., C, H, W] with the layout's strides.

        boxes are int64 [N, n, 6], as docs/agent.md has the field erase; raw is [N, H, W, C] then. Rows that are not
        valid, a bool for each, become zeros. Nothing is done yet when this returns: it is submitted.
        """
        *outer, height, width, channels = raw.shape
        sides = (channels, height, width) if self._planar else (height, width, channels)
        self._keep_constants()
        made = self._runtime.allocate((*outer, *sides), self._dtype)
        final = made if self._planar else made.movedim(-1, -3)

        def work() -> None:
            with self._torch.no_grad():
                self._look_up(raw, made)
                for number, value in enumerate(self._erasures if boxes is not None else ()):
                    self._erase(final, boxes[:, number], value)
                if valid is not None:
                    rows = (~valid).view(-1, *[1] * (final.ndim - 1))
                    final.masked_fill_(rows, 0)

        if raw.numel():
            self._runtime.launch(work)
        return final

    def _keep_constants(self) -> None:
        """Their memory was taken for the stream of that time. One that reads them now may do so when we are gone."""
        stream = self._runtime.current_stream()
        if stream != self._made_on:
            for constant in (self._table, self._first, *self._erasures):
                self._runtime.keep_for_stream(constant, stream)

    def _look_up(self, raw: Any, made: Any) -> None:
        """Some rows at a time, by two kernels: places in the table, in the order of what is made, and what is there."""
        torch = self._torch
        if raw.ndim == CHANNELS:  # one picture
            raw, made = raw.unsqueeze(0), made.unsqueeze(0)
        some = max(1, MOST_VALUES // max(1, raw[0].numel()))
        values = raw.movedim(-1, -3) if self._planar else raw
        begins = self._first.view(-1, 1, 1) if self._planar else self._first
        room = torch.empty(made[:some].shape, dtype=torch.int32, device=raw.device)
        for row in range(0, len(raw), some):
            part = made[row : row + some]
            places = torch.add(values[row : row + some], begins, out=room[: len(part)])
            torch.index_select(self._table, 0, places.view(-1), out=part.view(-1))

    def _erase(self, final: Any, boxes: Any, value: Any) -> None:
        """Fills a rectangle of each picture, [N, C, H, W], with one value for each channel."""
        torch = self._torch
        top, left, height, width = boxes[:, :4].unbind(1)
        rows = torch.arange(final.shape[-2], device=final.device)
        columns = torch.arange(final.shape[-1], device=final.device)
        inside_rows = (rows >= top[:, None]) & (rows < (top + height)[:, None])
        inside_columns = (columns >= left[:, None]) & (columns < (left + width)[:, None])
        inside = inside_rows[:, :, None] & inside_columns[:, None, :]
        for channel in range(final.shape[1]):
            plane = final[:, channel]
            plane.copy_(torch.where(inside, value[channel], plane))


def _read_table(torch: Any, table: Table, dtype: Any) -> Any:
    """The table's elements, [C × 256]."""
    words = np.frombuffer(table.data, np.uint8).copy()
    return torch.from_numpy(words).view(dtype)
