"""`stromboli job run`: jobs from files, or from flags as `stromboli run` takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.change_options import DRY_RUN, TIMEOUT, WAIT, DryRun, report_changes, seconds_of
from stromboli.cli.cluster.chosen_objects import Failures
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest, name_of, namespace_of
from stromboli.cli.cluster.manifest_files import manifests_of_kinds, namespace_for
from stromboli.cli.cluster.object_output import OUTPUT, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.job.job_goals import await_goal, goal_of

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

FILES = typer.Option(
    [],
    "--filename",
    "-f",
    metavar="FILE",
    show_default=False,
    help="A file or a folder of manifests, or - for standard input; may be given again.",
)


@on_cluster()
async def run(
    session: ClusterSession,
    files: list[str] = FILES,
    wait: bool = WAIT,
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Submit jobs from files: any number of documents, each into its own namespace or that of -n.

    With --wait until they have completed. `stromboli run` makes a job of a command line and shows what it prints.

    Exit status 0, 1 if the cluster refuses one, or with --wait if one does not complete, 2 for a wrong command line,
    124 after --timeout.
    """
    if not files:
        raise Usage("say what to run: -f FILE; `stromboli run -- COMMAND` makes a job of a command")
    longest = seconds_of(timeout)
    jobs = [job for _, job in manifests_of_kinds(files, [JOBS])]
    await submit(session, jobs, wait, longest, dry_run, output)


async def submit(
    session: ClusterSession,
    jobs: list[Manifest],
    wait: bool,
    timeout: float,
    dry_run: DryRun,
    output: ObjectFormat,
) -> None:
    """Create jobs, tell what was created, and wait for them if asked to."""
    places = [namespace_for(session, job) for job in jobs]
    failures = Failures()
    created: list[Manifest] = []
    for job, namespace in zip(jobs, places, strict=True):
        made = await failures.attempt(_create(session, job, namespace, dry_run))
        created += [made] if made is not None else []
    if created:
        report_changes(JOBS, created, "created", output, dry_run)
    if wait and dry_run is DryRun.NONE:
        for job in created:
            await failures.attempt(
                await_goal(session, name_of(job), goal_of("completed"), timeout, namespace_of(job))
            )
    failures.end()


async def _create(session: ClusterSession, job: Manifest, namespace: str, dry_run: DryRun) -> Manifest:
    placed = {**job, "metadata": {**job["metadata"], "namespace": namespace}}
    if dry_run is DryRun.CLIENT:
        return placed
    return await session.create(JOBS, placed, namespace, dry_run is DryRun.SERVER)
