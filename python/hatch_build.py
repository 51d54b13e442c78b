"""Puts the feedwater program into the wheel, and the platform into the wheel's name.

    FEEDWATER_WHEEL_BINARY=../bin/feedwater pip wheel --no-deps --wheel-dir ../dist .

Beside the program have to lie NOTICES.txt, the licences of what is linked into it, which becomes one of the wheel's
licence files, and feedwater.cdx.json, the list of these modules, which becomes its SBOM (PEP 770): `make notices`.

The program is static, so one wheel serves glibc and musl. FEEDWATER_WHEEL_PLATFORM overrides the platform tag, for a
program that was built for another machine. Without FEEDWATER_WHEEL_BINARY the wheel is pure Python and finds the
program elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NOTICES, SBOM = "NOTICES.txt", "feedwater.cdx.json"


class BinaryHook(BuildHookInterface[Any]):
    """Adds the program among the wheel's scripts."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is put together."""
        binary = os.environ.get("FEEDWATER_WHEEL_BINARY")
        if self.target_name != "wheel" or not binary:
            return
        if not os.path.isfile(binary):
            raise FileNotFoundError(f"FEEDWATER_WHEEL_BINARY={binary}: no such file (make build)")
        beside = os.path.dirname(os.path.abspath(binary))
        for name in (NOTICES, SBOM):
            if not os.path.isfile(os.path.join(beside, name)):
                raise FileNotFoundError(f"{os.path.join(beside, name)}: no such file (make notices)")
        # Licence files have to lie below the root.
        shutil.copyfile(os.path.join(beside, NOTICES), os.path.join(self.root, NOTICES))
        if NOTICES not in self.metadata.core.license_files:
            self.metadata.core.license_files.append(NOTICES)
        build_data["sbom_files"].append(os.path.join(beside, SBOM))
        build_data["shared_scripts"] = {os.path.abspath(binary): "feedwater"}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ.get('FEEDWATER_WHEEL_PLATFORM') or _platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is there."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.root, NOTICES))


def _platform() -> str:
    machine = platform.machine()
    return f"manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
