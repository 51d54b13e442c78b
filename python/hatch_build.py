"""Puts the feedwater program into the wheel, and the platform into the wheel's name.

    FEEDWATER_WHEEL_BINARY=../bin/feedwater pip wheel --no-deps --wheel-dir ../dist .

Beside the program have to lie NOTICES.txt, the licences of what is linked into it, which becomes one of the wheel's
licence files, and feedwater.cdx.json, the list of these modules, which becomes its SBOM (PEP 770): `make notices`.

The wheel is named by what the program is: its machine, and what it needs of the system's C library. A static one
serves glibc and musl; another one the glibc whose symbols it asks for. FEEDWATER_WHEEL_PLATFORM gives another tag,
which has to be of the program's machine. The manual page, feedwater.1, is added where it lies beside the program.

Without FEEDWATER_WHEEL_BINARY the wheel is pure Python, and finds the program elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import struct
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NOTICES, SBOM, MANUAL = "NOTICES.txt", "feedwater.cdx.json", "feedwater.1"
MACHINES = {62: "x86_64", 183: "aarch64"}
"""By the numbers that ELF files have for them."""
INTERPRETER = 3
"""The type of an ELF file's segment that names what loads it."""
OLDEST_GLIBC = (2, 17)


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
        if os.path.isfile(manual := os.path.join(beside, MANUAL)):
            build_data["shared_data"] = {manual: f"share/man/man1/{MANUAL}"}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{choose_platform(binary, os.environ.get('FEEDWATER_WHEEL_PLATFORM', ''))}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is there."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.root, NOTICES))


def choose_platform(binary: str, wanted: str = "") -> str:
    """The platform tags of a wheel with that program, or the ones wanted.

    Raises ValueError for what is no program for Linux, and for tags of another machine than the program's.
    """
    content = Path(binary).read_bytes()
    machine = _read_machine(binary, content)
    if wanted:
        other = next((tag for tag in wanted.split(".") if not tag.endswith(f"_{machine}")), None)
        if other is not None:
            raise ValueError(f"FEEDWATER_WHEEL_PLATFORM={wanted}: {binary} is a program for {machine}, not for {other}")
        return wanted
    if _is_static(content):
        return f"manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
    asked = [(int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", content)]
    if not asked:
        raise ValueError(f"{binary} is loaded by another C library than glibc: link it statically")
    major, minor = max([OLDEST_GLIBC, *asked])
    return f"manylinux_{major}_{minor}_{machine}"


def _read_machine(binary: str, content: bytes) -> str:
    """The machine that an ELF file of 64 bits, little-endian, is for."""
    if content[:6] != b"\x7fELF\x02\x01" or len(content) < 64:
        raise ValueError(
            f"{binary} is no program for Linux of 64 bits, and a wheel with it would be for no other system"
        )
    number = int.from_bytes(content[18:20], "little")
    if number not in MACHINES:
        raise ValueError(f"{binary} is for a machine that wheels are not made for (ELF machine {number})")
    return MACHINES[number]


def _is_static(content: bytes) -> bool:
    """Whether nothing loads the program but the kernel."""
    start, size, count = (int.from_bytes(content[at : at + n], "little") for at, n in ((32, 8), (54, 2), (56, 2)))
    segments = (content[start + size * number :][:4] for number in range(count))
    return INTERPRETER not in (struct.unpack("<I", segment)[0] for segment in segments if len(segment) == 4)
