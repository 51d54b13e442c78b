"""The cluster of the tests, and what they ask of it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from workload import make_namespace

from cluster import Cluster
from enginetest.job import generate_pictures
from enginetest.pages import ROOT
from enginetest.report import report

MEMORY = 6
"""GiB that the cluster and its jobs may take."""


def pytest_configure(config: pytest.Config) -> None:
    """Marks of tests."""
    config.addinivalue_line("markers", "long: only make test-cluster-long runs it")


def memory_available() -> float:
    """GiB that programs of this machine may still take."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]) / (1 << 20)


@pytest.fixture(scope="session", autouse=True)
def memory() -> Iterator[None]:
    """All of it, with the jobs, fits into MEMORY."""
    least, end = [before := memory_available()], threading.Event()

    def watch() -> None:
        while not end.wait(1):
            least[0] = min(least[0], memory_available())

    thread = threading.Thread(target=watch)
    thread.start()
    yield
    end.set()
    thread.join()
    report(f"memory: {before - least[0]:.1f} GiB at most")
    assert before - least[0] <= MEMORY


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
