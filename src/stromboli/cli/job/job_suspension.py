"""`stromboli job suspend` and `resume`: commands to the job controller, and waiting for their effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.cli.cli_errors import print_note
from stromboli.cli.cluster.bus_commands import send_command
from stromboli.cli.cluster.change_options import (
    DRY_RUN,
    TIMEOUT,
    WAIT,
    DryRun,
    seconds_of,
    tell_change,
)
from stromboli.cli.cluster.chosen_objects import Failures, check_choice, chosen
from stromboli.cli.cluster.cluster_errors import ClusterError, shown
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest, full_name, name_of
from stromboli.cli.cluster.object_output import SELECTOR
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.following.job_wait import phase_of
from stromboli.cli.job.job_goals import await_goal, goal_of
from stromboli.cli.job.job_names import SOME_JOB_NAMES

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

FINISHED = ("Completed", "Terminated", "Failed")
SUSPENDED = ("Aborted", "Aborting")


@on_cluster()
async def suspend(
    session: ClusterSession,
    names: list[str] = SOME_JOB_NAMES,
    selector: str = SELECTOR,
    wait: bool = WAIT,
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
) -> None:
    """Suspend jobs: their pods are deleted, and the jobs stay until they are resumed, from the beginning.

    With --wait until they are Aborted, which is what suspended jobs are called.

    Exit status 0, 1 if one cannot be suspended, 2 for a wrong command line, 124 after --timeout.
    """
    await _command(session, names, selector, wait, timeout, dry_run, "AbortJob", "suspended", "aborted")


@on_cluster()
async def resume(
    session: ClusterSession,
    names: list[str] = SOME_JOB_NAMES,
    selector: str = SELECTOR,
    wait: bool = WAIT,
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
) -> None:
    """Resume suspended jobs: they start again, from the beginning.

    With --wait until they run.

    Exit status 0, 1 if one cannot be resumed, 2 for a wrong command line, 124 after --timeout.
    """
    await _command(session, names, selector, wait, timeout, dry_run, "ResumeJob", "resumed", "running")


async def _command(
    session: ClusterSession,
    names: list[str],
    selector: str,
    wait: bool,
    timeout: str,
    dry_run: DryRun,
    action: str,
    verb: str,
    goal: str,
) -> None:
    check_choice(names, selector)
    longest = seconds_of(timeout)
    failures = Failures()
    commanded = []
    for job in await chosen(session, JOBS, names, selector, failures):
        sent = await failures.attempt(_send(session, job, action, verb, dry_run))
        commanded += [job] if sent else []
    if wait and dry_run is DryRun.NONE:
        for job in commanded:
            await failures.attempt(await_goal(session, name_of(job), goal_of(goal), longest))
    failures.end()


async def _send(session: ClusterSession, job: Manifest, action: str, verb: str, dry_run: DryRun) -> bool:
    """Whether the command was sent; it is not where it changes nothing."""
    name, phase = name_of(job), phase_of(job)
    if phase in FINISHED:
        raise ClusterError(f"{full_name(JOBS, name)} is {phase}: a job that has ended cannot be {verb}")
    if action == "AbortJob" and phase in SUSPENDED:
        print_note(shown(f"{full_name(JOBS, name)} is {phase} already"))
        return True
    if action == "ResumeJob" and phase not in SUSPENDED:
        print_note(
            shown(f"{full_name(JOBS, name)} is {phase or 'Pending'}: only a suspended job can be resumed")
        )
    if dry_run is not DryRun.CLIENT:
        await send_command(session, action, JOBS, job, session.namespace, dry_run is DryRun.SERVER)
    tell_change(JOBS, name, verb, dry_run)
    return True
