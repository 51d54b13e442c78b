"""Images of containers without a daemon and a registry: one layer of files, as containerd imports them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import numpy as np

from enginetest.job import BINARY, TRAINER
from enginetest.pages import ROOT

LEFT_OUT = re.compile(
    r"__pycache__|/(test|tests|idlelib|tkinter|ensurepip|lib2to3|site-packages|config-[^/]*)(/|$)|\.a$"
)


Files = dict[str, Path]
"""Place in the image → file of this machine, or a Link."""


class Link(type(Path())):  # type: ignore[misc]
    """What a symbolic link in the image leads to."""


def write_image(to: Path, name: str, files: Files, entrypoint: list[str], env: list[str] | None = None) -> None:
    """Writes an archive as `docker save` does, with each file at its place. Its user is 65532."""
    layer = _layer(files)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            "config": {"Entrypoint": entrypoint, "User": "65532:65532", "Env": env or [], "WorkingDir": "/"},
        }
    ).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(to, "w") as image:
        for path, content in ((config_name, config), ("layer.tar", layer), ("manifest.json", manifest)):
            _add(image, path, content, 0o644)


def _layer(files: Files) -> bytes:
    out, folders = io.BytesIO(), {"tmp"}
    with tarfile.open(fileobj=out, mode="w") as layer:
        tmp = tarfile.TarInfo("tmp")
        tmp.type, tmp.mode = tarfile.DIRTYPE, 0o1777
        layer.addfile(tmp)
        for place, file in files.items():
            for parent in [str(p) for p in reversed(Path(place.lstrip("/")).parents)][1:]:
                if parent not in folders:
                    folders.add(parent)
                    entry = tarfile.TarInfo(parent)
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    layer.addfile(entry)
            if isinstance(file, Link):
                link = tarfile.TarInfo(place.lstrip("/"))
                link.type, link.linkname = tarfile.SYMTYPE, str(file)
                layer.addfile(link)
            else:
                _add(layer, place.lstrip("/"), file.read_bytes(), 0o755 if os.access(file, os.X_OK) else 0o644)
    return out.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def write_pause(to: Path, program: Path, name: str) -> None:
    """An image of what holds a pod's namespaces."""
    write_image(to, name, {"/pause": program}, ["/pause"])


def write_trainer(to: Path, name: str, program: Path = BINARY) -> None:
    """An image with this Python, NumPy, the package and a program of it, and a training script as /train.py."""
    python = Path(os.path.realpath(sys.executable))
    site = "/opt/site"
    files: Files = {str(path): path for path in [python, *_libraries([python])]}
    standard = Path(sysconfig.get_path("stdlib"))
    files |= {str(path): path for path in _below(standard)}
    parts = [Path(np.__file__).parent, Path(np.__file__).parent.parent / "numpy.libs", ROOT / "python" / "feedwater"]
    for part in parts:
        files |= {f"{site}/{part.name}/{path.relative_to(part)}": path for path in _below(part)}
    files |= {str(path): path for path in _libraries([p for p in files.values() if ".so" in p.suffixes])}
    files |= {"/usr/bin/feedwater": program, "/train.py": TRAINER, "/usr/bin/python": Link(python)}
    env = [f"PYTHONPATH={site}", "PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1"]
    write_image(to, name, files, [str(python)], env)


def _below(folder: Path) -> list[Path]:
    return [
        p for p in sorted(folder.rglob("*")) if p.is_file() and not LEFT_OUT.search(str(p.relative_to(folder.parent)))
    ]


def _libraries(programs: list[Path]) -> list[Path]:
    """The shared libraries that programs are linked with, where the loader looks for them, and the loader."""
    found: set[str] = set()
    for program in programs:
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        found |= set(re.findall(r"(/\S+) \(0x", said))
    return [Path(name) for name in sorted(found)]
