"""`stromboli job delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import print_note
from stromboli.cli.cluster.change_options import (
    DRY_RUN,
    TIMEOUT,
    ChangeReport,
    DryRun,
    seconds_of,
)
from stromboli.cli.cluster.changed_objects import change_each, until_gone
from stromboli.cli.cluster.chosen_objects import Failures, check_choice, chosen, confirmed
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest, name_of
from stromboli.cli.cluster.object_output import OUTPUT, SELECTOR, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.job.job_names import SOME_JOB_NAMES

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


@on_cluster()
async def delete(
    session: ClusterSession,
    names: list[str] = SOME_JOB_NAMES,
    selector: str = SELECTOR,
    every: bool = typer.Option(
        False, "--all", show_default=False, help="All jobs of the namespace; on a terminal it asks first."
    ),
    yes: bool = typer.Option(False, "--yes", "-y", show_default=False, help="Do not ask."),
    missing: bool = typer.Option(
        False, "--ignore-not-found", show_default=False, help="A job that does not exist is no error."
    ),
    wait: bool = typer.Option(True, "--wait/--no-wait", help="Until they are gone."),
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Delete jobs with their pods, by name, by labels, or all of a namespace.

    Exit status 0, 1 if one does not exist or the cluster refuses, 2 for a wrong command line, 124 after --timeout.
    """
    check_choice(names, selector, every)
    longest = seconds_of(timeout)
    failures = Failures()
    jobs = await chosen(session, JOBS, names, selector, failures, ignore_missing=missing)
    if every and not confirmed(
        JOBS, jobs, f" in namespace {session.namespace}", yes or dry_run is not DryRun.NONE
    ):
        print_note("nothing is deleted")
        raise typer.Exit(1)
    await change_each(
        jobs,
        lambda job: _delete(session, job, dry_run),
        ChangeReport(JOBS, "deleted", output, dry_run),
        failures,
        (lambda job: until_gone(session, JOBS, job, longest)) if wait and dry_run is DryRun.NONE else None,
    )
    failures.end()


async def _delete(session: ClusterSession, job: Manifest, dry_run: DryRun) -> bool:
    """Whether it was; an error if not."""
    if dry_run is not DryRun.CLIENT:
        await session.delete(JOBS, name_of(job), dry_run=dry_run is DryRun.SERVER)
    return True
