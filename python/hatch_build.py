"""Puts the feedwater program into the wheel, and the platform into the wheel's name.

    FEEDWATER_WHEEL_BINARY=../bin/feedwater pip wheel --no-deps --wheel-dir ../dist .

The program is static, so one wheel serves glibc and musl. FEEDWATER_WHEEL_PLATFORM overrides the platform tag, for a
program that was built for another machine. Without FEEDWATER_WHEEL_BINARY the wheel is pure Python and finds the
program elsewhere.
"""

from __future__ import annotations

import os
import platform
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


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
        build_data["shared_scripts"] = {os.path.abspath(binary): "feedwater"}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ.get('FEEDWATER_WHEEL_PLATFORM') or _platform()}"


def _platform() -> str:
    machine = platform.machine()
    return f"manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
