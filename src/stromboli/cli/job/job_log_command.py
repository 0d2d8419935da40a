"""`stromboli job logs`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import typer

from stromboli.api import names
from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.change_options import seconds_of
from stromboli.cli.cluster.chosen_objects import plain_name
from stromboli.cli.cluster.cluster_errors import ClusterError, shown
from stromboli.cli.cluster.cluster_kinds import JOBS, POD_GROUPS, Manifest, full_name, name_of
from stromboli.cli.cluster.object_output import NONE
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.job.job_columns import group_name, reason_of, shown_phase, tasks_of
from stromboli.cli.job.job_names import JOB_NAME

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


@on_cluster()
async def logs(
    session: ClusterSession,
    name: str = JOB_NAME,
    task: str = typer.Option(
        "", "--task", "-t", metavar="NAME", show_default=False, help="Only the pods of a task."
    ),
    index: int | None = typer.Option(
        None, "--index", "-i", min=0, metavar="N", help="Only that pod of a task, from 0."
    ),
    container: str = typer.Option(
        "",
        "--container",
        "-c",
        metavar="NAME",
        show_default=False,
        help="Only that container of each pod.",
    ),
    follow: bool = typer.Option(
        False, "--follow", "-f", show_default=False, help="Go on until the job has ended."
    ),
    tail: int | None = typer.Option(
        None, "--tail", min=0, metavar="N", help="Only the last lines of each pod."
    ),
    since: str = typer.Option(
        "", "--since", metavar="TIME", show_default=False, help="Only lines not older than that: 30s, 5m, 2h."
    ),
    previous: bool = typer.Option(
        False, "--previous", "-p", show_default=False, help="Of the run before the last restart."
    ),
    timestamps: bool = typer.Option(
        False, "--timestamps", show_default=False, help="When each line was written."
    ),
) -> None:
    """Show what the pods of a job print; each line begins with the rank of its pod among all pods of the job.

    With -f new lines appear as they are written, pods that start later included, until the job has ended.

    Exit status 0, 1 if the job does not exist, has no pods, or the cluster refuses, 2 for a wrong command line.
    """
    from stromboli.cli.following.follow_screen import FollowScreen
    from stromboli.cli.following.job_follower import follow_job, print_logs
    from stromboli.cli.following.log_streams import LogQuery

    if follow and previous:
        raise Usage("--previous is over: leave out --follow")
    name = plain_name(JOBS, name)
    job = await session.get(JOBS, name)
    known = [str(each.get("name") or "") for each in tasks_of(job)]
    if task and task not in known:
        raise Usage(shown(f"{full_name(JOBS, name)} has no task {task}; its tasks are {', '.join(known)}"))
    query = LogQuery(
        follow=follow,
        container=container,
        previous=previous,
        timestamps=timestamps,
        tail=tail,
        since_seconds=_since(since),
        task=task,
        index=index,
    )
    screen = FollowScreen()
    if follow:
        end = await follow_job(session, session.namespace, name, screen, query, job)
        if end.exit_code:
            screen.tell(f"{full_name(JOBS, name)} {end.phase or 'is gone'}: {end.message}")
        return
    labels = f"{names.JOB_NAME}={name}"
    if not await print_logs(session, session.namespace, labels, screen, query, job):
        raise ClusterError(await _no_pods(session, job, bool(task) or index is not None))


def _since(text: str) -> int | None:
    """Whole seconds; none for all lines."""
    seconds = seconds_of(text, "--since") if text else math.inf
    return None if math.isinf(seconds) else max(1, math.ceil(seconds))


async def _no_pods(session: ClusterSession, job: Manifest, is_part: bool) -> str:
    """Why there is no log."""
    name = name_of(job)
    if is_part:
        return f"{full_name(JOBS, name)} has no such pod; `stromboli job describe {name}` lists them"
    group = await ReadableParts().read("", session.find(POD_GROUPS, group_name(job)), None)
    why = reason_of(job, group)
    return f"{full_name(JOBS, name)} is {shown_phase(job)} and has no pods{f': {why}' * (why != NONE)}"
