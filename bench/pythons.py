"""The wheel in clean interpreters, Python 3.10 to 3.14, with numpy and nothing else: installed, imported, first batch.

python bench/pythons.py dist/feedwater-….whl [PYTHON …]

Without interpreters those that pyenv has, and python3.10 and so on of PATH. Exits with 1 if one fails or none is there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

VERSIONS = [f"3.{minor}" for minor in range(10, 15)]
LIMIT_S, FIRST_BATCH_S = 300, 30


def find_interpreters() -> dict[str, str]:
    """Those of this machine, by version."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = {}
    for version in VERSIONS:
        kept = sorted(pyenv.glob(f"{version}.*/bin/python{version}"))
        path = str(kept[-1]) if kept else shutil.which(f"python{version}")
        if path:
            found[version] = path
    return found


def ask_version(python: str) -> str:
    """What an interpreter says that it is."""
    return run([python, "-c", "import platform; print(platform.python_version())"], Path(), dict(os.environ)).strip()


def write_picture(path: Path, grey: int, side: int = 40) -> None:
    """A PNG file of one grey."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes([grey]) * side) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


FUNCTIONS = """
def negative(sample, rng):
    return {"image": 255 - sample["image"]}
"""
INSIDE = """
import time
begun = time.monotonic()
import importlib, os, pkgutil, sys
import feedwater
import functions
from feedwater import transforms

def greys(loader):
    return sorted(int(row.flat[0]) for batch in loader for row in batch[0])

if __name__ == "__main__":
    folder = sys.argv[1]
    made = dict(batch_size=4, shuffle=True)
    loader = feedwater.Loader(folder, [transforms.CenterCrop(32)], **made)
    images, labels = next(iter(loader))
    took = time.monotonic() - begun
    assert images.size == 4 * 3 * 32 * 32 and len(labels) == 4, images.shape
    state, first = loader.state_dict(), sorted(int(row.flat[0]) for row in images)
    loader = feedwater.Loader(folder, [transforms.CenterCrop(32)], **made)
    loader.load_state_dict(state)
    assert sorted(first + greys(loader)) == list(range(12)), "no sample is lost or comes twice where a state goes on"
    loader.close()
    loader = feedwater.Loader(folder, [transforms.CenterCrop(32)], python=functions.negative, **made)
    assert greys(loader) == list(range(244, 256)), "processes of python= have made negatives"
    loader.close()
    foreign = ("accelerate", "keras", "tensorboard", "timm", "torch", "torchvision", "lightning", "transformers")
    for module in pkgutil.walk_packages(feedwater.__path__, "feedwater."):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            if error.name is None or error.name.split(".")[0] not in foreign:
                raise
    print(f"{took:.1f}")
"""


def check(python: str, wheel: Path, folder: Path) -> tuple[float, float]:
    """Seconds that installing took, and from then to the first batch. Raises RuntimeError with what failed."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder / "home"), "TMPDIR": str(folder)}
    (folder / "home").mkdir()
    (folder / "script.py").write_text(INSIDE)
    (folder / "functions.py").write_text(FUNCTIONS)
    for grey in range(12):
        write_picture(folder / "pictures" / f"class{grey % 2}" / f"{grey}.png", grey)
    run([python, "-I", "-m", "venv", "--without-pip", str(folder / "venv")], folder, environment)
    own, begun = str(folder / "venv" / "bin" / "python"), time.monotonic()
    pip = [sys.executable, "-m", "pip", "--python", own, "install", "-q", "--no-compile", str(wheel)]
    run(pip, folder, os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    installed = time.monotonic() - begun
    return installed, float(run([own, "-W", "error", "script.py", "pictures"], folder, environment))


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    """What a command prints."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def main() -> int:
    """Prints a line for each version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=lambda path: Path(path).resolve(strict=True))
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    arguments = parser.parse_args()
    found = {ask_version(path): path for path in arguments.pythons} or find_interpreters()
    failed = not found
    for version in VERSIONS if not arguments.pythons else found:
        if version not in found:
            print(f"{version:8} not here")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                installed, first = check(found[version], arguments.wheel, Path(folder))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed = True
                print(f"{version:8} FAILS: {error}")
                continue
        late = ", TOO LATE" if first > FIRST_BATCH_S else ""
        failed = failed or bool(late)
        print(f"{version:8} installed in {installed:.1f} s, first batch after {first:.1f} s{late}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
