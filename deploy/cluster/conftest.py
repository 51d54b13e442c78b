"""The cluster of the tests, and what they ask of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from workload import make_namespace

from cluster import Cluster
from enginetest.job import generate_pictures
from enginetest.pages import ROOT
from enginetest.report import report


def pytest_configure(config: pytest.Config) -> None:
    """Marks of tests."""
    config.addinivalue_line("markers", "long: only make test-cluster-long runs it")


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of what is served, with photographs below train."""
    place = tmp_path_factory.mktemp("data")
    # Pods run as other users.
    for folder in (place, place.parent, place.parent.parent):
        folder.chmod(0o755)
    return generate_pictures(place / "train", images=160).parent


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster, up."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster") / "all")
    try:
        report(f"the machine is Ready after {cluster.start():.1f} s")
        cluster.import_trainer()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def namespace(cluster: Cluster, pictures: Path) -> str:
    """The namespace of the page, with Pod Security "restricted", and its claim."""
    return make_namespace(cluster, pictures)


@pytest.fixture(scope="session")
def not_ready_image(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image of the trainer with a client that leaves nodes which are called not ready."""
    image, program = "registry.example.org/believing:1", tmp_path_factory.mktemp("mutant") / "feedwater"
    command = ["go", "run", "./client/simulation/mutants", "-build", program, "believe-the-list"]
    subprocess.run(command, cwd=ROOT, check=True)
    cluster.import_trainer(image, program)
    return image
