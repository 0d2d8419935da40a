"""The options of `stromboli sweep`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import typer

from stromboli import __version__
from stromboli.cli.data_option import data_folder
from stromboli.cli.output import Format
from stromboli.simulator.sweeps.sweep_plan import Share

MOST_PODS = 1_000
"""That a sweep on a cluster has at a time."""
IMAGE = f"stromboli:{__version__}"
_SHARE = re.compile(r"(\d{1,9})/(\d{1,9})")


def share_of(value: str) -> Share:
    """`3/8`: the fourth of eight parts."""
    match = _SHARE.fullmatch(value)
    if match is None or not 0 <= int(match[1]) < int(match[2]):
        raise typer.BadParameter(
            f"{value!r} is no share; write INDEX/COUNT with an index from 0, such as 0/4"
        )
    return Share(int(match[1]), int(match[2]))


GRID = typer.Argument(..., metavar="GRID.yaml", help="The grid, or the sweep.json of a sweep.")
RESULTS = typer.Option(
    None,
    "--results",
    metavar="DIR",
    help="Where the records go, and where a sweep goes on; NAME-results unless given.",
)
JOBS = typer.Option(
    None, "--jobs", metavar="N", min=1, help="Runs at a time; one for each core unless given."
)
DRY_RUN = typer.Option(
    False, "--dry-run", help="Print the command of each run, or the manifests for a cluster, and run nothing."
)
SHARE = typer.Option(
    None, "--share", parser=share_of, metavar="INDEX/COUNT", help="Only every COUNT-th run, from INDEX on."
)
EXPORT = typer.Option(
    None,
    "--export",
    metavar="DIR",
    help="Write sweep.json with all inputs there, for another machine, and run nothing.",
)
QUIET = typer.Option(False, "-q", "--quiet", "--no-progress", help="No progress bar.")
OUTPUT = typer.Option(Format.TABLE, "-o", "--output", help="How to show the results, or a dry run.")
IN_POD = typer.Option("", "--in-pod", metavar="UID", hidden=True)
ON_CLUSTER = typer.Option(
    False, "--on-cluster", help="Run it as a Job of batch.volcano.sh on a Kubernetes cluster."
)
CLAIM = typer.Option(
    "",
    "--claim",
    metavar="NAME",
    help="The PersistentVolumeClaim that holds the results; needed on a cluster.",
)
NAMESPACE = typer.Option("", "--namespace", "-n", metavar="NAME", help="That of the kubeconfig unless given.")
QUEUE = typer.Option("", "--queue", metavar="NAME", help="The queue of the Job.")
IMAGE_NAME = typer.Option(IMAGE, "--image", metavar="IMAGE", help="An image with the `stromboli` command.")
REQUESTS = typer.Option(
    "cpu=1,memory=2Gi", "--requests", metavar="LIST", help="What a run needs, as a list of resources."
)
PARALLELISM = typer.Option(
    4, "--parallelism", metavar="N", min=1, max=MOST_PODS, help="Pods, each with a run at a time."
)
VOLUME_FOLDER = typer.Option(
    None,
    "--volume-folder",
    metavar="DIR",
    help="Where the claim's volume is mounted on this machine, if it is; known for `stromboli up --real`.",
)
EXPORTED = typer.Option(
    False, "--exported", help="What --export wrote lies in the volume already, where --dry-run says."
)
KUBECONFIG = typer.Option(
    "", "--kubeconfig", metavar="FILE", help="The cluster; $KUBECONFIG unless given, as for `status`."
)
CONTEXT = typer.Option("", "--context", metavar="NAME", help="A context of the kubeconfig.")
DATA = typer.Option(
    None, "--data", parser=data_folder, metavar="DIR", help="The folder of a cluster of `stromboli up`."
)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The options that name a cluster and say how the Job runs there."""

    claim: str
    namespace: str
    queue: str
    image: str
    requests: str
    parallelism: int
    volume_folder: Path | None
    exported: bool
    kubeconfig: str
    context: str
    data: Path | None


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The options of the command, as given."""

    grid: Path
    results: Path | None
    jobs: int | None
    dry_run: bool
    share: Share | None
    export: Path | None
    quiet: bool
    output: Format
    pod: str
