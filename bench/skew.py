"""Builds that meet: nodes of one with trainers of another, and nodes of two that serve one job (make skew).

Whatever meets gives the batches of one build alone, or says in one sentence why not. Three parts:

- releases: nodes of another commit, the last tag as a rule, with trainers of this tree, and the reverse.
- upgrades: half an epoch of that build on its node, the rest by a trainer of this tree on either node: every sample
  comes once, in the same order, with the same bytes; where they may differ load_state_dict says so first.
- codecs: two nodes of this tree, one of which makes other pixels of interlaced animations and says so by its revision.
  A job with JPEG files uses both; of one with such PNG files the bytes are those of the first node; without that node
  there is a RevisionError.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRAINER = """
import hashlib, json, os, sys, feedwater, numpy
digest, state = hashlib.sha256(), sys.argv[2]
try:
    loader = feedwater.Loader("photos", feedwater.transforms.RandomResizedCrop(32), batch_size=8, shuffle=True, seed=3,
                              nodes=sys.argv[1], start_timeout=60, timeout=60)
    if state and os.path.exists(state):
        loader.load_state_dict(json.load(open(state)))
    for step, (image, label) in enumerate(loader):
        digest.update(numpy.asarray(image).tobytes() + numpy.asarray(label).tobytes())
        if state and step == 0:
            json.dump(loader.state_dict(), open(state, "w"))
    print("batches", digest.hexdigest()[:16])
except feedwater.Error as error:
    print(type(error).__name__, " ".join(str(error).split()))
"""

EPOCH = """
import hashlib, json, os, sys, feedwater, numpy
nodes, state, most, strict = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "strict"
loader = feedwater.Loader("photos", feedwater.transforms.RandomResizedCrop(32), batch_size=8, shuffle=True, seed=3,
                          nodes=nodes, fields=("image", "index"), start_timeout=60, timeout=60)
try:
    if os.path.exists(state):
        loader.load_state_dict(json.load(open(state)), strict=strict)
    for image, index in loader:
        print(json.dumps([index.tolist(), hashlib.sha256(numpy.asarray(image).tobytes()).hexdigest()[:16]]))
        most -= 1
        if most == 0:
            json.dump(loader.state_dict(), open(state, "w"))
            break
except feedwater.Error as error:
    print(type(error).__name__, " ".join(str(error).split()))
