"""`stromboli job suspend` and `resume`: commands to the job controller, and waiting for their effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.cli.cli_errors import print_note
from stromboli.cli.cluster.change_options import (
    DRY_RUN,
    TIMEOUT,
    WAIT,
    ChangeReport,
    DryRun,
    seconds_of,
)
from stromboli.cli.cluster.changed_objects import change_each
from stromboli.cli.cluster.chosen_objects import Failures, check_choice, chosen
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest, name_of
from stromboli.cli.cluster.object_output import OUTPUT, SELECTOR, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.job.job_goals import await_goal, goal_of
from stromboli.cli.job.job_names import SOME_JOB_NAMES
from stromboli.cli.job.job_orders import RESUMPTION, SUSPENSION, JobOrder, check_order, send_order

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


@on_cluster()
async def suspend(
    session: ClusterSession,
    names: list[str] = SOME_JOB_NAMES,
    selector: str = SELECTOR,
    wait: bool = WAIT,
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Suspend jobs: their pods are deleted, and the jobs stay until they are resumed, from the beginning.

    With --wait until they are Aborted, which is what suspended jobs are called.

    Exit status 0, 1 if one cannot be suspended, 2 for a wrong command line, 124 after --timeout.
    """
    report = ChangeReport(JOBS, SUSPENSION.verb, output, dry_run)
    await _command(session, names, selector, SUSPENSION, report, wait, timeout, dry_run)


@on_cluster()
async def resume(
    session: ClusterSession,
    names: list[str] = SOME_JOB_NAMES,
    selector: str = SELECTOR,
    wait: bool = WAIT,
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Resume suspended jobs: they start again, from the beginning.

    With --wait until they run.

    Exit status 0, 1 if one cannot be resumed, 2 for a wrong command line, 124 after --timeout.
    """
    report = ChangeReport(JOBS, RESUMPTION.verb, output, dry_run)
    await _command(session, names, selector, RESUMPTION, report, wait, timeout, dry_run)


async def _command(
    session: ClusterSession,
    names: list[str],
    selector: str,
    order: JobOrder,
    report: ChangeReport,
    wait: bool,
    timeout: str,
    dry_run: DryRun,
) -> None:
    check_choice(names, selector)
    longest = seconds_of(timeout)
    failures = Failures()
    await change_each(
        await chosen(session, JOBS, names, selector, failures),
        lambda job: _send(session, job, order, dry_run),
        report,
        failures,
        (lambda job: await_goal(session, name_of(job), goal_of(order.goal), longest))
        if wait and dry_run is DryRun.NONE
        else None,
    )
    failures.end()


async def _send(session: ClusterSession, job: Manifest, order: JobOrder, dry_run: DryRun) -> bool:
    """Whether the job is suspended or resumed, or will be; an error if it cannot be."""
    if note := check_order(job, order):
        print_note(shown(note))
    elif dry_run is not DryRun.CLIENT:
        await send_order(session, job, order, dry_run is DryRun.SERVER)
    return True
