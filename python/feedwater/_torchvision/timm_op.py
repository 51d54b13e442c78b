"""What ops of timm's classes have in common."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedTransformError
from ..transforms._op import Op

__all__ = ["TimmOp"]


class TimmOp(Op):
    """An op of a class of timm, which works on pictures. Its fields are the arguments of the plan."""

    def plan(self) -> dict[str, Any]:
        return {"op": type(self).__name__, **vars(self)}

    def on_tensor(self) -> Op:
        raise UnsupportedTransformError(f"timm's {self.name} works on PIL images: put it before ToImage and ToTensor")

    @property
    def name(self) -> str:
        """The class of timm."""
        raise NotImplementedError
