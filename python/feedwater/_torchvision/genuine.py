"""Whether libraries do what they were written to do: functions that a program replaced in them would not be heard here.

A function is a library's own if its code lies in the file of the module that it says it is of. A wrapper that copies
names, as functools.wraps does, says so and lies elsewhere. The wrappers of the doctor's probe count and change nothing:
what they call is judged in their place.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

from ..errors import UnsupportedTransformError

__all__ = ["check_functions", "is_own", "replaced_method", "replaced_reader"]

LIBRARIES = frozenset(("torch", "torchvision", "timm", "PIL", "numpy"))
FOLDER = "torchvision.datasets.folder"
PROBE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "doctor", "probe", "")
LOADERS = ("default_loader", "pil_loader", "accimage_loader", "has_file_allowed_extension")
PILLOW = {
    "PIL.Image": (
        "open",
        "preinit",
        "init",
        "_getdecoder",
        "Image.__init__",
        "Image.convert",
        "Image.load",
        "Image._new",
    ),
    "PIL.ImageFile": None,
    "PIL.JpegImagePlugin": None,
    "PIL.PngImagePlugin": None,
    "PIL.GifImagePlugin": None,
    "PIL.BmpImagePlugin": None,
    "PIL.WebPImagePlugin": None,
    "PIL.PpmImagePlugin": None,
    "PIL.TiffImagePlugin": None,
}
"""What of Pillow reads files: some names of a module, or all that it defines."""
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP")
DECODERS = ("jpeg", "zip", "gif", "raw", "bmp_rle")
FUNCTIONS = ("torchvision.transforms.functional", "torchvision.transforms._functional_pil", "torchvision.transforms.v2")
PILLOW_CALLED: dict[str, tuple[str, ...] | None] = {
    "PIL.Image": (
        "blend",
        "fromarray",
        "merge",
        "Image.crop",
        "Image.filter",
        "Image.resize",
        "Image.rotate",
        "Image.transform",
        "Image.transpose",
    ),
    "PIL.ImageEnhance": None,
    "PIL.ImageFilter": None,
    "PIL.ImageOps": None,
}
"""What transforms call of Pillow, as PILLOW has what reads files."""
UNASKED = frozenset(("__add__", "__contains__", "__getitem__", "__iter__", "__len__", "__or__", "__rshift__"))
"""What no transform is asked for, and programs add."""
KERNELS = "torchvision.transforms.v2.functional._utils"


def replaced_reader(folder: Any) -> str | None:
    """What of the way from a file to the picture and label of a torchvision folder was replaced, by name; else None."""
    kind = type(folder)
    for name in ("__getitem__", "__getattribute__"):
        if not is_own(getattr(kind, name)):
            return f"{kind.__name__}.{name}"
    if getattr(folder, "__getitems__", None) is not None:
        return f"{kind.__name__}.__getitems__"
    home = sys.modules[FOLDER]
    return next(_of_torchvision(home), None) or next(_of_pillow(), None)


def _of_torchvision(home: Any) -> Iterator[str]:
    for name in LOADERS:
        if not is_own(getattr(home, name)):
            yield f"{FOLDER}.{name}"
    if vars(home).get("Image") is not sys.modules["PIL.Image"]:
        yield f"{FOLDER}.Image"
    if "open" in vars(home):
        yield f"{FOLDER}.open"
    if builtins.open is not io.open:
        yield "builtins.open"
    torchvision = sys.modules["torchvision"]
    if not is_own(torchvision.get_image_backend):
        yield "torchvision.get_image_backend"
    elif torchvision.get_image_backend() != "PIL":
        yield f"torchvision's image backend, which is {torchvision.get_image_backend()!r} by set_image_backend,"


def _of_pillow() -> Iterator[str]:
    yield from _of_modules(PILLOW)
    registry = sys.modules["PIL.Image"]
    for form in FORMATS:
        factory = registry.OPEN.get(form, (None,))[0]
        if factory is not None and not str(getattr(factory, "__module__", "")).startswith("PIL."):
            yield f"the opener of {form} in PIL.Image.OPEN"
    for name in DECODERS:
        decoder = registry.DECODERS.get(name)
        if decoder is not None and not decoder.__module__.startswith("PIL."):
            yield f"the decoder {name!r} in PIL.Image.DECODERS"


def _of_modules(table: Mapping[str, tuple[str, ...] | None]) -> Iterator[str]:
    """Of modules as far as they are imported: some names, or for None all that they define."""
    for module, names in table.items():
        home = sys.modules.get(module)
        if home is None:
            continue
        for name in names or ():
            thing = functools.reduce(getattr, name.split("."), home)
            if not is_own(thing):
                yield f"{module}.{name}"
        if names is None:
            yield from _of_module(home)


def _of_kernels() -> Iterator[str]:
    """The kernels of torchvision's functions that lie outside of it; those for a program's own types do not count."""
    registry: dict[Any, dict[Any, Any]] = getattr(sys.modules.get(KERNELS), "_KERNEL_REGISTRY", {})
    home = os.path.join(os.path.dirname(sys.modules["torchvision"].__file__ or ""), "")
    for function, kernels in list(registry.items()):
        for kind, kernel in list(kernels.items()):
            code = getattr(kernel, "__code__", None)
            if kind.__module__.split(".")[0] in LIBRARIES and not getattr(code, "co_filename", "").startswith(home):
                yield f"the kernel of {function.__name__} for {kind.__name__}"


def _of_module(home: Any) -> Iterator[str]:
    """The functions and methods of a module that are not its own."""
    for name, thing in list(vars(home).items()):
        if isinstance(thing, type):
            if thing.__module__ == home.__name__:
                yield from (f"{home.__name__}.{name}.{method}" for method in _of_class(thing))
        elif _is_foreign(thing) and _has_name(home, name):
            yield f"{home.__name__}.{name}"


def _of_class(kind: type) -> Iterator[str]:
    for name, thing in list(vars(kind).items()):
        if isinstance(thing, (classmethod, staticmethod)):
            thing = thing.__func__
        elif isinstance(thing, property):
            thing = thing.fget
        if _is_foreign(thing) and (_has_name(sys.modules[kind.__module__], name) or _is_inherited(kind, name)):
            yield name


def _is_inherited(kind: type, name: str) -> bool:
    """Whether a class would have the attribute without defining it, or the interpreter asks for it by itself."""
    return any(hasattr(base, name) for base in kind.__bases__) or (name.startswith("__") and name not in UNASKED)


def _has_name(home: Any, name: str) -> bool:
    """Whether a library's module has the name: what a program adds under another one is called by itself alone."""
    try:
        source = Path(home.__file__).read_text("utf-8")
    except (OSError, TypeError, ValueError):
        return True  # the source is not there
    return re.search(rf"\b{re.escape(name)}\b", source) is not None


