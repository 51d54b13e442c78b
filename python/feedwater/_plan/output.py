"""What batches look like: type, layout and framework, decided once from the transform and the arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .._value_table import Table, dtype_name, encode_erased

if TYPE_CHECKING:
    from .compiler import Compiled

__all__ = ["DRAWS", "FIELDS", "IMAGE", "MASK", "TARGET", "Output", "field_names", "resolve_output"]

IMAGE, MASK, TARGET = "image", "mask", "target"
DRAWS = "image.draws"
"""The field of the agent's batches in which nodes tell what they drew."""
FIELDS = (IMAGE, MASK, "label", "index", "key", "valid")


@dataclass(frozen=True)
class Output:
    """How `image` leaves the agent and how it is shown to the user."""

    dtype: str
    table: Table
    layout: Literal["hwc", "chw"]
    """Order of the values in memory."""
    channels_first: bool
    """Order of the dimensions the user sees."""
    torch: bool
    """Tensors, or numpy arrays."""
    erasures: tuple[Table, ...] = ()
    """What fills the rectangles of each RandomErasing; of dtype too."""
    crops: int = 1
    """Pictures that one sample is, below each other as they come."""

    def last_hop(self) -> dict[str, Any]:
        """As the agent takes it."""
        hop: dict[str, Any] = {"dtype": self.dtype, "table": self.table.encode_table(), "layout": self.layout}
        if self.crops > 1:
            hop["crops"] = self.crops
        return {**hop, "erase": encode_erased(self.erasures)} if self.erasures else hop


def resolve_output(compiled: Compiled, dtype: Any, memory_format: Any) -> Output:
    """The Output that the arguments mean. Tensors if torch was imported before, otherwise numpy arrays.

    Tensors are [B, C, H, W]. 8-bit ones have channels-last strides unless memory_format says otherwise (that is how
    pictures come, so nothing is moved); floats are contiguous. Arrays are [B, H, W, C] like pictures, unless the
    transform makes tensors (ToImage and the like) or memory_format is given: then as tensors.
    """
    tables = [compiled.table, *compiled.erasures]
    table, *erasures = tables if dtype is None else [one.cast_to(dtype_name(dtype)) for one in tables]
    torch = "torch" in sys.modules
    if table.dtype == "bfloat16" and not torch:
        raise TypeError("dtype bfloat16 needs torch: numpy has no such type. Import torch before making the Loader")
    wanted = _memory_format(memory_format)
    channels_first = torch or compiled.to_tensor or wanted is not None
    if not channels_first:
        layout: Literal["hwc", "chw"] = "hwc"
    elif wanted is None:
        layout = "hwc" if table.dtype == "uint8" else "chw"
    else:
        layout = wanted
    return Output(table.dtype, table, layout, channels_first, torch, tuple(erasures), compiled.crops)


def _memory_format(wanted: Any) -> Literal["hwc", "chw"] | None:
    if wanted is None:
        return None
    name = str(wanted).removeprefix("torch.")
    if name == "channels_last":
        return "hwc"
    if name in ("contiguous_format", "contiguous"):
        return "chw"
    raise ValueError(f"memory_format={wanted!r}: supported are torch.contiguous_format and torch.channels_last")


def field_names(
    fields: Sequence[str] | Mapping[str, str], more: Callable[[], bool], advice: str = ""
) -> dict[str, str]:
    """Our names of the wanted fields to the user's, in order. more tells whether there may be others than ours, and
    advice what to do if not.
    """
    if isinstance(fields, str):
        raise TypeError(f'fields={fields!r}: pass a tuple of names, like ("image", "label"), or a dict that renames')
    wanted = list(fields)
    names = dict(fields) if isinstance(fields, Mapping) else {name: name for name in wanted}
    unknown = [name for name in names if name not in FIELDS]
    if unknown and not more():
        raise ValueError(f"fields: no field {unknown[0]!r}; there are {', '.join(FIELDS)}{advice}")
    if bad := next((name for name in unknown if not isinstance(name, str) or not name), None):
        raise TypeError(f"fields: {bad!r} is no name")
    if not names:
        raise ValueError("fields is empty")
    if len(set(names.values())) < len(wanted):
        raise ValueError(f"fields: two fields get one name in {names if isinstance(fields, Mapping) else wanted}")
    return names
