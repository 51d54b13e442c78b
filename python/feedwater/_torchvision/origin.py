"""Whether an object is torchvision's own, which generation's, and unchanged; asked where no transform is, too."""

from __future__ import annotations

import sys
from functools import partial
from types import FunctionType
from typing import Any

from .genuine import replaced_method

__all__ = ["FIRST", "find_patch", "is_first", "is_torchvision", "is_v2"]

FIRST = ("torchvision.transforms.transforms", "torchvision.transforms.autoaugment")
"""Where the transforms of the first generation are; those of v2 are below torchvision.transforms.v2."""


def is_torchvision(thing: Any) -> bool:
    """Whether its exact class, or it if it is a function, is torchvision's."""
    home = getattr(thing, "__module__", None) if isinstance(thing, FunctionType) else type(thing).__module__
    return str(home).startswith("torchvision.")


def is_first(thing: Any) -> bool:
    """Whether its exact class is one of torchvision.transforms, not of v2."""
    return type(thing).__module__ in FIRST


def is_v2(thing: Any) -> bool:
    """Whether it is a transform of torchvision.transforms.v2, or of a class derived from one."""
    return any(base.__module__.startswith("torchvision.transforms.v2.") for base in type(thing).__mro__)


def find_patch(thing: Any) -> str | None:
    """What makes an object do other things than its class: a method replaced in either, or a hook; else None."""
    own = getattr(thing, "__dict__", {})
    for name, value in own.items():
        if callable(value) and callable(getattr(type(thing), name, None)):
            return f"its {name} was replaced"
    own_home = is_torchvision(thing) or type(thing).__module__.startswith("timm.")
    if own_home and (method := replaced_method(thing)) is not None:
        return f"{method} was replaced"
    if "_forward_hooks" not in own:  # no module of torch
        return None
    return "it has hooks" if own["_forward_hooks"] or own.get("_forward_pre_hooks") else _hook_of_all()


def _hook_of_all() -> str | None:
    """A hook on the forward of all modules, which may change what each makes; None: there is none but observers of ours
    and of torch, as of a counter of flops.
    """
    module = sys.modules.get("torch.nn.modules.module")
    for kind in ("_global_forward_pre_hooks", "_global_forward_hooks"):
        for hook in (getattr(module, kind, None) or {}).values():
            while isinstance(hook, partial):
                hook = hook.func
            home = str(getattr(hook, "__module__", ""))
            if not home.startswith(("torch.", "feedwater.")):
                name = getattr(hook, "__qualname__", type(hook).__qualname__)
                return f"{name} of {home} is a hook on the forward of all modules, by torch.nn.modules.module"
    return None
