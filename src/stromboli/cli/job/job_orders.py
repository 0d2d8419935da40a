"""Orders to the job controller: suspend a job, or resume it. Without a terminal, for commands and the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stromboli.cli.cluster.bus_commands import send_command
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest, full_name, name_of, namespace_of
from stromboli.cli.following.job_wait import phase_of

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

FINISHED = ("Completed", "Terminated", "Failed")
SUSPENDED = ("Aborted", "Aborting")


class JobOrder(NamedTuple):
    """What the controller of jobs is told to do, how that is called, and what it leads to."""

    action: str
    verb: str
    goal: str


SUSPENSION = JobOrder("AbortJob", "suspended", "aborted")
RESUMPTION = JobOrder("ResumeJob", "resumed", "running")


def check_order(job: Manifest, order: JobOrder) -> str:
    """Why an order changes nothing, empty if it does; `ClusterError` if it cannot be executed."""
    name, phase = full_name(JOBS, name_of(job)), phase_of(job)
    if phase in FINISHED:
        raise ClusterError(f"{name} is {phase}: a job that has ended cannot be {order.verb}")
    if order is SUSPENSION and phase in SUSPENDED:
        return f"{name} is {phase} already"
    if order is RESUMPTION and phase not in SUSPENDED:
        raise ClusterError(f"{name} is {phase or 'Pending'}: only a suspended job can be resumed")
    return ""


async def send_order(session: ClusterSession, job: Manifest, order: JobOrder, dry_run: bool = False) -> None:
    """Tell the controller; with `dry_run` the API server only checks the command."""
    where = namespace_of(job) or session.namespace
    await send_command(session, order.action, JOBS, job, where, dry_run)
