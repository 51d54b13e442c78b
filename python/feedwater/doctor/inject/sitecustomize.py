"""Comes first on PYTHONPATH: watches for the imports that the probe has something to add to, then runs the
sitecustomize that this one hides.

Every Python that the script starts runs this, so it imports nothing that an interpreter has not imported by itself.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PROBES = {
    "torch.utils.data.dataloader": "loaders",
    "torch.utils.data._utils.fetch": "fetches",
    "torch.autograd": "backward",
    "PIL.Image": "pictures",
    "PIL.ImageFile": "pictures",
    "torchvision.io.image": "pictures",
    "feedwater._pass": "passes",
}
"""Modules, and the module of the probe whose patch() is called with them when they have been imported."""


class _Finder:
    """One look-up per import until its modules are there."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        probe = _PROBES.pop(name, "")
        spec = importlib.machinery.PathFinder.find_spec(name, path) if probe else None
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            try:
                __import__("_feedwater.doctor.probe." + probe)
                sys.modules["_feedwater.doctor.probe." + probe].patch(module)
            except Exception as error:
                _note(f"{name}: {error!r}\n")

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _note(text: str) -> None:
    """The program must never notice: what goes wrong is written down."""
    try:
        with open(f"{os.environ['FEEDWATER_DOCTOR_DIR']}/error-{os.getpid()}", "a") as file:
            file.write(text)
    except (OSError, KeyError):
        pass


def _hook() -> None:
    """Marks this interpreter as hooked. The probe has a name of its own: the program may have another Feedwater."""
    try:
        open(f"{os.environ['FEEDWATER_DOCTOR_DIR']}/seen-{os.getpid()}", "w").close()
    except OSError:  # the doctor is gone
        return
    package = type(sys)("_feedwater")
    package.__path__ = [os.path.dirname(os.path.dirname(_HERE))]
    sys.modules["_feedwater"] = package
    sys.meta_path.insert(0, _Finder)


def _run_hidden() -> None:
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None or spec.origin == __file__:
        return
    module = type(sys)("sitecustomize")
    module.__spec__, module.__file__, module.__loader__ = spec, spec.origin, spec.loader
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != _HERE]
if "FEEDWATER_DOCTOR_DIR" in os.environ:
    _hook()
_run_hidden()