def _is_foreign(thing: Any) -> bool:
    """Whether it is code of the program's in place of a library's."""
    if isinstance(thing, FunctionType):
        return not is_own(thing)
    if isinstance(thing, type) or not callable(thing):
        return False
    home = type(thing).__module__.split(".")[0]
    return isinstance(thing, functools.partial) or home == "unittest" or not _is_known(home)


def _is_known(package: str) -> bool:
    return package in LIBRARIES or package in sys.stdlib_module_names


def is_own(thing: Any) -> bool:
    """Whether a function is of the module that it says it is of, and that a library's."""
    while isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(PROBE):
        thing = vars(thing)["__wrapped__"]
    if not isinstance(thing, FunctionType):
        return type(thing).__module__ == "builtins"  # a slot of object's, a method written in C
    name = thing.__module__ or ""
    if name.startswith("namedtuple_"):
        return True
    file, written = getattr(sys.modules.get(name), "__file__", None), thing.__code__.co_filename
    return _is_known(name.split(".")[0]) and (written == file or written.startswith("<frozen "))


def replaced_method(leaf: Any) -> str | None:
    """Which method of the classes of one of torchvision's objects was replaced, by name; None if none was."""
    for kind in type(leaf).__mro__:
        if kind.__module__.startswith(("torchvision.", "timm.")):
            for name in _of_class(kind):
                return f"{kind.__name__}.{name}"
    return None


def check_functions(leaves: Collection[Any]) -> None:
    """Raises UnsupportedTransformError if a function that torchvision's transforms call was replaced."""
    homes = {type(leaf).__module__ for leaf in leaves}
    if not any(home.startswith(("torchvision.transforms", "timm.data")) for home in homes):
        return
    timms = dict.fromkeys(home for home in homes if home.startswith("timm.data"))
    for found in (*_of_functions(), *_of_kernels(), *_of_modules(PILLOW_CALLED), *_of_modules(timms)):
        raise UnsupportedTransformError(
            f"{found} was replaced, which transforms call, and code does not travel: put it back before the "
            "Loader is made, or do your own with python=fn(sample, rng) or batch_transform=fn(batch, rng)"
        )


def _of_functions() -> Iterator[str]:
    home = os.path.dirname(sys.modules["torchvision"].__file__ or "")
    for name, module in list(sys.modules.items()):
        if not name.startswith(FUNCTIONS):
            continue
        # Programs put modules beside torchvision's, under names that it had once; it does not call these.
        there = os.path.join(home, *name.split(".")[1:])
        if os.path.isdir(there) or os.path.exists(f"{there}.py"):
            yield from _of_module(module)
