"""Who takes part: for each the file beside this one, its environment, and what is tried to find its best settings."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Contestant:
    """One row of the table."""

    name: str
    module: str = ""
    environment: str = ""
    """A file of requirements/; empty: the environment that Feedwater is in."""
    layered: bool = False
    """The environment is on top of Feedwater's, for torch and torchvision."""
    variant: str = ""
    workers: tuple[int, ...] = (1, 2, 4)
    """Numbers of workers or threads of which the fastest counts."""
    converts: bool = False
    resumes: str = ""
    """Why it does not resume amid an epoch; empty: it does."""
    worker: str = ""
    """Pattern of the command line of a process that makes batches; empty: there is none, as all is in threads."""
    services: int = 1
    """As many when one of them is killed; else there is one."""
    absent: str = ""
    """Why it cannot be measured, where it is known beforehand."""


NO_STATE = "no state amid an epoch"
FORKED = r"peer\.py"
"""Workers that are forked have their parent's command line."""

CONTESTANTS = (
    Contestant("Feedwater, local", "peer_feedwater", variant="local", workers=(0,), worker=r"feedwater.* agent"),
    Contestant(
        "Feedwater, one node", "peer_feedwater", variant="nodes", workers=(0,), worker=r"feedwater.* serve", services=2
    ),
    Contestant("DataLoader, PIL", "peer_dataloader", variant="PIL", resumes=NO_STATE, worker=FORKED),
    Contestant("DataLoader, torchvision.io", "peer_dataloader", variant="io", resumes=NO_STATE, worker=FORKED),
    Contestant(
        "WebDataset", "peer_webdataset", "webdataset", layered=True, converts=True, resumes=NO_STATE, worker=FORKED
    ),
    Contestant("LitData", "peer_litdata", "litdata", layered=True, converts=True, worker=FORKED),
    Contestant("tf.data", "peer_tfdata", "tensorflow", variant="local"),
    Contestant(
        "tf.data service",
        "peer_tfdata",
        "tensorflow",
        variant="service",
        resumes="the service has no checkpoints",
        worker=r"peer_tfdata\.py worker",
        services=2,
    ),
    Contestant("DALI, CPU", "peer_dali", "dali"),
    Contestant("SPDL", "peer_spdl", "spdl", layered=True, resumes=NO_STATE),
    Contestant("Grain", "peer_grain", "grain", worker=r"spawn_main|forkserver|peer\.py"),
    Contestant("Ray Data", "peer_ray", "ray", resumes=NO_STATE, worker=r"ray::"),
    Contestant(
        "FFCV",
        absent="1.0.2 is a source package, built with headers of OpenCV: pip ends with "
        "“Could not find required package: opencv4”",
    ),
)


def chosen(names: list[str]) -> list[Contestant]:
    """Those whose name has one of these parts, and Feedwater; all of them without parts. A part of none is an error."""
    for name in names:
        if not any(name.lower() in one.name.lower() for one in CONTESTANTS):
            sys.exit(f"no contestant has {name!r} in its name; there are: {', '.join(one.name for one in CONTESTANTS)}")
    return [
        one
        for one in CONTESTANTS
        if not names or one.name.startswith("Feedwater") or any(name.lower() in one.name.lower() for name in names)
    ]
