"""Nodes of another build under a running job: what is not noticed, and what ends the job by its name."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from images import write_image
from workload import CHART, NAMESPACE, SMALL, Training, await_nodes, helm, pods

from cluster import Cluster
from enginetest.job import Told, told_undisturbed
from enginetest.pages import ROOT
from enginetest.processes import await_that
from enginetest.report import report

STEPS = 900
JOB = ("--steps", str(STEPS), "--batch", "32", "--picture", "64", "--each")
PACE = ("--period", "0.1")
REPOSITORY = "registry.example.org/feedwater"
TABLE = ROOT / "pipeline" / "revision" / "table.txt"


def build(folder: Path, version: str, unit: str) -> Path:
    """A program of another version, with another revision of a unit."""
    table, overlay, program = folder / "table.txt", folder / "overlay.json", folder / "feedwater"
    raised, n = re.subn(rf"(?m)^({unit}) (\d+) ", lambda m: f"{m[1]} {int(m[2]) + 1} ", TABLE.read_text())
    assert n == 1, unit
    table.write_text(raised)
    overlay.write_text(json.dumps({"Replace": {str(TABLE): str(table)}}))
    command = ["go", "build", "-trimpath", "-ldflags", f"-s -w -X main.version={version}", "-overlay", overlay]
    env = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run([*command, "-o", program, "./cmd/feedwater"], cwd=ROOT, env=env, check=True)
    return program


def provide(cluster: Cluster, folder: Path, tag: str, unit: str) -> None:
    """An image of the nodes, with another revision of a unit."""
    folder.mkdir()
    archive = folder / "image.tar"
    program = build(folder, tag, unit)
    write_image(archive, f"{REPOSITORY}:{tag}", {"/usr/bin/feedwater": program}, ["/usr/bin/feedwater"])
    cluster.import_image(archive)


@pytest.fixture(scope="module")
def installed(cluster: Cluster, namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two nodes of this tree's image, and images of two others."""
    place = tmp_path_factory.mktemp("images")
    provide(cluster, place / "png", "9.0.1", "codec/png")
    provide(cluster, place / "jpeg", "9.0.2", "codec/jpeg")
    values = "data.imagenet.claim=imagenet,insecure=true,replicas=2,drainTimeout=5"
    helm(cluster, "install", "feedwater", str(CHART), *SMALL, "--set", values)
    await_nodes(cluster, 2)
    yield
    helm(cluster, "uninstall", "feedwater", "--wait")


def upgrade(cluster: Cluster, tag: str) -> None:
    """Nodes of another image take the place of those that there are."""
    values = f"image.repository={REPOSITORY},image.tag={tag}"
    helm(cluster, "upgrade", "feedwater", str(CHART), "--reuse-values", "--set", values)
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/feedwater", "--timeout=150s")
    found = {pod["spec"]["containers"][0]["image"] for pod in await_nodes(cluster, 2)}
    assert found == {f"{REPOSITORY}:{tag}"}


def roll_back(cluster: Cluster) -> None:
    """The first image again."""
    helm(cluster, "rollback", "feedwater", "1")
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/feedwater", "--timeout=150s")
    await_nodes(cluster, 2)
    assert all(not pod["spec"]["containers"][0]["image"].startswith(REPOSITORY) for pod in pods(cluster))


def test_a_build_that_makes_the_same_bytes(installed: None, cluster: Cluster, pictures: Path) -> None:
    """Its codec of PNG differs, of which the job has no picture."""
    job = Training(cluster, "same", [*JOB, *PACE])
    job.step(30)
    upgrade(cluster, "9.0.1")
    steps = len(job.told().steps)
    assert steps < STEPS, "it was over before the upgrade was"
    assert job.digest() == told_undisturbed(pictures / "train", *JOB).digest
    stall, longest = job.told().stall()
    report(f"upgraded until step {steps} of {STEPS}: stall {stall:.2%}, longest wait {longest:.2f} s, digest equal")
    job.delete()
    roll_back(cluster)


def test_a_build_that_makes_other_bytes(installed: None, cluster: Cluster, pictures: Path) -> None:
    """Its codec of JPEG differs: the job ends with the unit's name, and goes on where the first build is back."""
    job = Training(cluster, "other", [*JOB, *PACE])
    job.step(30)
    upgrade(cluster, "9.0.2")

    def ended() -> Told | None:
        lines = job.told().lines
        at = next((i for i, line in enumerate(lines) if "state" in line), None)
        return None if at is None else Told(lines[: at + 1])

    first = await_that("it ends", ended, 120, lambda: job.log()[-3000:])
    error = await_that("it says why", lambda: re.search(r"\S*Error: .*", job.log()), 10, job.log)[0]
    job.delete()
    report(f"after step {len(first.steps)}: {error[:300]}")
    assert "RevisionError" in error and "codec/jpeg" in error, error
    roll_back(cluster)
    left = STEPS - len(first.steps)
    options = [*JOB, "--state", first.lines[-1]["state"], "--steps", str(left)]
    rest = Training(cluster, "resumed", options)
    rest.digest()
    batches = [step["batch"] for step in first.steps + rest.told().steps]
    assert batches == [step["batch"] for step in told_undisturbed(pictures / "train", *JOB).steps]
    report(f"resumed on the first image: {left} more, all {STEPS} batches equal")
    rest.delete()
