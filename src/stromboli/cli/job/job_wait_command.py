"""`stromboli job wait`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cluster.change_options import TIMEOUT, seconds_of
from stromboli.cli.cluster.chosen_objects import Failures, check_choice, chosen, plain_name
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import JOBS, full_name, name_of
from stromboli.cli.cluster.object_output import SELECTOR
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.following.job_wait import phase_of
from stromboli.cli.job.job_goals import GOALS, await_goal, goal_of
from stromboli.cli.job.job_names import SOME_JOB_NAMES

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


def complete_goals(incomplete: str) -> list[str]:
    return [name for name in GOALS if name.startswith(incomplete.lower())]


@on_cluster()
async def wait(
    session: ClusterSession,
    names: list[str] = SOME_JOB_NAMES,
    selector: str = SELECTOR,
    goal: str = typer.Option(
        "completed",
        "--for",
        metavar="GOAL",
        help=f"{', '.join(GOALS)}.",
        autocompletion=complete_goals,
    ),
    timeout: str = TIMEOUT,
) -> None:
    """Wait until jobs are completed, running, or whatever --for says.

    A job that has started is running, also when it has completed since; finished is any end, a suspension too.

    Exit status 0 when all have come so far, 1 if one never will (it failed, or is gone), 2 for a wrong command line,
    124 after --timeout.
    """
    check_choice(names, selector)
    wanted, longest = goal_of(goal), seconds_of(timeout)
    failures = Failures()
    if names:
        waiting = list(dict.fromkeys(plain_name(JOBS, name) for name in names))
    else:
        waiting = [name_of(job) for job in await chosen(session, JOBS, (), selector)]

    async def each(name: str) -> None:
        job = await await_goal(session, name, wanted, longest)
        state = phase_of(job) if job is not None else "deleted"
        typer.echo(shown(f"{full_name(JOBS, name)} is {state}"))

    await asyncio.gather(*(failures.attempt(each(name)) for name in waiting))
    failures.end()
