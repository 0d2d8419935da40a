"""`stromboli job scale`: other numbers of pods, within what an API server lets change in a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stromboli.cli.cluster.change_options import DRY_RUN, DryRun, report_changes
from stromboli.cli.cluster.chosen_objects import plain_name
from stromboli.cli.cluster.cluster_kinds import JOBS
from stromboli.cli.cluster.object_output import OUTPUT, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.job.job_names import JOB_NAME
from stromboli.cli.job.task_scaling import MOST_REPLICAS, position_of, scaling_of, send_scaling

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


@on_cluster()
async def scale(
    session: ClusterSession,
    name: str = JOB_NAME,
    replicas: int = typer.Option(
        ..., "--replicas", "-r", min=0, max=MOST_REPLICAS, metavar="N", help="Pods of the task."
    ),
    task: str = typer.Option(
        "",
        "--task",
        "-t",
        metavar="NAME",
        show_default=False,
        help="Which task; not needed if there is only one.",
    ),
    minimum: int | None = typer.Option(
        None,
        "--min",
        min=0,
        max=MOST_REPLICAS,
        metavar="N",
        help="How many pods of the whole job must start together.",
    ),
    task_minimum: int | None = typer.Option(
        None, "--task-min", min=0, max=MOST_REPLICAS, metavar="N", help="How many pods of the task must."
    ),
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Give a task of a job more pods, or fewer.

    Of a job only the numbers of pods and the priority class can change. Where fewer pods are left than had to start
    together, that number goes down with them; it never goes up by itself.

    Exit status 0, 1 if the cluster refuses or the job does not exist, 2 for a wrong command line.
    """
    name = plain_name(JOBS, name)
    job = await session.get(JOBS, name)
    scaling = scaling_of(job, position_of(job, task), replicas, minimum, task_minimum)
    if dry_run is not DryRun.CLIENT:
        job = await send_scaling(session, job, scaling, dry_run is DryRun.SERVER)
    report_changes(JOBS, [job], f"scaled: {scaling.text}", output, dry_run)
