"""The pictures that a batch has of each sample: one, or a view for each transform of Views."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .._value_table import IDENTITY
from ..errors import UnsupportedTransformError
from ..transforms._several import Views
from . import compiler, output
from .compiler import Compiled
from .output import IMAGE, Output

__all__ = ["Picture", "resolve_pictures"]


@dataclass(frozen=True)
class Picture:
    """What makes one of them, and how it is shown."""

    field: str
    """Of the agent's batches."""
    compiled: Compiled
    output: Output
    """As the agent gives it."""
    device_hop: Output | None = None
    """What the GPU makes of that; None where the agent does the last hop."""

    @property
    def final(self) -> Output:
        """How the loop gets it."""
        return self.device_hop or self.output

    def leave_hop_to_device(self) -> Picture:
        """The picture with its last hop done on the GPU, so that bytes are copied there and not floats.

        The same one where nothing is gained, and where the hop draws numbers or erases in several crops.
        """
        output, noise = self.output, any(step.value == "random" for step in self.compiled.erasing)
        if output.dtype == "uint8" or noise or (output.erasures and output.crops > 1):
            return self
        plain = replace(output, dtype="uint8", table=IDENTITY, layout="hwc", erasures=())
        return replace(self, output=plain, device_hop=output)


def resolve_pictures(transform: Any, dtype: Any, memory_format: Any) -> tuple[Picture, ...]:
    """The pictures that a Loader's arguments mean."""
    several = _find_views(transform)
    if several is None:
        return (_make_picture(IMAGE, transform, dtype, memory_format),)
    made = []
    for number, view in enumerate(several.transforms):
        try:
            made.append(_make_picture(f"{IMAGE}.{number}", view, dtype, memory_format, several=True))
        except UnsupportedTransformError as error:
            raise UnsupportedTransformError(f"view {number}: {error}") from None
    return tuple(made)


def _make_picture(field: str, transform: Any, dtype: Any, memory_format: Any, several: bool = False) -> Picture:
    compiled = compiler.compile_transform(transform, several)
    return Picture(field, compiled, output.resolve_output(compiled, dtype, memory_format))


def _find_views(transform: Any) -> Views | None:
    """The Views that a transform is; raises UnsupportedTransformError where it is not all of it."""
    leaves = [transform] if isinstance(transform, Views) else list(compiler.walk_leaves(transform))
    several = next((leaf for leaf in leaves if isinstance(leaf, Views)), None)
    if several is not None and len(leaves) > 1:
        other = next(leaf for leaf in leaves if leaf is not several)
        raise UnsupportedTransformError(
            f"{type(other).__name__} beside Views, which is the whole transform: put it into each view, "
            "Views([Compose([…]), …])"
        )
    return several
