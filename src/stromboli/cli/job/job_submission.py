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
from stromboli.cli.run.run_options import with_settings
from stromboli.submission.bad_request import BadRequest
from stromboli.submission.run_settings import RunSettings, request_of

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
@with_settings
async def run(
    session: ClusterSession,
    settings: RunSettings,
    command: list[str] = typer.Argument(None, metavar="[--] [COMMAND...]", show_default=False),
    files: list[str] = FILES,
    follow: bool = typer.Option(
        False, "--follow", show_default=False, help="Print what a command prints, until the job has ended."
    ),
    wait: bool = WAIT,
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Submit a command as a job, with the options of `stromboli run`; or jobs from files.

    Files have any number of documents, each into its own namespace or that of -n. With --wait until all have
    completed.

    Exit status 0, 1 if the cluster refuses one, or with --wait if one does not complete, 2 for a wrong command line,
    124 after --timeout; with --follow as `stromboli run`.
    """
    longest = seconds_of(timeout)
    if bool(files) == bool(command):
        raise Usage(f"{'not both' if files else 'say what to run'}: -f FILE, or a command after --")
    if not files:
        name = await _submit_command(session, settings, command, follow, dry_run, output)
        if wait and dry_run is DryRun.NONE:
            await await_goal(session, name, goal_of("completed"), longest)
        return
    if settings != RunSettings() or follow:
        raise Usage("-f has the fields of its jobs: options such as --replicas go with a command after --")
    jobs = [job for _, job in manifests_of_kinds(files, [JOBS])]
    await submit(session, jobs, wait, longest, dry_run, output)


async def _submit_command(
    session: ClusterSession,
    settings: RunSettings,
    command: list[str],
    follow: bool,
    dry_run: DryRun,
    output: ObjectFormat,
) -> str:
    """As `stromboli run` does; the name of the job."""
    from stromboli.cli.run.local_surroundings import surroundings
    from stromboli.cli.run.submitted_job import Submission, submit_job

    here = await surroundings(session)
    try:
        request = request_of(settings, command, here.surroundings)
    except BadRequest as error:
        raise Usage(str(error)) from None
    await submit_job(session, request, here, Submission(dry_run, output, follow))
    return request.name


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