"""

Step = tuple[list[int], str]
"""Samples of a batch, and a digest of it."""


class Build:
    """A tree of source and its program."""

    def __init__(self, name: str, tree: Path, out: Path, *flags: str) -> None:
        self.name, self.tree, self.binary = name, tree, out / f"feedwater-{name}"
        version = re.search(r'__version__ = "(.*)"', (tree / "python/feedwater/_version.py").read_text())
        link = f"-s -w -X main.version={version[1] if version else 'dev'} -X main.commit={name}"
        command = ["go", "build", *flags, "-ldflags", link, "-o", str(self.binary), "./cmd/feedwater"]
        subprocess.run(command, cwd=tree, check=True)

    def train(self, nodes: str, state: str = "") -> str:
        """What a trainer of this build says of an epoch: its digest, or an error in one line.

        It goes on from the state in that file, if there is one, and leaves there what it had after a step.
        """
        run = self._run(TRAINER, nodes, state)
        return run.stdout.strip() or f"nothing, exit code {run.returncode}: {run.stderr[-500:]}"

    def steps(self, nodes: str, state: Path, most: int = 0, strict: bool = True) -> tuple[list[Step], str]:
        """What a trainer of this build gets from the state in that file on, or from the beginning: samples and a digest
        of each step, and an error in one line. After so many steps it leaves its state there and ends.
        """
        run = self._run(EPOCH, nodes, str(state), str(most), "strict" if strict else "loose")
        lines = run.stdout.splitlines()
        made: list[Step] = [tuple(json.loads(line)) for line in lines if line.startswith("[")]
        return made, "" if len(made) == len(lines) and made else f"{run.stdout[-500:]}{run.stderr[-500:]}".strip()

    def _run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "FEEDWATER_BINARY": str(self.binary), "PYTHONPATH": str(self.tree / "python")}
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


class Node:
    """A node of a build on a unix socket."""

    def __init__(self, build: Build, data: Path, out: Path) -> None:
        socket = out / f"{build.name}-{data.name}-{time.monotonic_ns()}.sock"
        self.address = f"unix:{socket}"
        command = [str(build.binary), "serve", "--data", f"photos={data}", "--listen", self.address, "--workers", "1"]
        environment = {**os.environ, "XDG_CACHE_HOME": str(out / f"cache-{build.name}")}
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
        while not socket.exists():
            if self.process.poll() is not None:
                raise SystemExit(f"the node of {build.name} ended")
            time.sleep(0.01)

    def stop(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait()


def check(what: str, said: str, *wanted: str) -> bool:
    """Prints what came of it, and whether that is as it should be."""
    fine = any(re.search(pattern, said) for pattern in wanted)
    print(f"{'ok  ' if fine else 'BAD '} {what}: {said}")
    return fine


def releases(here: Build, there: Build, data: Path, out: Path) -> bool:
    """Nodes of each build with trainers of the other."""
    nodes = [Node(build, data, out) for build in (here, there)]
    try:
        own = here.train(nodes[0].address)
        fine = check(f"{here.name} on {here.name}", own, "^batches ")
        fine &= check(f"{there.name} on {there.name}", there.train(nodes[1].address), "^batches ")
        sentence = f"^(Version|Revision|Numerics)Error .*{re.escape(here.name)}"
        fine &= check(f"{here.name} on {there.name}", here.train(nodes[1].address), f"^{own}$", sentence)
        fine &= check(f"{there.name} on {here.name}", there.train(nodes[0].address), f"^{own}$", sentence)
    finally:
        for node in nodes:
            node.stop()
    return fine


def upgrades(here: Build, there: Build, data: Path, out: Path) -> bool:
    """Half an epoch of the other build, the rest by this one, on a node of each."""
    nodes = [Node(build, data, out) for build in (there, here)]
    saved, fine = out / "half.json", True
    try:
        whole, said = there.steps(nodes[0].address, out / "none.json")
        first, more = there.steps(nodes[0].address, saved, len(whole) // 2)
        samples = sorted(index for indices, _ in whole for index in indices)
        fine &= check(
            f"an epoch of {there.name}", said + more or f"{len(samples)} samples", f"^{len(set(samples))} samples$"
        )
        for node, name in zip(nodes, (there.name, here.name)):
            what = f"half of it by {there.name}, the rest by {here.name} on a node of {name}"
            fine &= _goes_on(what, here, node.address, saved, whole, first)
    finally:
        for node in nodes:
            node.stop()
    return fine


def _goes_on(what: str, here: Build, node: str, saved: Path, whole: list[Step], first: list[Step]) -> bool:
    """Whether an epoch goes on from its half as it did without a break: by itself, or with strict=False once told."""
    rest, said = here.steps(node, saved)
    if not said:
        return check(what, "the same batches" if first + rest == whole else "others", "^the same batches$")
    if said.startswith("VersionError"):
        return check(what, said, f"Error .*{re.escape(here.name)}")
    fine = check(what, said, "^(StateMismatch|Revision)Error .*strict=False")
    rest, said = here.steps(node, saved, strict=False)
    same = [indices for indices, _ in first + rest] == [indices for indices, _ in whole]
    return (
        check(f"{what}, strict=False", said or ("the same samples" if same else "others"), "^the same samples$")
        and fine
    )


def other_codec(out: Path) -> Path:
    """An overlay in which interlaced animations have other pixels, and the codec the next revision."""
    source, table = ROOT / "pipeline/codec/png/reader.go", ROOT / "pipeline/revision/table.txt"
    before = "r.box = r.box.Sub(r.box.Min) // Pillow forgets where the frame stands"
    text = source.read_text()
    if before not in text:
        raise SystemExit(f"{source} has changed, and what this replaces in it has to follow")
    (out / "reader.go").write_text(text.replace(before, "r.box = image.Rectangle(r.box)"))
    line = re.compile(r"^codec/png (\d+)", re.MULTILINE)
    (out / "table.txt").write_text(line.sub(lambda m: f"codec/png {int(m[1]) + 1}", table.read_text()))
    overlay = out / "overlay.json"
    replace = {str(source): str(out / "reader.go"), str(table): str(out / "table.txt")}
    overlay.write_text(json.dumps({"Replace": replace}))
    return overlay


def codecs(here: Build, other: Build, photos: Path, out: Path) -> bool:
    """Two nodes that differ in the codec of PNG files."""
    animations = out / "animations"
    (animations / "a").mkdir(parents=True)
    for i in range(24):
        (animations / "a" / f"{i:02}.png").write_bytes(animation(i))
    return all([meet(here, other, photos, out, same=True), meet(here, other, animations, out, same=False)])


def meet(here: Build, other: Build, data: Path, out: Path, same: bool) -> bool:
    """A job on nodes of both builds, which make the same of its files or not; then without the first of them."""
    nodes, state = [Node(build, data, out) for build in (here, other)], str(out / f"state-{data.name}")
    kind, addresses = "JPEG" if same else "PNG", [node.address for node in nodes]
    try:
        alone = here.train(addresses[0])
        fine = check(f"{kind} on {here.name}", alone, "^batches ")
        fine &= check(f"{kind} on {other.name}", other.train(addresses[1]), f"^{alone}$" if same else "^batches ")
        for _ in range(3):
            fine &= check(f"{kind} on both", here.train(",".join(addresses), state), f"^{alone}$")
            left = f"{kind} from a state, on {other.name} alone"
            error = rf"^RevisionError .*codec/png.*{other.name}.*{here.name}.*strict=False"
            fine &= check(left, here.train(addresses[1], state), "^batches " if same else error)
            os.remove(state)
    finally:
        for node in nodes:
            node.stop()
    return fine


def chunk(name: bytes, body: bytes) -> bytes:
    """A chunk of a PNG file."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def animation(seed: int) -> bytes:
    """An interlaced animation whose first frame, of 24 x 20 pixels, stands at (9, 7) of 40 x 36."""
    wide, high, rows = 24, 20, b""
    for x0, y0, dx, dy in (
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ):
        for y in range(y0, high, dy):
            line = bytes((x * 9 + y * 5 + c * 70 + seed * 31) & 255 for x in range(x0, wide, dx) for c in range(3))
            rows += b"\0" + line if line else b""
    frame = struct.pack(">IIIIIHHBB", 0, wide, high, 9, 7, 1, 10, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 40, 36, 8, 2, 0, 0, 1))
        + chunk(b"acTL", struct.pack(">II", 1, 0))
        + chunk(b"fcTL", frame)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def git(*arguments: str) -> str:
    """What git says."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def last_tag() -> str:
    """The last tag; before there is one, the last commit of before revisions were told."""
    return next(iter(git("tag", "--list", "v*", "--sort=-v:refname").splitlines()), "4a99f83")


def main() -> int:
    """Builds all, lets them meet, and says what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("photos", type=Path, help="folder of photographs, classes in sub-folders")
    parser.add_argument("--with", dest="other", default="", help="commit that this tree meets; default: the last tag")
    options = parser.parse_args()
    other = options.other or last_tag()
    with tempfile.TemporaryDirectory(prefix="skew-") as name:
        out, tree = Path(name), Path(name) / "tree"
        git("worktree", "add", "--detach", str(tree), other)
        try:
            here, there = Build("head", ROOT, out), Build(other, tree, out)
            fine = releases(here, there, options.photos.resolve(), out)
            fine &= upgrades(here, there, options.photos.resolve(), out)
            fine &= codecs(
                here, Build("mended", ROOT, out, "-overlay", str(other_codec(out))), options.photos.resolve(), out
            )
        finally:
            git("worktree", "remove", "--force", str(tree))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
