"""Arguments that name jobs, and the phases that jobs have."""

from __future__ import annotations

import typer

from stromboli.cli.cluster.cluster_kinds import JOBS
from stromboli.cli.cluster.name_completion import completes

PHASES = (
    "Pending",
    "Running",
    "Restarting",
    "Aborting",
    "Aborted",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
)
JOB_NAME = typer.Argument(
    ..., metavar="NAME", show_default=False, help="The job.", autocompletion=completes(JOBS)
)
JOB_NAMES = typer.Argument(
    ..., metavar="NAME...", show_default=False, help="The jobs.", autocompletion=completes(JOBS)
)
SOME_JOB_NAMES = typer.Argument(
    None, metavar="[NAME...]", show_default=False, help="The jobs.", autocompletion=completes(JOBS)
)
