"""`stromboli job list` and `get`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.change_options import report_changes
from stromboli.cli.cluster.chosen_objects import Failures, chosen, plain_name
from stromboli.cli.cluster.cluster_kinds import JOBS, POD_GROUPS, QUEUES, Manifest, name_of, namespace_of
from stromboli.cli.cluster.name_completion import completes
from stromboli.cli.cluster.object_output import OUTPUT, SELECTOR, WATCH, ObjectFormat, print_list, show_list
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.job.job_columns import group_name, job_columns, queue_of, shown_phase
from stromboli.cli.job.job_names import JOB_NAMES, PHASES
from stromboli.kube.request import ApiError

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


def complete_phases(incomplete: str) -> list[str]:
    return [phase for phase in PHASES if phase.lower().startswith(incomplete.lower())]


@on_cluster(all_namespaces=True)
async def list_jobs(
    session: ClusterSession,
    selector: str = SELECTOR,
    queue: str = typer.Option(
        "",
        "--queue",
        "-q",
        metavar="NAME",
        show_default=False,
        help="Only those of a queue.",
        autocompletion=completes(QUEUES),
    ),
    phase: list[str] = typer.Option(
        [],
        "--phase",
        metavar="PHASE",
        show_default=False,
        help="Only those in a phase, such as Running; may be given again.",
        autocompletion=complete_phases,
    ),
    watch: bool = WATCH,
    output: ObjectFormat = OUTPUT,
) -> None:
    """List jobs: phase, queue, running pods of all, the least that start together, age and run time.

    With -o wide also the priority, the owner, retries, the scheduler and the reason for the phase.

    Exit status 0, 1 if the cluster refuses or does not answer, 2 for a wrong command line.
    """
    keep = _filter(queue, phase)
    groups = await _groups(session, None) if output is ObjectFormat.WIDE else {}

    async def read_group(job: Manifest) -> None:
        """So that the reason is that of now; none for users who may not read PodGroups."""
        name = group_name(job)
        try:
            group = await session.find(POD_GROUPS, name, namespace_of(job))
        except ApiError:
            group = None
        groups.pop(name, None)
        groups.update({} if group is None else {name: group})

    prepare = read_group if output is ObjectFormat.WIDE else None
    await show_list(session, JOBS, job_columns(groups), output, watch, selector, keep=keep, prepare=prepare)


def _filter(queue: str, phases: list[str]) -> Callable[[Manifest], bool]:
    """By queue and phases; a list with commas is several."""
    wanted = {phase.strip().lower() for given in phases for phase in given.split(",")}
    unknown = wanted - {phase.lower() for phase in PHASES}
    if unknown:
        raise Usage(f"--phase {', '.join(sorted(unknown))}: no phase of a job; there are {', '.join(PHASES)}")

    def keep(job: Manifest) -> bool:
        return (not queue or queue_of(job) == queue) and (not wanted or shown_phase(job).lower() in wanted)

    return keep


async def _groups(session: ClusterSession, namespace: str | None) -> dict[str, Manifest]:
    """PodGroups by name, for who may list them."""
    parts = ReadableParts()
    groups = await parts.list("no reasons of the scheduler", session, POD_GROUPS, namespace)
    parts.tell()
    return {name_of(group): group for group in groups or ()}


@on_cluster()
async def get_jobs(
    session: ClusterSession,
    names: list[str] = JOB_NAMES,
    watch: bool = WATCH,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Show jobs by name.

    Exit status 0, 1 if one does not exist or the cluster refuses, 2 for a wrong command line.
    """
    if watch:
        if len(names) != 1:
            raise Usage("-w watches one job; `stromboli job list -w` watches all of them")
        name = plain_name(JOBS, names[0])
        await session.get(JOBS, name)
        await show_list(session, JOBS, job_columns(), output, watch, fields=f"metadata.name={name}")
        return
    failures = Failures()
    jobs = await chosen(session, JOBS, names, failures=failures)
    if jobs and output in (ObjectFormat.TABLE, ObjectFormat.WIDE):
        groups = await _groups(session, session.namespace) if output is ObjectFormat.WIDE else {}
        print_list(session, JOBS, jobs, job_columns(groups), output)
    elif jobs:
        report_changes(JOBS, jobs, "", output)
    failures.end()
